#include "superstep/edge/stream/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/json.h"
#include "superstep/base/text.h"
#include "superstep/edge/stream/cbor.h"
#include "superstep/edge/stream/pack.h"
#include "superstep/edge/stream/unpack.h"

namespace superstep::edge {
namespace {

using nlohmann::json;

constexpr const char* raw_protocol = "superstep-frame/1";
constexpr std::uint64_t tag_of_array = 40;  // RFC 8746: [[extents], elements]
constexpr std::size_t most_extents = 8;

[[noreturn]] void refuse(std::string why) {
  throw Error(ErrorCode::bad_file, std::move(why), "a frame's message");
}

struct TypedArray {
  std::uint64_t tag;  // RFC 8746, little-endian
  ElementType element;
};
constexpr TypedArray typed_arrays[] = {{64, ElementType::u8},  {69, ElementType::u16}, {70, ElementType::u32},
                                       {71, ElementType::u64}, {72, ElementType::i8},  {77, ElementType::i16},
                                       {78, ElementType::i32}, {79, ElementType::i64}, {84, ElementType::f16},
                                       {85, ElementType::f32}, {86, ElementType::f64}};

// What is whole, but not read here.
[[noreturn]] void refuse_unread(std::string why) {
  throw Error(ErrorCode::unsupported, std::move(why), "a frame's message");
}

std::string series_name(std::string_view name) {
  if (!is_series_name(name))
    refuse("a series has no name, or one that is none: letters, digits, '-', '_' and '.'");
  return std::string(name);
}

std::uint64_t bytes_of(const Frame& frame) {
  std::uint64_t bytes = size_in_bytes(frame.element);
  for (const std::int64_t extent : frame.extents) {
    if (extent < 1 || extent > (1 << 24)) refuse("an extent that is none");
    bytes *= static_cast<std::uint64_t>(extent);
    if (bytes > (std::uint64_t{1} << 30)) refuse("a frame that is too large");
  }
  return bytes;
}

void check(const Frame& frame) {
  if (frame.number >= most_frames) refuse(fmt::format("frame {} is beyond what is counted", frame.number));
  if (frame.extents.size() > most_extents) refuse("an array of too many extents");
  const std::uint64_t bytes = bytes_of(frame);
  if (bytes != frame.pixels.size())
    refuse(fmt::format("{} bytes of pixels where its shape takes {}", frame.pixels.size(), bytes));
}

// --- stream2

// Calls `each` with every key of a map; `each` takes the value.
template <class Each>
void for_each_key(CborReader& reader, const Each& each) {
  bool indefinite = false;
  const std::uint64_t pairs = reader.begin(CborKind::map, indefinite);
  for (std::uint64_t i = 0; indefinite ? !reader.at_break() : i < pairs; ++i) each(reader.text());
}

ElementType element_of(std::uint64_t tag) {
  for (const TypedArray& array : typed_arrays)
    if (array.tag == tag) return array.element;
  refuse_unread(fmt::format("arrays of tag {} (RFC 8746) are not read", tag));
}

// DECTRIS' tag for compressed bytes: [method, bytes of an element, what is packed].
constexpr std::uint64_t tag_of_compression = 56500;

void read_compressed(CborReader& reader, Frame& frame) {
  if (const std::uint64_t tag = reader.tag(); tag != tag_of_compression)
    refuse_unread(fmt::format("pixels in the form of tag {} are not read", tag));
  bool indefinite = false;
  if (reader.begin(CborKind::array, indefinite) != 3 || indefinite) refuse("compressed pixels that are none");
  const std::string_view method = reader.text();
  const std::uint64_t element_bytes = reader.unsigned_integer();
  if (element_bytes != size_in_bytes(frame.element)) refuse("compressed pixels of another type");
  frame.unpacked = std::make_shared<const std::vector<std::byte>>(
      unpack(method, element_bytes, reader.bytes(), bytes_of(frame)));
  frame.pixels = *frame.unpacked;
}

void read_pixels(CborReader& reader, Frame& frame) {
  if (reader.tag() != tag_of_array) refuse("pixels that are no array");
  bool indefinite = false;
  if (reader.begin(CborKind::array, indefinite) != 2 || indefinite) refuse("pixels that are no array");
  const std::uint64_t extents = reader.begin(CborKind::array, indefinite);
  if (indefinite || extents > most_extents) refuse("an array of too many extents");
  for (std::uint64_t i = 0; i < extents; ++i) {
    const std::uint64_t extent = reader.unsigned_integer();
    frame.extents.push_back(static_cast<std::int64_t>(std::min<std::uint64_t>(extent, INT64_MAX)));
  }
  frame.element = element_of(reader.tag());
  if (reader.next_kind() == CborKind::tag) return read_compressed(reader, frame);
  frame.pixels = reader.bytes();
}

// Channels by name, one for each threshold: the one that was asked for, else the first.
void read_channels(CborReader& reader, Frame& frame, std::string_view channel) {
  bool found = false;
  for_each_key(reader, [&](std::string_view name) {
    if (!found && (channel.empty() || name == channel)) {
      read_pixels(reader, frame);
      found = true;
    } else {
      frame.other_channels.emplace_back(name.substr(0, 40));
      reader.skip();
    }
  });
  if (!found && frame.other_channels.empty()) refuse("a frame without pixels");
  if (!found)
    refuse_unread(
        fmt::format("there is no channel '{}': it has {}", channel, join(frame.other_channels, ", ")));
}

std::pair<double, double> checked(double y, double x) {
  if (!std::isfinite(y) || !std::isfinite(x)) refuse("a position that is none");
  return {y, x};
}

// What the user had the detector send along: a map may say where the stage was.
void read_user_data(CborReader& reader, Frame& frame) {
  if (reader.next_kind() != CborKind::map) return reader.skip();
  for_each_key(reader, [&](std::string_view key) {
    if (key != "position") return reader.skip();
    bool indefinite = false;
    if (reader.begin(CborKind::array, indefinite) != 2 || indefinite) refuse("a position that is none");
    const double y = reader.number();
    frame.position = checked(y, reader.number());
  });
}

struct Stream2Fields {
  std::string type, series;
  std::uint64_t frames = 0;
  bool has_number = false, has_pixels = false;
  std::string_view channel;
  Frame frame;
};

void read_field(CborReader& reader, std::string_view key, Stream2Fields& fields) {
  if (key == "type")
    fields.type = reader.text();
  else if (key == "series_unique_id")
    fields.series = reader.text();
  else if (key == "number_of_images" && reader.next_kind() == CborKind::unsigned_integer)
    fields.frames = reader.unsigned_integer();
  else if (key == "user_data")
    read_user_data(reader, fields.frame);
  else if (key == "image_id") {
    fields.frame.number = reader.unsigned_integer();
    fields.has_number = true;
  } else if (key == "data" && !fields.has_pixels) {
    read_channels(reader, fields.frame, fields.channel);
    fields.has_pixels = true;
  } else
    reader.skip();
}

StreamMessage decode_stream2(std::span<const std::byte> bytes, std::string_view channel) {
  CborReader reader(bytes);
  constexpr std::uint64_t self_described = 55799;  // RFC 8949: marks a document as CBOR
  if (reader.next_kind() == CborKind::tag && reader.tag() != self_described) refuse("no message of a stream");
  Stream2Fields fields{.channel = channel};
  for_each_key(reader, [&](std::string_view key) { read_field(reader, key, fields); });
  if (!reader.empty()) refuse("bytes are left behind the message");
  const std::string series = series_name(fields.series);
  if (fields.type == "start") return SeriesBegin{series, fields.frames};
  if (fields.type == "end") return SeriesEnd{series};
  if (fields.type != "image")
    refuse(fmt::format("a message of the unknown type '{}'", fields.type.substr(0, 40)));
  if (!fields.has_number || !fields.has_pixels) refuse("an image without number or pixels");
  fields.frame.series = series;
  check(fields.frame);
  return fields.frame;
}

// --- raw

const json& member(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) refuse(fmt::format("'{}' is missing", name));
  return *found;
}

std::uint64_t number(const json& object, const char* name) {
  const json& value = member(object, name);
  if (!value.is_number_unsigned()) refuse(fmt::format("'{}' is no number", name));
  return value.get<std::uint64_t>();
}

std::string text(const json& object, const char* name) {
  const json& value = member(object, name);
  if (!value.is_string()) refuse(fmt::format("'{}' is no text", name));
  return value.get<std::string>();
}

Frame raw_frame(const json& head, std::span<const std::byte> pixels) {
  Frame frame{.series = series_name(text(head, "series")), .number = number(head, "frame"), .pixels = pixels};
  const auto element = element_type_from_name(text(head, "dtype"));
  if (!element) refuse("'dtype' is no type of numbers");
  frame.element = *element;
  const json& shape = member(head, "shape");
  if (!shape.is_array() || shape.size() > most_extents) refuse("'shape' is no list of extents");
  for (const json& extent : shape) {
    if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > INT64_MAX)
      refuse("'shape' is no list of extents");
    frame.extents.push_back(extent.get<std::int64_t>());
  }
  if (const auto found = head.find("position"); found != head.end()) {
    if (!found->is_array() || found->size() != 2 || !(*found)[0].is_number() || !(*found)[1].is_number())
      refuse("'position' is no pair of numbers");
    frame.position = checked((*found)[0].get<double>(), (*found)[1].get<double>());
  }
  check(frame);
  return frame;
}

