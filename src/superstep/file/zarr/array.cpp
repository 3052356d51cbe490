#include "superstep/file/zarr/array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/printable.h"

namespace superstep::data::zarr {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// What keeps an array from being read.
struct Unread {
  std::string why;
};

struct Type {
  ElementType type;
  bool swapped;
};

// NumPy's way: "<f4", ">u2", "|b1".
Type type_of_v2(const json& given) {
  static const std::map<std::string, ElementType> types = {
      {"b1", ElementType::boolean}, {"i1", ElementType::i8},  {"u1", ElementType::u8},
      {"i2", ElementType::i16},     {"u2", ElementType::u16}, {"i4", ElementType::i32},
      {"u4", ElementType::u32},     {"i8", ElementType::i64}, {"u8", ElementType::u64},
      {"f2", ElementType::f16},     {"f4", ElementType::f32}, {"f8", ElementType::f64}};
  const std::string text = given.is_string() ? given.get<std::string>() : "";
  const auto found = types.find(text.empty() ? "" : text.substr(1));
  if (found == types.end()) throw Unread{fmt::format("of the type {}", printable(given.dump()))};
  return {found->second, text[0] == '>' && size_in_bytes(found->second) > 1};
}

ElementType type_of_v3(const json& given) {
  static const std::map<std::string, ElementType> types = {
      {"bool", ElementType::boolean}, {"int8", ElementType::i8},     {"uint8", ElementType::u8},
      {"int16", ElementType::i16},    {"uint16", ElementType::u16},  {"int32", ElementType::i32},
      {"uint32", ElementType::u32},   {"int64", ElementType::i64},   {"uint64", ElementType::u64},
      {"float16", ElementType::f16},  {"float32", ElementType::f32}, {"float64", ElementType::f64},
      {"bfloat16", ElementType::bf16}};
  const auto found = types.find(given.is_string() ? given.get<std::string>() : "");
  if (found == types.end()) throw Unread{fmt::format("of the type {}", printable(given.dump()))};
  return found->second;
}

Shape shape_of(const json& given, bool positive) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  std::vector<std::int64_t> extents;
  double elements = 1;
  if (!given.is_array() || given.size() > 16) throw Unread{"its shape is none"};
  for (const json& extent : given) {
    if (!extent.is_number_integer()) throw Unread{"its shape is none"};
    extents.push_back(extent.get<std::int64_t>());
    if (extents.back() < (positive ? 1 : 0) || extents.back() > most) throw Unread{"its shape is none"};
    elements *= static_cast<double>(extents.back());
  }
  if (elements > 0x1p55) throw Unread{"it has more elements than any memory"};
  return Shape(extents);
}

double fill_of(const json& given) {
  if (given.is_null()) return 0;
  if (given.is_boolean()) return given.get<bool>() ? 1 : 0;
  if (given.is_number()) return given.get<double>();
  const std::string text = given.is_string() ? given.get<std::string>() : "";
  if (text == "NaN") return NAN;
  if (text == "Infinity") return INFINITY;
  if (text == "-Infinity") return -INFINITY;
  throw Unread{fmt::format("its fill value is {}", printable(given.dump()))};
}

Codec codec_named(const std::string& name) {
  static const std::map<std::string, Codec> codecs = {{"zlib", Codec::deflate},
                                                      {"gzip", Codec::deflate},
                                                      {"zstd", Codec::zstd},
                                                      {"blosc", Codec::blosc},
                                                      {"crc32c", Codec::checksum}};
  const auto found = codecs.find(name);
  if (found == codecs.end() || !is_known(found->second))
    throw Unread{fmt::format("packed by {}, which is not read", printable(name))};
  return found->second;
}

