// One array of a file of weights: its name, its shape, and its elements where they lie or as they are made.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/file/weights/blocks.h"

namespace superstep::data {

struct Weight {
  std::string name;
  Shape shape;                             // row-major, outermost first, whatever the file counts from
  ElementType element = ElementType::f32;  // of the elements as they are read; f32 of blocks
  BlockFormat blocks = BlockFormat::none;  // how rows are packed
  // In the mapped file, which `owner` keeps there; empty where the file packs them (a compressed archive).
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  Tensor::Fill fill;  // writes the elements, unpacked; throws Error (unsupported) where they are not read
  std::string unread = {};  // the name of a type of elements that is not read; empty: it is

  // The elements as `element`, read when somebody asks for them; throws what reading the file throws, then.
  Tensor tensor() const { return Tensor::generated(element, shape, fill); }
  std::string type_name() const;  // "bf16", "q4_k"
};

// What a file says beside its arrays: one number, one text, or a list of either.
using WeightNote = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>,
                                std::vector<double>, std::vector<std::string>>;
using WeightNotes = std::map<std::string, WeightNote>;

}  // namespace superstep::data
