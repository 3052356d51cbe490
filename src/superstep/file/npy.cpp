#include "superstep/file/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>

#include "superstep/base/file.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/system/mapped_file.h"

namespace superstep::data {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

[[noreturn]] void refuse(std::string_view where, std::string message) {
  throw Error(ErrorCode::bad_file, std::move(message), std::string(where));
}

// Reads the header: the literal of a Python dictionary with the keys descr, fortran_order and shape.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  Header parse() {
    Header header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !has_descr) {
        header.descr = descr();
        has_descr = true;
      } else if (key == "fortran_order" && !has_order) {
        header.fortran_order = boolean();
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        header.shape = tuple();
        has_shape = true;
      } else {
        damaged();
      }
      if (!accept(',') && peek() != '}') damaged();
    }
    if (!has_descr || !has_order || !has_shape) damaged();
    return header;
  }

 private:
  [[noreturn]] void damaged() const { refuse(where_, "the .npy header is damaged"); }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) damaged();
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') damaged();
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) damaged();
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  std::string descr() {
    if (peek() == '[' || peek() == '(')
      throw Error(ErrorCode::unsupported, "the elements are records, not numbers", std::string(where_));
    return quoted();
  }
  bool word(std::string_view wanted) {
    skip_space();
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  bool boolean() {
    if (word("True")) return true;
    if (!word("False")) damaged();
    return false;
  }
  std::int64_t extent() {
    skip_space();
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (code != std::errc() || value < 0) damaged();
    at_ = static_cast<std::size_t>(end - text_.data());
    accept('L');  // written by Python 2
    return value;
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> extents;
    expect('(');
    while (!accept(')')) {
      extents.push_back(extent());
      if (extents.size() > 64) damaged();
      if (!accept(',') && peek() != ')') damaged();
    }
    return extents;
  }

  std::string_view text_, where_;
  std::size_t at_ = 0;
};

struct Elements {
  ElementType type;
  bool complex = false;
  bool swapped = false;  // big-endian
};

std::optional<Elements> elements_of(std::string_view descr) {
  if (descr.size() < 2) return {};
  const bool has_order = std::string_view("<>|=").contains(descr[0]);
  const bool swapped = descr[0] == '>';
  const std::string_view kind = has_order ? descr.substr(1) : descr;
  static constexpr std::pair<std::string_view, ElementType> real[] = {
      {"f2", ElementType::f16},   {"f4", ElementType::f32}, {"f8", ElementType::f64},
      {"i1", ElementType::i8},    {"i2", ElementType::i16}, {"i4", ElementType::i32},
      {"i8", ElementType::i64},   {"u1", ElementType::u8},  {"u2", ElementType::u16},
      {"u4", ElementType::u32},   {"u8", ElementType::u64}, {"b1", ElementType::boolean},
      {"?", ElementType::boolean}};
  for (const auto& [name, type] : real)
    if (kind == name) return Elements{type, false, swapped};
  if (kind == "c8") return Elements{ElementType::f32, true, swapped};
  if (kind == "c16") return Elements{ElementType::f64, true, swapped};
  return {};
}

// Where the header's text lies: after the magic, two bytes of version and a length of 2 or 4 bytes.
struct Extent {
  std::size_t begin, size;
};

Extent header_extent(std::span<const std::byte> bytes, std::string_view where) {
  if (bytes.size() < 10 || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    refuse(where, "this is not a .npy file");
  const int major = std::to_integer<int>(bytes[6]);
  if (major < 1 || major > 3) refuse(where, fmt::format(".npy format version {} is not known", major));
  const std::size_t begin = major == 1 ? 10 : 12;
  std::size_t size = 0;
  for (std::size_t i = begin; i-- > 8;)
    size = size << 8 | (i < bytes.size() ? std::to_integer<std::size_t>(bytes[i]) : 0);
  if (begin > bytes.size()) refuse(where, "the .npy header is cut short");
  return {begin, size};
}

void reverse_bytes(std::byte* data, std::size_t count, std::size_t width) {
  for (std::size_t i = 0; i < count; ++i) std::reverse(data + i * width, data + (i + 1) * width);
}

// Copies column-major elements of `width` bytes to row-major order.
void copy_from_fortran(const std::byte* source, std::byte* target, const std::vector<std::int64_t>& shape,
                       std::size_t width, std::int64_t count) {
  std::vector<std::int64_t> index(shape.size(), 0), stride(shape.size());
  std::int64_t step = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    stride[axis] = step;
    step *= shape[axis];
  }
  std::int64_t from = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(target + static_cast<std::size_t>(i) * width, source + static_cast<std::size_t>(from) * width,
                width);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      from += stride[axis];
      if (++index[axis] < shape[axis]) break;
      from -= stride[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

// The bytes that the elements take; throws when that overflows.
std::size_t checked_size(const Shape& shape, std::size_t width, std::string_view where) {
  std::size_t size = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(shape.element_count()), width, &size))
    refuse(where, "the array is too large for this machine");
  return size;
}

Shape checked_shape(std::vector<std::int64_t> extents, std::string_view where) {
  try {
    return Shape(std::move(extents));
  } catch (const Error& error) {
    throw Error(ErrorCode::bad_file, error.message(), std::string(where));
  }
}