const json& member(const json& object, const char* name) {
  static const json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

std::string text_of(const json& given, const char* otherwise) {
  return given.is_string() ? given.get<std::string>() : otherwise;
}

void read_v2(Array& array, const json& given) {
  const auto [type, swapped] = type_of_v2(member(given, "dtype"));
  array.type = type, array.swapped = swapped;
  array.shape = shape_of(member(given, "shape"), false);
  array.chunk = shape_of(member(given, "chunks"), true);
  array.fill = fill_of(member(given, "fill_value"));
  if (text_of(member(given, "order"), "C") != "C" && array.shape.rank() > 1)
    throw Unread{"its order is by columns"};
  if (const json& filters = member(given, "filters"); filters.is_array() && !filters.empty())
    throw Unread{fmt::format("filtered by {}", printable(text_of(member(filters[0], "id"), "?")))};
  if (const json& packing = member(given, "compressor"); packing.is_object())
    array.codecs.push_back(codec_named(text_of(member(packing, "id"), "?")));
  array.separator = text_of(member(given, "dimension_separator"), ".") == "/" ? '/' : '.';
}

void add_codec_v3(Array& array, const json& codec, bool first) {
  const std::string name = text_of(member(codec, "name"), "?");
  const json& settings = member(codec, "configuration");
  if (name == "bytes") {
    array.swapped = text_of(member(settings, "endian"), "little") == "big" && size_in_bytes(array.type) > 1;
    return;
  }
  if (first) throw Unread{fmt::format("packed by {}, which is not read", printable(name))};
  const Codec codec_of_it = codec_named(name);
  const auto packs = [](Codec each) { return each != Codec::checksum; };
  if (packs(codec_of_it) && std::ranges::any_of(array.codecs, packs)) throw Unread{"packed twice"};
  array.codecs.push_back(codec_of_it);
}

void read_v3(Array& array, const json& given) {
  array.type = type_of_v3(member(given, "data_type"));
  array.shape = shape_of(member(given, "shape"), false);
  const json& grid = member(given, "chunk_grid");
  if (text_of(member(grid, "name"), "") != "regular") throw Unread{"its chunks are not all alike"};
  array.chunk = shape_of(member(member(grid, "configuration"), "chunk_shape"), true);
  array.fill = fill_of(member(given, "fill_value"));
  const json &codecs = member(given, "codecs"), &keys = member(given, "chunk_key_encoding");
  for (std::size_t i = 0; codecs.is_array() && i < codecs.size(); ++i) add_codec_v3(array, codecs[i], i == 0);
  const bool as_v2 = text_of(member(keys, "name"), "default") == "v2";
  array.prefix = as_v2 ? "" : "c";
  array.separator =
      text_of(member(member(keys, "configuration"), "separator"), as_v2 ? "." : "/")[0] == '/' ? '/' : '.';
  if (const json& more = member(given, "storage_transformers"); more.is_array() && !more.empty())
    throw Unread{"its chunks are stored in another way"};
}

json metadata_of(const fs::path& file) {
  json given = parse_json(read_text_file(file));
  if (given.is_discarded() || !given.is_object())
    throw Error(ErrorCode::bad_file, "is no metadata of Zarr", file.string());
  return given;
}

class Walk {
 public:
  Walk(const fs::path& store, std::vector<std::string>& others) : store_(store), others_(others) {}

  void descend(const fs::path& folder, int levels) {
    constexpr int deepest = 16;
    std::error_code none;
    if (fs::exists(folder / ".zarray", none)) return add(folder, folder / ".zarray", read_v2);
    if (fs::exists(folder / "zarr.json", none)) {
      const json given = metadata_of(folder / "zarr.json");
      if (text_of(member(given, "node_type"), "") == "array")
        return add(folder, folder / "zarr.json", read_v3);
    }
    std::vector<fs::path> inside;
    for (const auto& entry : fs::directory_iterator(folder, none))
      if (entry.is_directory(none) && !entry.is_symlink(none)) inside.push_back(entry.path());
    std::ranges::sort(inside);
    if (levels < deepest)
      for (const fs::path& each : inside) descend(each, levels + 1);
  }

  std::vector<Array> arrays;

 private:
  void add(const fs::path& folder, const fs::path& file, void (*read)(Array&, const json&)) {
    const std::string path = folder.lexically_relative(store_).string();
    Array array{.name = path == "." ? "" : path, .folder = folder};
    try {
      read(array, metadata_of(file));
      if (array.shape.rank() != array.chunk.rank()) throw Unread{"its chunks have another rank"};
      arrays.push_back(std::move(array));
    } catch (const Unread& unread) {
      others_.push_back(fmt::format("'{}' ({})", printable(array.name), unread.why));
    }
  }

  fs::path store_;
  std::vector<std::string>& others_;
};

}  // namespace

std::string Array::where() const { return fmt::format("{}: array '{}'", folder.string(), printable(name)); }

fs::path Array::chunk_path(const std::vector<std::int64_t>& numbers) const {
  std::string key = prefix;
  for (const std::int64_t number : numbers) {
    if (!key.empty()) key += separator;
    key += std::to_string(number);
  }
  return folder / (key.empty() ? "0" : key);
}

bool is_store(const fs::path& folder) {
  std::error_code none;
  if (!fs::is_directory(folder, none)) return false;
  return std::ranges::any_of(std::initializer_list<const char*>{".zgroup", ".zarray", "zarr.json"},
                             [&](const char* name) { return fs::is_regular_file(folder / name, none); });
}

std::vector<Array> arrays_of(const fs::path& store, std::vector<std::string>& others) {
  Walk walk(store, others);
  walk.descend(store, 0);
  return std::move(walk.arrays);
}

}  // namespace superstep::data::zarr
