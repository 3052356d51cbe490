#include "superstep/file/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "superstep/base/encoding/sha256.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/system/mapped_file.h"

namespace superstep::data {
namespace {

using nlohmann::json;

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t largest_header = 100'000'000;  // the limit of the format's own library

struct TypeName {
  const char* name;
  ElementType type;
  BlockFormat blocks = BlockFormat::none;
  std::uint64_t unread_bits = 0;  // of an element of a type that is not read
};
constexpr TypeName type_names[] = {{"F64", ElementType::f64},
                                   {"F32", ElementType::f32},
                                   {"F16", ElementType::f16},
                                   {"BF16", ElementType::bf16},
                                   {"I64", ElementType::i64},
                                   {"I32", ElementType::i32},
                                   {"I16", ElementType::i16},
                                   {"I8", ElementType::i8},
                                   {"U64", ElementType::u64},
                                   {"U32", ElementType::u32},
                                   {"U16", ElementType::u16},
                                   {"U8", ElementType::u8},
                                   {"BOOL", ElementType::boolean},
                                   {"F8_E4M3", ElementType::f32, BlockFormat::f8_e4m3},
                                   {"F8_E5M2", ElementType::f32, BlockFormat::f8_e5m2},
                                   {"F8_E4M3FNUZ", ElementType::f32, BlockFormat::f8_e4m3fnuz},
                                   {"F8_E5M2FNUZ", ElementType::f32, BlockFormat::f8_e5m2fnuz},
                                   {"F8_E8M0", ElementType::f32, BlockFormat::f8_e8m0},
                                   {"F4", ElementType::f32, BlockFormat::none, 4},
                                   {"F6_E2M3", ElementType::f32, BlockFormat::none, 6},
                                   {"F6_E3M2", ElementType::f32, BlockFormat::none, 6},
                                   {"C64", ElementType::f32, BlockFormat::none, 64}};

const char* safetensors_name(ElementType type) {
  return std::ranges::find(type_names, type, &TypeName::type)->name;
}

[[noreturn]] void refuse(const std::string& where, std::string message) {
  throw Error(ErrorCode::bad_file, std::move(message), where);
}

std::uint64_t header_length(std::span<const std::byte> bytes, const std::string& where) {
  if (bytes.size() < length_bytes)
    refuse(where, "this is not a safetensors file: it is shorter than 8 bytes");
  std::uint64_t length = 0;
  for (std::size_t i = length_bytes; i-- > 0;)
    length = length << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  if (length > largest_header) refuse(where, "this is not a safetensors file: its header would be too long");
  if (length > bytes.size() - length_bytes) refuse(where, "the header is cut short");
  return length;
}

json parse_header(std::string_view text, const std::string& where) {
  json header = parse_json(text);
  if (!header.is_object()) refuse(where, "the header is not a JSON object");
  return header;
}

const TypeName& type_of(const json& entry, const std::string& where) {
  if (!entry.contains("dtype") || !entry["dtype"].is_string()) refuse(where, "it has no dtype");
  const auto name = entry["dtype"].get<std::string>();
  const auto* found =
      std::ranges::find_if(type_names, [&](const TypeName& known) { return known.name == name; });
  if (found == std::end(type_names))
    throw Error(ErrorCode::unsupported, fmt::format("elements of type {} are not read", name), where);
  return *found;
}

// Bits of one element in the file.
std::uint64_t bits_of(const TypeName& type) {
  if (type.unread_bits > 0) return type.unread_bits;
  return type.blocks == BlockFormat::none ? 8 * size_in_bytes(type.type) : 8;
}

// A list of whole numbers that are not negative.
std::vector<std::int64_t> numbers(const json& entry, const char* key, const std::string& where) {
  std::vector<std::int64_t> values;
  if (!entry.contains(key) || !entry[key].is_array()) refuse(where, fmt::format("it has no {}", key));
  for (const json& value : entry[key]) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
      refuse(where, fmt::format("its {} is damaged", key));
    values.push_back(value.get<std::int64_t>());
  }
  return values;
}

Shape checked_shape(std::vector<std::int64_t> extents, const std::string& where) {
  try {
    return Shape(std::move(extents));
  } catch (const Error& error) {
    refuse(where, error.message());
  }
}

struct Placed {
  std::string name;
  const TypeName* type;
  Shape shape;
  std::uint64_t begin, end;
};

Placed parse_entry(const std::string& name, const json& entry, const std::string& where) {
  if (!entry.is_object()) refuse(where, "its entry in the header is damaged");
  Placed placed{name, &type_of(entry, where), checked_shape(numbers(entry, "shape", where), where), 0, 0};
  const std::vector<std::int64_t> offsets = numbers(entry, "data_offsets", where);
  if (offsets.size() != 2 || offsets[0] > offsets[1]) refuse(where, "its data_offsets are damaged");
  placed.begin = static_cast<std::uint64_t>(offsets[0]);
  placed.end = static_cast<std::uint64_t>(offsets[1]);
  std::uint64_t size = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(placed.shape.element_count()), bits_of(*placed.type),
                             &size) ||
      (size + 7) / 8 != placed.end - placed.begin)
    refuse(where, fmt::format("its shape {} of {} does not fit its {} bytes", to_string(placed.shape),
                              placed.type->name, placed.end - placed.begin));
  return placed;
}

std::map<std::string, std::string> parse_metadata(const json& entry, const std::string& where) {
  std::map<std::string, std::string> metadata;
  if (!entry.is_object()) refuse(where, "its metadata is not an object");
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) refuse(where, fmt::format("its metadata '{}' is not a string", key));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