StreamMessage decode_raw(std::span<const std::span<const std::byte>> parts) {
  constexpr std::size_t longest_head = 64 * 1024;
  if (parts[0].size() > longest_head) refuse("a head that is too long");
  const std::string_view bytes(reinterpret_cast<const char*>(parts[0].data()), parts[0].size());
  const json head = parse_json(bytes);
  if (!head.is_object() || text(head, "protocol") != raw_protocol) refuse("no message of a stream");
  const std::string type = text(head, "type");
  if (parts.size() != (type == "frame" ? 2U : 1U)) refuse("a message of another number of parts");
  if (type == "frame") return raw_frame(head, parts[1]);
  const std::string series = series_name(text(head, "series"));
  if (type == "start") return SeriesBegin{series, head.contains("frames") ? number(head, "frames") : 0};
  if (type == "end") return SeriesEnd{series};
  refuse(fmt::format("a message of the unknown type '{}'", type.substr(0, 40)));
}

}  // namespace

WireFormat wire_format_from_name(std::string_view name) {
  if (name == "raw") return WireFormat::raw;
  if (name == "stream2") return WireFormat::stream2;
  throw Error(ErrorCode::invalid_argument, fmt::format("there is no format '{}'", name), "--format",
              "there are raw and stream2");
}

StreamMessage decode_message(std::span<const std::span<const std::byte>> parts, std::string_view channel) {
  if (parts.empty() || parts[0].empty()) refuse("an empty message");
  if (static_cast<char>(parts[0][0]) == '{') return decode_raw(parts);
  if (parts.size() != 1) refuse("a message of another number of parts");
  return decode_stream2(parts[0], channel);
}

