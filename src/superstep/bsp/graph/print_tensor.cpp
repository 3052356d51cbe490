#include "superstep/bsp/graph/print_tensor.h"

#include <fmt/format.h>

#include <cstring>
#include <ostream>

namespace superstep::bsp {
namespace {

// Elements of a tensor that is printed as a whole; of a larger one so many at either end of an axis, as NumPy
// does.
constexpr std::int64_t whole_up_to = 1000, edge = 3;

std::string element(Type type, const std::byte* data, std::int64_t index) {
  return dispatch(type, [&]<class T>() -> std::string {
    T value;
    std::memcpy(&value, data + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
    if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>)
      return fmt::format("{:.7f}", static_cast<float>(value));
    else if constexpr (std::is_floating_point_v<T>)
      return fmt::format("{:.7f}", value);
    else
      return fmt::format("{}", static_cast<std::int64_t>(value));
  });
}

class Printer {
 public:
  Printer(std::ostream& out, Type type, const Shape& shape, const std::byte* data)
      : out_(out),
        type_(type),
        shape_(shape),
        data_(data),
        strides_(shape.row_major_strides()),
        cut_(shape.element_count() > whole_up_to) {}

  void run(int axis, std::int64_t first) {
    if (axis == shape_.rank()) {
      out_ << element(type_, data_, first);
      return;
    }
    const bool rows = axis + 1 < shape_.rank();
    out_ << '[';
    const std::int64_t extent = shape_[axis];
    for (std::int64_t i = 0; i < extent; ++i) {
      if (i > 0) out_ << (rows ? "\n" + std::string(static_cast<std::size_t>(axis) + 1, ' ') : " ");
      if (cut_ && extent > 2 * edge && i == edge) {
        out_ << "...";
        i = extent - edge - 1;
        continue;
      }
      run(axis + 1, first + i * strides_[static_cast<std::size_t>(axis)]);
    }
    out_ << ']';
  }

 private:
  std::ostream& out_;
  Type type_;
  const Shape& shape_;
  const std::byte* data_;
  std::vector<std::int64_t> strides_;
  bool cut_;
};

}  // namespace

void print_tensor(std::ostream& out, const std::string& title, Type type, const Shape& shape,
                  const std::byte* data) {
  out << title << ": ";
  Printer(out, type, shape, data).run(0, 0);
  out << '\n';
}

}  // namespace superstep::bsp
