// NumPy's .npy files (format versions 1.0 to 3.0; NumPy Enhancement Proposal 1).
//
// Read: booleans, integers of 1 to 8 bytes, floats of 2, 4 and 8, complex numbers of 8 and 16 (which get
// one more, innermost axis of 2: real, imaginary), either byte order, C and Fortran order (the tensor is
// always row-major). Strings, records and Python objects are refused. The bytes may come from anywhere:
// nothing is allocated before its size was checked against theirs.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/tensor.h"

namespace superstep::data {

// The type of elements as headers name it, in the byte order of files that are written here: "<f4". Zarr 2
// has the same names. Throws Error (unsupported) on bf16, for which there is none.
std::string npy_type_name(ElementType type);

Tensor read_npy(const std::filesystem::path& path);  // throws Error (not_found, bad_file, unsupported, io)
// `where` names the source in errors.
Tensor parse_npy(std::span<const std::byte> bytes, std::string_view where);

// What a header says.
struct NpyLayout {
  ElementType type = ElementType::f32;
  Shape shape;           // of the tensor: complex numbers have their innermost axis
  bool swapped = false;  // big-endian
  bool fortran_order = false;
  std::size_t header_bytes = 0;  // the elements begin behind
  std::size_t data_bytes = 0;
  std::vector<std::int64_t> outer;  // the extents of the file
  std::size_t width = 0;            // bytes of a number, of both parts of a complex one
};

// For files that come piece by piece: how long the header is, from the first npy_beginning bytes; what it
// says; the elements, which `source` writes where it is told to, in one call; the memory that this takes.
constexpr std::size_t npy_beginning = 12;
using NpySource = std::function<void(std::span<std::byte>)>;
std::size_t npy_header_bytes(std::span<const std::byte> beginning, std::string_view where);
NpyLayout parse_npy_header(std::span<const std::byte> header, std::string_view where);
Tensor read_npy_elements(const NpyLayout& layout, const NpySource& source);
double npy_memory(const NpyLayout& layout);

// Atomically. bf16, which NumPy does not have, is refused (unsupported).
void write_npy(const std::filesystem::path& path, const Tensor& tensor);
std::vector<std::byte> format_npy(const Tensor& tensor);
std::string format_npy_header(ElementType type, const Shape& shape);  // what stands before the elements

}  // namespace superstep::data
