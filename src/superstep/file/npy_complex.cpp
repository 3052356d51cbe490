#include "superstep/file/npy_complex.h"

#include <fmt/format.h>

#include <cstring>
#include <string>

#include "superstep/base/error.h"

namespace superstep::data {
namespace {

// A Python tuple: "(3, 4)", "(3,)", "()".
std::string tuple_of(const Shape& shape, int axes) {
  std::string text = "(";
  for (int axis = 0; axis < axes; ++axis) text += (axis == 0 ? "" : ", ") + std::to_string(shape[axis]);
  return text + (axes == 1 ? ",)" : ")");
}

}  // namespace

std::vector<std::byte> format_npy_complex(const Tensor& pairs) {
  const Shape& shape = pairs.shape();
  const bool narrow = pairs.type() == ElementType::f32, wide = pairs.type() == ElementType::f64;
  if ((!narrow && !wide) || shape.rank() == 0 || shape[shape.rank() - 1] != 2)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("complex numbers need pairs of f32 or f64, not {} of {}", to_string(shape),
                            name_of(pairs.type())));
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                   narrow ? "<c8" : "<c16", tuple_of(shape, shape.rank() - 1));
  constexpr std::size_t preamble = 10;  // magic, version 1.0, length; the whole is a multiple of 64
  header.append(63 - (preamble + header.size()) % 64, ' ');
  header += '\n';
  const std::string start =
      fmt::format("\x93NUMPY{}{}{}{}", '\1', '\0', static_cast<char>(header.size() & 255),
                  static_cast<char>(header.size() >> 8));
  std::vector<std::byte> bytes(preamble + header.size() + pairs.byte_count());
  std::memcpy(bytes.data(), start.data(), preamble);
  std::memcpy(bytes.data() + preamble, header.data(), header.size());
  std::memcpy(bytes.data() + preamble + header.size(), pairs.bytes(), pairs.byte_count());
  return bytes;
}

}  // namespace superstep::data
