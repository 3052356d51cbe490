#include "superstep/poplar/core/print_format.h"

#include <cstring>
#include <limits>
#include <ostream>
#include <poplar/exceptions.hpp>
#include <sstream>

namespace poplar::core {
namespace {

using superstep::Shape;
using ElementType = superstep::bsp::Type;

// How numbers are written: chosen once from all that are shown.
struct NumberStyle {
  FloatFormat form = FloatFormat::Fixed;
  int precision = 0;
  std::size_t width = 0;  // 0: as long as they come
};

double real_at(ElementType type, const std::byte* data, std::int64_t index) {
  return superstep::dispatch(type, [&]<class T>() -> double {
    T value;
    std::memcpy(&value, data + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
    if constexpr (std::is_same_v<T, superstep::f16> || std::is_same_v<T, superstep::bf16>)
      return static_cast<double>(static_cast<float>(value));
    else
      return static_cast<double>(value);
  });
}

std::string integer_at(ElementType type, const std::byte* data, std::int64_t index) {
  return superstep::dispatch(type, [&]<class T>() -> std::string {
    if constexpr (std::is_integral_v<T>) {
      T value;
      std::memcpy(&value, data + static_cast<std::size_t>(index) * sizeof(T), sizeof(T));
      return fmt::format("{:d}", value);
    } else {
      return {};
    }
  });
}

class Writer {
 public:
  Writer(std::ostream& out, const PrintTensorFmt& format, ElementType type, const Shape& shape,
         const std::byte* data)
      : out_(out),
        format_(format),
        type_(type),
        shape_(shape),
        data_(data),
        strides_(shape.row_major_strides()),
        cut_(shape.element_count() > static_cast<std::int64_t>(format.summariseThreshold)) {
    std::vector<std::int64_t> shown;
    collect(0, 0, shown);
    if (superstep::is_floating(type)) choose_form(shown);
    if (format.digits > 0)
      for (const std::int64_t index : shown) style_.width = std::max(style_.width, text(index).size());
  }

  void run() {
    if (shape_.rank() == 0)
      out_ << text(0);
    else
      level(0, 0);
    out_ << '\n';
  }

 private:
  // Calls f(position) of what is shown of a dimension; -1 stands for what is left out.
  template <class F>
  void positions(int axis, F&& f) const {
    const std::int64_t extent = shape_[axis], edge = format_.edgeItems;
    for (std::int64_t i = 0; i < extent; ++i) {
      if (cut_ && extent > 2 * edge && i == edge) {
        f(std::int64_t{-1});
        i = extent - edge;
        if (i == extent) break;
      }
      f(i);
    }
  }

  void collect(int axis, std::int64_t first, std::vector<std::int64_t>& shown) const {
    if (axis == shape_.rank()) return shown.push_back(first);
    positions(axis, [&](std::int64_t i) {
      if (i >= 0) collect(axis + 1, first + i * strides_[static_cast<std::size_t>(axis)], shown);
    });
  }

  // Fixed keeps `digits` digits of the largest number; scientific where it has none left of the point to
  // spare, or where the smallest would be mostly zeros (a thousandth of what one keeps).
  void choose_form(const std::vector<std::int64_t>& shown) {
    double largest = 0, smallest = std::numeric_limits<double>::infinity();
    for (const std::int64_t index : shown) {
      const double value = std::abs(real_at(type_, data_, index));
      if (!std::isfinite(value) || value == 0) continue;
      largest = std::max(largest, value);
      smallest = std::min(smallest, value);
    }
    const int digits = static_cast<int>(format_.digits);
    const int before = largest < 1 ? 1 : static_cast<int>(std::floor(std::log10(largest))) + 1;
    style_.form = format_.floatFormat;
    if (style_.form == FloatFormat::Auto) {
      constexpr double worth_three_digits = 1e3;
      const bool loses = digits > 0 && largest > 0 &&
                         (before > digits || smallest * std::pow(10, digits - before) < worth_three_digits);
      style_.form = digits == 0 ? FloatFormat::None : loses ? FloatFormat::Scientific : FloatFormat::Fixed;
    }
    style_.precision = std::max(0, digits - (style_.form == FloatFormat::Scientific ? 1 : before));
  }

  std::string text(std::int64_t index) const {
    if (!superstep::is_floating(type_)) return integer_at(type_, data_, index);
    const double value = real_at(type_, data_, index);
    if (style_.form == FloatFormat::None) return fmt::format("{}", static_cast<float>(value));
    if (style_.form == FloatFormat::Scientific) return fmt::format("{:.{}e}", value, style_.precision);
    return fmt::format("{:.{}f}", value, style_.precision);
  }

  void level(int axis, std::int64_t first) {
    const std::string indent(static_cast<std::size_t>(axis), ' ');
    if (axis > 0) out_ << indent;
    if (axis + 1 == shape_.rank()) return row(axis, first);
    out_ << format_.openBracket << '\n';
    positions(axis, [&](std::int64_t i) {
      if (i < 0)
        out_ << indent << " ...";
      else
        level(axis + 1, first + i * strides_[static_cast<std::size_t>(axis)]);
      out_ << '\n';
    });
    out_ << indent << format_.closeBracket;
  }

  void row(int axis, std::int64_t first) {
    const std::size_t indent = static_cast<std::size_t>(axis) + 1;
    std::size_t column = indent;
    bool begun = false;
    out_ << format_.openBracket;
    positions(axis, [&](std::int64_t i) {
      std::string item = i < 0 ? std::string("...") : text(first + i);
      if (i >= 0 && item.size() < style_.width) item.insert(0, style_.width - item.size(), ' ');
      if (begun && column + 1 + item.size() > format_.maxLineWidth) {
        out_ << '\n' << std::string(indent, ' ');
        column = indent;
      } else if (begun) {
        out_ << format_.separator;
        ++column;
      }
      out_ << item;
      column += item.size();
      begun = true;
    });
    out_ << format_.closeBracket;
  }

  std::ostream& out_;
  const PrintTensorFmt& format_;
  ElementType type_;
  const Shape& shape_;
  const std::byte* data_;
  std::vector<std::int64_t> strides_;
  bool cut_;
  NumberStyle style_;
};

}  // namespace

superstep::bsp::TensorPrinter printer(const PrintTensorFmt& format) {
  return [format](std::ostream& out, const std::string& title, ElementType type, const Shape& shape,
                  const std::byte* elements) {
    out << title << ": ";
    Writer(out, format, type, shape, elements).run();
  };
}

std::string form_of(const PrintTensorFmt& format) {
  return fmt::format("{} {} {} {} {} {} {} {}", format.summariseThreshold, format.edgeItems,
                     format.maxLineWidth, format.digits, static_cast<int>(format.floatFormat),
                     static_cast<int>(format.separator), static_cast<int>(format.openBracket),
                     static_cast<int>(format.closeBracket));
}

PrintTensorFmt format_of(const std::string& form) {
  std::istringstream words(form);
  PrintTensorFmt format;
  int style = 0, between = 0, open = 0, close = 0;
  words >> format.summariseThreshold >> format.edgeItems >> format.maxLineWidth >> format.digits >> style >>
      between >> open >> close;
  if (!words || style < 0 || style > static_cast<int>(FloatFormat::None))
    throw graph_object_load_error("no format of printed tensors: " + form);
  format.floatFormat = static_cast<FloatFormat>(style);
  format.separator = static_cast<char>(between);
  format.openBracket = static_cast<char>(open);
  format.closeBracket = static_cast<char>(close);
  return format;
}

}  // namespace poplar::core
