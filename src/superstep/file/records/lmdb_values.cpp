#include "superstep/file/records/lmdb_values.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/json.h"
#include "superstep/base/printable.h"
#include "superstep/file/npy.h"
#include "superstep/file/npz.h"
#include "superstep/file/records/json_values.h"

namespace superstep::data {
namespace {

using nlohmann::json;

std::optional<std::uint64_t> number_of_key(const std::string& key) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (error != std::errc() || end != key.data() + key.size() || key.empty()) return std::nullopt;
  return number;
}

bool begins_with(std::span<const std::byte> bytes, std::string_view begin) {
  return bytes.size() >= begin.size() &&
         std::equal(begin.begin(), begin.end(), reinterpret_cast<const char*>(bytes.data()));
}

bool is_zlib(std::span<const std::byte> bytes) {
  if (bytes.size() < 2) return false;
  const auto first = std::to_integer<unsigned>(bytes[0]), second = std::to_integer<unsigned>(bytes[1]);
  const bool gzip = first == 0x1f && second == 0x8b;
  // 32 KB of window and a header whose sum is a multiple of 31 (RFC 1950).
  return gzip || (first == 0x78 && (first * 256 + second) % 31 == 0);
}

// Protocols 2 and on begin with byte 128 and their number.
bool is_pickle(std::span<const std::byte> bytes) {
  constexpr unsigned newest_protocol = 5;
  if (bytes.size() < 3 || bytes[0] != std::byte{0x80}) return false;
  const auto protocol = std::to_integer<unsigned>(bytes[1]);
  return protocol >= 2 && protocol <= newest_protocol && bytes.back() == std::byte{'.'};
}

// A map of 1 to 15 pairs, or one whose length is written out.
bool is_messagepack(std::span<const std::byte> bytes) {
  if (bytes.empty()) return false;
  const auto first = std::to_integer<unsigned>(bytes[0]);
  return (first > 0x80 && first <= 0x8f) || first == 0xde || first == 0xdf;
}

[[noreturn]] void refuse_pickle(const std::string& what, const std::string& where) {
  throw Error(ErrorCode::unsupported, fmt::format("is {}, which may say anything", what), where,
              "write the numbers as npz, by a script that knows what they are: numpy.savez(buffer, x=..., "
              "target=...), put(key, buffer.getvalue())");
}

Record values_of_npz(std::span<const std::byte> bytes, const std::string& where) {
  Record record;
  for (auto& [name, tensor] : parse_npz(bytes, where)) record.push_back({name, std::move(tensor)});
  return record;
}

Record values_of_json(std::string_view text, const std::string& where) {
  json object = parse_json(text);
  if (object.is_discarded() || !object.is_object())
    throw Error(ErrorCode::bad_file, "is no JSON object", where);
  Record record;
  for (auto each = object.begin(); each != object.end();) {
    if (auto array = ase_array(each.value(), where)) {
      record.push_back({each.key(), std::move(*array)});
      each = object.erase(each);
    } else {
      ++each;
    }
  }
  add_json_values(record, object.dump(), where);
  return record;
}

}  // namespace

std::vector<LmdbEntry> samples_of(const Lmdb& base) {
  std::vector<std::pair<std::uint64_t, const LmdbEntry*>> numbered;
  for (const LmdbEntry& entry : base.entries())
    if (const auto number = number_of_key(entry.key)) numbered.emplace_back(*number, &entry);
  if (2 * numbered.size() <= base.entries().size()) return base.entries();
  std::ranges::sort(numbered, {}, &std::pair<std::uint64_t, const LmdbEntry*>::first);
  std::vector<LmdbEntry> samples;
  for (const auto& [number, entry] : numbered) samples.push_back(*entry);
  return samples;
}

std::vector<std::byte> unpacked_value(std::vector<std::byte> value, const std::string& where) {
  if (!is_zlib(value)) return value;
  z_stream stream{};
  constexpr int either_header = 15 + 32;
  if (inflateInit2(&stream, either_header) != Z_OK) throw Error(ErrorCode::out_of_memory, "zlib", where);
  constexpr std::size_t piece = 1 << 16, most = 256 << 20;  // of one value: chosen
  std::vector<std::byte> unpacked;
  stream.next_in = reinterpret_cast<Bytef*>(value.data());
  stream.avail_in = static_cast<uInt>(value.size());
  int code = Z_OK;
  while (code == Z_OK && unpacked.size() <= most) {
    const std::size_t before = unpacked.size();
    unpacked.resize(std::min(before + std::max(piece, before), most + 1));
    stream.next_out = reinterpret_cast<Bytef*>(unpacked.data() + before);
    stream.avail_out = static_cast<uInt>(unpacked.size() - before);
    code = inflate(&stream, Z_NO_FLUSH);
    unpacked.resize(unpacked.size() - stream.avail_out);
    if (code == Z_OK && stream.avail_in == 0 && stream.avail_out > 0) break;  // cut short
  }
  inflateEnd(&stream);
  if (unpacked.size() > most)
    throw Error(ErrorCode::bad_file, fmt::format("unpacks to more than {} MB", most >> 20), where,
                "a value is one sample");
  if (code != Z_STREAM_END) throw Error(ErrorCode::bad_file, "is packed by zlib, and damaged", where);
  return unpacked;
}

Record record_of_value(std::vector<std::byte> value, const std::string& where) {
  value = unpacked_value(std::move(value), where);
  if (begins_with(value, "PK\x03\x04")) return values_of_npz(value, where);
  if (begins_with(value, "\x93NUMPY")) return {{"value", parse_npy(value, where)}};
  if (is_pickle(value)) refuse_pickle("a pickle of Python", where);
  if (is_messagepack(value)) refuse_pickle("msgpack, or a pickle of Python", where);
  if (begins_with(value, "{"))
    return values_of_json({reinterpret_cast<const char*>(value.data()), value.size()}, where);
  return {{"value", std::move(value)}};
}

std::optional<Tensor> ase_array(const json& object, const std::string& where) {
  if (!object.is_object() || object.size() != 1 || !object.contains("__ndarray__")) return std::nullopt;
  const json& parts = object["__ndarray__"];
  const auto refuse = [&] { throw Error(ErrorCode::bad_file, "has a damaged array", where); };
  if (!parts.is_array() || parts.size() != 3 || !parts[0].is_array() || !parts[1].is_string() ||
      !parts[2].is_array())
    refuse();
  std::vector<std::int64_t> extents;
  for (const json& extent : parts[0]) {
    if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > parts[2].size()) refuse();
    extents.push_back(extent.get<std::int64_t>());
  }
  const bool floats = parts[1].get_ref<const std::string&>().starts_with("float");
  const Shape shape(extents);
  if (shape.element_count() != static_cast<std::int64_t>(parts[2].size())) refuse();
  Tensor tensor(floats ? ElementType::f64 : ElementType::i64, shape);
  for (std::size_t i = 0; i < parts[2].size(); ++i) {
    const json& number = parts[2][i];
    if (!number.is_number() && !number.is_boolean()) refuse();
    if (floats)
      tensor.as<double>()[i] = number.is_boolean() ? number.get<bool>() : number.get<double>();
    else
      tensor.as<std::int64_t>()[i] = number.is_boolean() ? number.get<bool>() : number.get<std::int64_t>();
  }
  return tensor;
}

}  // namespace superstep::data