// Every byte of the data must belong to exactly one tensor.
void require_dense(std::vector<Placed>& placed, std::uint64_t size, const std::string& where) {
  std::ranges::sort(placed, {}, [](const Placed& p) { return std::pair(p.begin, p.end); });
  std::uint64_t at = 0;
  for (const Placed& p : placed) {
    if (p.begin != at)
      refuse(where,
             fmt::format("tensor '{}' begins at byte {} where byte {} was expected", p.name, p.begin, at));
    at = p.end;
  }
  if (at != size)
    refuse(where, fmt::format("the header describes {} bytes of data and the file has {}", at, size));
}

Tensor copy_out(const SafetensorsPlace& placed, const std::string& where) {
  Tensor tensor(placed.type, placed.shape);
  const std::span<const std::byte> bytes = placed.bytes;
  if (placed.blocks != BlockFormat::none) {
    unpack_blocks(placed.blocks, bytes, tensor.as<float>());
    return tensor;
  }
  if (placed.type == ElementType::boolean &&
      std::ranges::any_of(bytes, [](std::byte byte) { return byte > std::byte{1}; }))
    refuse(where, "it has a boolean that is neither 0 nor 1");
  constexpr std::size_t piece_bytes = 1 << 24;
  InterruptCheck stop;
  for (std::size_t done = 0; done < bytes.size(); stop.throw_if_due(where)) {
    const std::size_t piece = std::min(piece_bytes, bytes.size() - done);
    std::memcpy(tensor.bytes() + done, bytes.data() + done, piece);
    done += piece;
  }
  return tensor;
}

}  // namespace

SafetensorsLayout safetensors_layout(std::span<const std::byte> bytes, std::string_view source) {
  const std::string where(source);
  const std::uint64_t length = header_length(bytes, where);
  const json header =
      parse_header({reinterpret_cast<const char*>(bytes.data()) + length_bytes, length}, where);
  const std::span<const std::byte> data = bytes.subspan(length_bytes + length);
  SafetensorsLayout layout;
  std::vector<Placed> placed;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__")
      layout.metadata = parse_metadata(entry, where);
    else
      placed.push_back(parse_entry(name, entry, fmt::format("{}: tensor '{}'", where, name)));
  }
  require_dense(placed, data.size(), where);
  for (const Placed& p : placed)
    layout.places.push_back({p.name, p.type->type, p.shape, data.subspan(p.begin, p.end - p.begin),
                             p.type->blocks, p.type->unread_bits > 0 ? p.type->name : ""});
  return layout;
}

SafetensorsFile parse_safetensors(std::span<const std::byte> bytes, std::string_view source) {
  const std::string where(source);
  SafetensorsLayout layout = safetensors_layout(bytes, source);
  double wanted = 0;
  for (const SafetensorsPlace& place : layout.places)
    wanted +=
        static_cast<double>(place.shape.element_count()) * static_cast<double>(size_in_bytes(place.type));
  require_memory(wanted, where);
  SafetensorsFile file{{}, std::move(layout.metadata)};
  for (const SafetensorsPlace& place : layout.places)
    if (place.unread.empty())
      file.tensors[place.name] = copy_out(place, fmt::format("{}: tensor '{}'", where, place.name));
    else
      file.unread[place.name] = place.unread;
  return file;
}

SafetensorsFile read_safetensors(const std::filesystem::path& path) {
  const MappedFile file(path);
  return parse_safetensors(file.bytes(), path.string());
}

namespace {

// The file up to its tensors: the length of the header and the header itself.
std::string format_header(const SafetensorsFile& file) {
  json header = json::object();
  if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
  std::uint64_t end = 0;
  for (const auto& [name, tensor] : file.tensors) {
    const std::uint64_t begin = end;
    end += tensor.byte_count();
    header[name] = {{"dtype", safetensors_name(tensor.type())},
                    {"shape", tensor.shape().extents()},
                    {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);  // names may not be UTF-8
  text.append((length_bytes - text.size() % length_bytes) % length_bytes, ' ');    // aligns the data
  std::string length(length_bytes, '\0');
  for (std::size_t i = 0; i < length_bytes; ++i) length[i] = static_cast<char>(text.size() >> (8 * i));
  return length + text;
}

// The whole file; the tensors' elements where they lie.
std::vector<std::string_view> pieces_of(const SafetensorsFile& file, const std::string& header) {
  std::vector<std::string_view> pieces{header};
  for (const auto& [name, tensor] : file.tensors)
    pieces.emplace_back(reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_count());
  return pieces;
}

}  // namespace

std::vector<std::byte> format_safetensors(const SafetensorsFile& file) {
  const std::string header = format_header(file);
  std::vector<std::byte> bytes;
  for (const std::string_view piece : pieces_of(file, header)) {
    const auto* begin = reinterpret_cast<const std::byte*>(piece.data());
    bytes.insert(bytes.end(), begin, begin + piece.size());
  }
  return bytes;
}

std::string digest_of(const SafetensorsFile& file) {
  Sha256 hash;
  const auto add = [&](std::string_view text) {
    const std::uint64_t length = text.size();  // "ab", "c" is not "a", "bc"
    hash.add(std::as_bytes(std::span(&length, 1)));
    hash.add(std::as_bytes(std::span(text)));
  };
  for (const auto& [key, value] : file.metadata) {
    if (key == digest_entry) continue;
    add(key);
    add(value);
  }
  for (const auto& [name, tensor] : file.tensors) {
    add(name);
    add(fmt::format("{}{}", name_of(tensor.type()), to_string(tensor.shape())));
    hash.add({tensor.bytes(), tensor.byte_count()});
  }
  return hash.hexadecimal();
}

void write_safetensors(const std::filesystem::path& path, const SafetensorsFile& file) {
  const std::string header = format_header(file);
  write_file_atomically(path, pieces_of(file, header));
}

}  // namespace superstep::data
