// How types, lists and elements are written in StableHLO's textual form.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "superstep/base/tensor.h"

namespace superstep::target::stablehlo {

// What a value of a program is: a tensor of numbers, or of pairs of them (complex numbers of this element).
struct Type {
  ElementType element = ElementType::f32;
  Shape shape;
  bool complex = false;

  friend bool operator==(const Type&, const Type&) = default;
};

const char* element_name(ElementType element);  // "f32", "i64", "ui8", "i1"
std::string to_text(const Type& type);          // "tensor<8x3xf32>", "tensor<i64>"

std::string array_text(std::span<const std::int64_t> values);    // "array<i64: 0, 1>"
std::string numbers_text(std::span<const std::int64_t> values);  // "[0, 1]"
// Pairs of a begin and an end: "dense<[[1, 1], [0, 0]]> : tensor<2x2xi64>".
std::string pairs_text(std::span<const std::int64_t> begins, std::span<const std::int64_t> ends);

// One number exactly: decimal where that reads well and gives the same bits, else the bits.
std::string element_text(ElementType element, double value);
// The elements of a constant, with their type: "dense<1.0> : tensor<3xf32>".
std::string dense_text(const Tensor& tensor);

}  // namespace superstep::target::stablehlo
