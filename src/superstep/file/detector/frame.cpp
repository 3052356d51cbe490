#include "superstep/file/detector/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/system/regular_file.h"

namespace superstep::data {
namespace {

constexpr std::size_t longest_header = 1 << 20;  // bytes; those of beamlines have some thousand
constexpr std::int64_t largest_extent = 1
                                        << 20;  // pixels of a side; the largest detectors have some thousand
constexpr std::string_view cbf_mark = "###CBF";
constexpr std::string_view binary_mark = "\x0c\x1a\x04\xd5";  // before the numbers of a CBF

using Values = std::map<std::string, std::string>;  // by names in small letters

[[noreturn]] void refuse(const StableFile& file, ErrorCode code, const std::string& words) {
  throw Error(code, words, file.path().string());
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n\"";
  const std::size_t begin = text.find_first_not_of(blank);
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(blank) + 1 - begin);
}

std::string in_small(std::string_view text) {
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return small;
}

// The first of a name counts.
void add_value(Values& values, std::string_view line, char sign) {
  const std::size_t at = line.find(sign);
  if (at != std::string_view::npos)
    values.emplace(in_small(trimmed(line.substr(0, at))), trimmed(line.substr(at + 1)));
}

// "name = value ;" in braces.
Values values_in_braces(std::string_view header) {
  Values values;
  while (!header.empty()) {
    const std::size_t end = header.find(';');
    add_value(values, header.substr(0, end), '=');
    header = end == std::string_view::npos ? "" : header.substr(end + 1);
  }
  return values;
}

std::optional<std::int64_t> whole_number(const Values& values, const std::string& name) {
  const auto found = values.find(name);
  if (found == values.end()) return std::nullopt;
  std::int64_t number = 0;
  const std::string& text = found->second;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::int64_t extent(const StableFile& file, const Values& values, const std::string& name) {
  const auto number = whole_number(values, name);
  if (!number || *number < 1 || *number > largest_extent)
    refuse(file, ErrorCode::bad_file, fmt::format("its header has no '{}' that a picture can have", name));
  return *number;
}

ElementType type_of(const StableFile& file, const Values& values, const std::string& name) {
  static const std::map<std::string, ElementType> types = {{"signedbyte", ElementType::i8},
                                                           {"unsignedbyte", ElementType::u8},
                                                           {"signedshort", ElementType::i16},
                                                           {"unsignedshort", ElementType::u16},
                                                           {"signedinteger", ElementType::i32},
                                                           {"unsignedinteger", ElementType::u32},
                                                           {"signedlong", ElementType::i32},
                                                           {"unsignedlong", ElementType::u32},
                                                           {"signed64", ElementType::i64},
                                                           {"unsigned64", ElementType::u64},
                                                           {"floatvalue", ElementType::f32},
                                                           {"float", ElementType::f32},
                                                           {"real", ElementType::f32},
                                                           {"floatieee32", ElementType::f32},
                                                           {"doublevalue", ElementType::f64},
                                                           {"double", ElementType::f64},
                                                           {"unsigned_short", ElementType::u16},
                                                           {"unsigned short int", ElementType::u16},
                                                           {"signed short int", ElementType::i16},
                                                           {"unsigned long int", ElementType::u32},
                                                           {"signed long int", ElementType::i32},
                                                           {"unsigned char", ElementType::u8},
                                                           {"signed 32-bit integer", ElementType::i32},
                                                           {"unsigned 32-bit integer", ElementType::u32}};
  const auto given = values.find(name);
  const auto found = types.find(given == values.end() ? "" : in_small(given->second));
  if (found == types.end())
    refuse(file, ErrorCode::unsupported,
           fmt::format("its numbers are of the type '{}', which is not read",
                       printable(given == values.end() ? "" : given->second)));
  return found->second;
}

bool is_big_endian(const Values& values, const std::string& name) {
  const auto found = values.find(name);
  if (found == values.end()) return false;
  const std::string order = in_small(found->second);
  return order.starts_with("high") || order.starts_with("big");
}

void require_inside(const StableFile& file, const Frame& frame) {
  if (frame.begin <= file.size() && frame.size <= file.size() - frame.begin) return;
  refuse(file, ErrorCode::bad_file,
         fmt::format("is cut short: a frame of {} x {} needs {} bytes from {} on, and it has {}", frame.width,
                     frame.height, frame.size, frame.begin, file.size()));
}

std::string part_of(const StableFile& file, std::uint64_t begin, std::size_t most) {
  std::string text(std::min<std::uint64_t>(most, file.size() - begin), '\0');
  file.read(begin, std::as_writable_bytes(std::span(text)));
  return text;
}

// The header from `begin` on up to the brace that ends it, and the byte behind its line.
struct Header {
  Values values;
  std::uint64_t end = 0;
};
Header braced_header(const StableFile& file, std::uint64_t begin) {
  const std::string text = part_of(file, begin, longest_header);
  const std::size_t brace = text.find('}');
  if (brace == std::string::npos) refuse(file, ErrorCode::bad_file, "its header does not end");
  Header header{values_in_braces(std::string_view(text).substr(1, brace - 1)), begin + brace + 1};
  for (const char each : {'\r', '\n'})
    if (header.end - begin < text.size() && text[header.end - begin] == each) ++header.end;
  return header;
}

Frame edf_frame(const StableFile& file, const Header& header) {
  const Values& values = header.values;
  if (const auto packing = values.find("compression");
      packing != values.end() && !packing->second.empty() && in_small(packing->second) != "none")
    refuse(file, ErrorCode::unsupported,
           fmt::format("is packed by '{}', which is not read", printable(packing->second)));
  if (whole_number(values, "dim_3").value_or(1) != 1)
    refuse(file, ErrorCode::unsupported, "has frames of three dimensions, which are not read");
  Frame frame{.type = type_of(file, values, "datatype"),
              .height = extent(file, values, "dim_2"),
              .width = extent(file, values, "dim_1"),
              .begin = header.end,
              .swapped = is_big_endian(values, "byteorder")};
  frame.size = frame.unpacked_bytes();
  return frame;
}

std::vector<Frame> edf_frames(const StableFile& file) {
  std::vector<Frame> frames;
  for (std::uint64_t at = 0; at < file.size() && part_of(file, at, 1) == "{";) {
    const Header header = braced_header(file, at);
    frames.push_back(edf_frame(file, header));
    require_inside(file, frames.back());
    std::int64_t size = static_cast<std::int64_t>(frames.back().size);
    for (const char* name : {"edf_binarysize", "size"})
      if (const auto said = whole_number(header.values, name); said && *said > size) size = *said;
    at = header.end + static_cast<std::uint64_t>(size);
  }
  return frames;
}

Frame smv_frame(const StableFile& file) {
  const Values values = braced_header(file, 0).values;
  const bool adsc = values.contains("type");
  Frame frame{.type = type_of(file, values, adsc ? "type" : "data_type"),
              .height = extent(file, values, "size2"),
              .width = extent(file, values, "size1"),
              .begin = static_cast<std::uint64_t>(whole_number(values, "header_bytes").value_or(512)),
              .swapped = is_big_endian(values, "byte_order")};
  frame.size = frame.unpacked_bytes();
  require_inside(file, frame);
  return frame;
}

Frame cbf_frame(const StableFile& file) {
  const std::string text = part_of(file, 0, longest_header);
  const std::size_t mark = text.find(binary_mark);
  if (mark == std::string::npos) refuse(file, ErrorCode::bad_file, "has no numbers behind its header");
  Values values;
  for (std::size_t at = 0; at < mark;) {
    const std::size_t end = std::min(text.find('\n', at), mark);
    const std::string_view line = std::string_view(text).substr(at, end - at);
    add_value(values, line, line.find("conversions=") == std::string_view::npos ? ':' : '=');
    at = end + 1;
  }
  const auto packing = values.find("conversions");
  if (packing == values.end() || in_small(packing->second) != "x-cbf_byte_offset")
    refuse(file, ErrorCode::unsupported,
           fmt::format("is packed by '{}': byte offset alone is read",
                       printable(packing == values.end() ? "nothing" : packing->second)));
  if (whole_number(values, "x-binary-size-third-dimension").value_or(1) > 1)
    refuse(file, ErrorCode::unsupported, "has frames of three dimensions, which are not read");
  Frame frame{.type = type_of(file, values, "x-binary-element-type"),
              .height = extent(file, values, "x-binary-size-second-dimension"),
              .width = extent(file, values, "x-binary-size-fastest-dimension"),
              .begin = mark + binary_mark.size(),
              .packed = true};
  if (size_in_bytes(frame.type) != 4 || is_floating(frame.type))
    refuse(file, ErrorCode::unsupported, "has numbers of another width than 32 bits, which are not read");
  const auto size = whole_number(values, "x-binary-size");
  if (!size || *size < 0) refuse(file, ErrorCode::bad_file, "its header has no 'X-Binary-Size'");
  frame.size = static_cast<std::uint64_t>(*size);
  require_inside(file, frame);
  // A pixel takes up a byte at least.
  if (frame.size < static_cast<std::uint64_t>(frame.height * frame.width))
    refuse(file, ErrorCode::bad_file, "has fewer numbers than its header says");
  return frame;
}

bool is_smv(std::string_view begin) { return begin.find("HEADER_BYTES") != std::string_view::npos; }

// Differences of neighbors: a byte; where that is -128, two more; where those are -32768, four more; where
// those are the least of 32 bits, eight more.
class Differences {
 public:
  Differences(const StableFile& file, std::span<const std::byte> bytes) : file_(file), rest_(bytes) {}
  std::int64_t next() {
    const std::int64_t byte = take<std::int8_t>();
    if (byte != INT8_MIN) return byte;
    const std::int64_t word = take<std::int16_t>();
    if (word != INT16_MIN) return word;
    const std::int64_t number = take<std::int32_t>();
    return number != INT32_MIN ? number : take<std::int64_t>();
  }

 private:
  template <class T>
  T take() {
    if (rest_.size() < sizeof(T))
      refuse(file_, ErrorCode::bad_file, "has fewer numbers than its header says");
    T value = 0;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return value;
  }
  const StableFile& file_;
  std::span<const std::byte> rest_;
};

void unpack(const StableFile& file, const Frame& frame, std::span<const std::byte> packed,
            std::span<std::byte> to) {
  Differences differences(file, packed);
  std::uint32_t value = 0;  // of 32 bits as the pixels are: writers' differences wrap round with them
  for (std::size_t i = 0; i < static_cast<std::size_t>(frame.height * frame.width); ++i) {
    value += static_cast<std::uint32_t>(differences.next());
    std::memcpy(to.data() + i * sizeof value, &value, sizeof value);
  }
}

}  // namespace

bool is_frame_file(const std::filesystem::path& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return false;
  std::string begin(4096, '\0');
  std::ifstream stream = open_regular_file(path);
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  if (begin.starts_with(cbf_mark)) return true;
  const std::string_view inside = std::string_view(begin).substr(0, begin.find('}'));
  if (!begin.starts_with('{')) return false;
  return is_smv(inside) || in_small(inside).find("dim_1") != std::string::npos;
}

std::vector<Frame> frames_of(const StableFile& file) {
  const std::string begin = part_of(file, 0, 64);
  if (begin.starts_with(cbf_mark)) return {cbf_frame(file)};
  if (is_smv(begin)) return {smv_frame(file)};
  return edf_frames(file);
}

void read_frame(const StableFile& file, const Frame& frame, std::span<std::byte> to) {
  if (frame.packed) {
    std::vector<std::byte> packed(frame.size);
    file.read(frame.begin, packed);
    unpack(file, frame, packed, to);
  } else {
    file.read(frame.begin, to);
    const std::size_t width = size_in_bytes(frame.type);
    for (std::size_t at = 0; frame.swapped && at < to.size(); at += width)
      std::ranges::reverse(to.subspan(at, width));
  }
  file.require_unchanged();
}

}  // namespace superstep::data