std::vector<std::string> encode_begin(WireFormat format, const SeriesBegin& begin, const Frame& like) {
  if (format == WireFormat::raw)
    return {json{
        {"protocol", raw_protocol}, {"type", "start"}, {"series", begin.series}, {"frames", begin.frames}}
                .dump()};
  const std::size_t rank = like.extents.size();
  CborWriter writer;
  writer.map(8).text("type").text("start").text("series_id").unsigned_integer(1);
  writer.text("series_unique_id").text(begin.series).text("number_of_images").unsigned_integer(begin.frames);
  writer.text("image_size_x")
      .unsigned_integer(rank > 0 ? static_cast<std::uint64_t>(like.extents[rank - 1]) : 1);
  writer.text("image_size_y")
      .unsigned_integer(rank > 1 ? static_cast<std::uint64_t>(like.extents[rank - 2]) : 1);
  writer.text("image_dtype").text(name_of(like.element)).text("channels").array(1).text("threshold_1");
  return {writer.take()};
}

std::vector<std::string> encode_frame(WireFormat format, const Frame& frame, std::string_view compression) {
  const std::string_view pixels(reinterpret_cast<const char*>(frame.pixels.data()), frame.pixels.size());
  if (format == WireFormat::raw) {
    if (!compression.empty())
      throw Error(ErrorCode::unsupported, "pixels go as they are", "raw", "--format stream2 compresses them");
    json head{{"protocol", raw_protocol}, {"type", "frame"},        {"series", frame.series},
              {"frame", frame.number},    {"shape", frame.extents}, {"dtype", name_of(frame.element)}};
    if (frame.position) head["position"] = {frame.position->first, frame.position->second};
    return {head.dump(), std::string(pixels)};
  }
  const auto array = std::ranges::find(typed_arrays, frame.element, &TypedArray::element);
  if (array == std::end(typed_arrays))
    throw Error(ErrorCode::unsupported, fmt::format("has no arrays of {}", name_of(frame.element)), "stream2",
                "--format raw has");
  CborWriter writer;
  writer.map(frame.position ? 6 : 5).text("type").text("image").text("series_id").unsigned_integer(1);
  writer.text("series_unique_id").text(frame.series).text("image_id").unsigned_integer(frame.number);
  writer.text("data").map(1).text("threshold_1").tag(tag_of_array).array(2).array(frame.extents.size());
  for (const std::int64_t extent : frame.extents) writer.unsigned_integer(static_cast<std::uint64_t>(extent));
  writer.tag(array->tag);
  if (compression.empty()) {
    writer.bytes(frame.pixels);
  } else {
    const std::size_t element_bytes = size_in_bytes(frame.element);
    const std::string packed = pack(compression, element_bytes, frame.pixels);
    writer.tag(tag_of_compression).array(3).text(compression).unsigned_integer(element_bytes);
    writer.bytes(std::as_bytes(std::span(packed)));
  }
  if (frame.position) {
    writer.text("user_data").map(1).text("position").array(2);
    writer.number(frame.position->first).number(frame.position->second);
  }
  return {writer.take()};
}

std::vector<std::string> encode_end(WireFormat format, const SeriesEnd& end) {
  if (format == WireFormat::raw)
    return {json{{"protocol", raw_protocol}, {"type", "end"}, {"series", end.series}}.dump()};
  CborWriter writer;
  writer.map(3).text("type").text("end").text("series_id").unsigned_integer(1);
  writer.text("series_unique_id").text(end.series);
  return {writer.take()};
}

}  // namespace superstep::edge