// A byte of a boolean that is neither 0 nor 1 would be undefined behaviour to read as bool.
void normalize_booleans(Tensor& tensor) {
  for (std::byte* byte = tensor.bytes(); byte != tensor.bytes() + tensor.byte_count(); ++byte)
    *byte = std::byte{*byte != std::byte{0}};
}

}  // namespace

NpyLayout parse_npy_header(std::span<const std::byte> bytes, std::string_view where) {
  const Extent at = header_extent(bytes, where);
  if (at.size > bytes.size() - at.begin) refuse(where, "the .npy header is cut short");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + at.begin, at.size);
  const Header header = HeaderParser(text, where).parse();
  const std::optional<Elements> elements = elements_of(header.descr);
  if (!elements)
    throw Error(ErrorCode::unsupported,
                fmt::format("elements of type '{}' are not numbers that can be read", header.descr),
                std::string(where));
  NpyLayout layout;
  layout.type = elements->type;
  layout.outer = header.shape;
  layout.swapped = elements->swapped;
  layout.fortran_order = header.fortran_order;
  layout.header_bytes = at.begin + at.size;
  layout.width = size_in_bytes(elements->type) * (elements->complex ? 2 : 1);
  layout.data_bytes = checked_size(checked_shape(header.shape, where), layout.width, where);
  std::vector<std::int64_t> extents = header.shape;
  if (elements->complex) extents.push_back(2);
  layout.shape = checked_shape(std::move(extents), where);
  return layout;
}

std::size_t npy_header_bytes(std::span<const std::byte> beginning, std::string_view where) {
  const Extent at = header_extent(beginning, where);
  return at.begin + at.size;
}

double npy_memory(const NpyLayout& layout) {
  return (layout.fortran_order ? 2.0 : 1.0) * static_cast<double>(layout.data_bytes);
}

Tensor read_npy_elements(const NpyLayout& layout, const NpySource& source) {
  Tensor tensor(layout.type, layout.shape);
  const std::span<std::byte> bytes(tensor.bytes(), tensor.byte_count());
  if (layout.fortran_order && !bytes.empty()) {
    std::vector<std::byte> columns(bytes.size());
    source(columns);
    copy_from_fortran(columns.data(), bytes.data(), layout.outer, layout.width,
                      static_cast<std::int64_t>(bytes.size() / layout.width));
  } else if (!bytes.empty()) {
    source(bytes);
  }
  const std::size_t part = size_in_bytes(layout.type);
  if (layout.swapped) reverse_bytes(tensor.bytes(), bytes.size() / part, part);
  if (layout.type == ElementType::boolean) normalize_booleans(tensor);
  return tensor;
}

Tensor parse_npy(std::span<const std::byte> bytes, std::string_view where) {
  const NpyLayout layout = parse_npy_header(bytes, where);
  std::span<const std::byte> data = bytes.subspan(layout.header_bytes);
  if (layout.data_bytes > data.size())
    refuse(where, fmt::format("the file is cut short: shape {} needs {} bytes and {} are there",
                              to_string(Shape(layout.outer)), layout.data_bytes, data.size()));
  require_memory(npy_memory(layout), std::string(where));
  return read_npy_elements(layout, [&](std::span<std::byte> target) {
    constexpr std::size_t piece_bytes = 1 << 24;
    for (InterruptCheck stop; !target.empty(); stop.throw_if_due(std::string(where))) {
      const std::size_t piece = std::min(piece_bytes, target.size());
      std::memcpy(target.data(), data.data(), piece);
      target = target.subspan(piece);
      data = data.subspan(piece);
    }
  });
}

std::string npy_type_name(ElementType type) {
  switch (type) {
    case ElementType::f64: return "<f8";
    case ElementType::f32: return "<f4";
    case ElementType::f16: return "<f2";
    case ElementType::i64: return "<i8";
    case ElementType::i32: return "<i4";
    case ElementType::i16: return "<i2";
    case ElementType::i8: return "|i1";
    case ElementType::u64: return "<u8";
    case ElementType::u32: return "<u4";
    case ElementType::u16: return "<u2";
    case ElementType::u8: return "|u1";
    case ElementType::boolean: return "|b1";
    case ElementType::bf16: break;
  }
  throw Error(ErrorCode::unsupported, ".npy files have no bf16: convert to f32 first");
}

Tensor read_npy(const std::filesystem::path& path) {
  const MappedFile file(path);
  return parse_npy(file.bytes(), path.string());
}

std::string format_npy_header(ElementType type, const Shape& shape) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   npy_type_name(type), fmt::join(shape, ", "), shape.rank() == 1 ? "," : "");
  // The elements begin at a multiple of 64 bytes.
  constexpr std::size_t prefix = 10;
  header.append(63 - (prefix + header.size()) % 64, ' ');
  header += '\n';
  std::string text(magic);
  text += {'\x01', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return text + header;
}

std::vector<std::byte> format_npy(const Tensor& tensor) {
  const std::string text = format_npy_header(tensor.type(), tensor.shape());
  std::vector<std::byte> bytes(text.size() + tensor.byte_count());
  std::memcpy(bytes.data(), text.data(), text.size());
  if (tensor.byte_count() > 0) std::memcpy(bytes.data() + text.size(), tensor.bytes(), tensor.byte_count());
  return bytes;
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  write_file_atomically(path, format_npy(tensor));
}

}  // namespace superstep::data
