#include "superstep/onnx/exported/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/json.h"
#include "superstep/base/printable.h"
#include "superstep/base/shape.h"

namespace superstep::onnx {
namespace {

using nlohmann::json;

constexpr std::int64_t schema_read = 8;             // the major version of the schema; minor ones only add
constexpr std::uint64_t largest_text = 1ULL << 28;  // bytes of JSON: some hundred thousand nodes
constexpr std::int64_t most_rank = 32, most_elements = std::int64_t{1} << 40;  // beyond any model's

// Names of ScalarType in schema.py, ONNX's numbers and bytes; without the latter there is no such type here.
struct Known {
  std::int64_t number;
  const char* name;
  ExportedType type;
};
constexpr Known known_types[] = {{1, "uint8", {2, 1}},     {2, "int8", {3, 1}},     {3, "int16", {5, 2}},
                                 {4, "int32", {6, 4}},     {5, "int64", {7, 8}},    {6, "float16", {10, 2}},
                                 {7, "float32", {1, 4}},   {8, "float64", {11, 8}}, {9, "complex32", {}},
                                 {10, "complex64", {}},    {11, "complex128", {}},  {12, "bool", {9, 1}},
                                 {13, "bfloat16", {16, 2}}};

[[noreturn]] void damaged(const std::string& where, const std::string& why) {
  throw Error(ErrorCode::bad_file, why, where);
}

// {"as_int": 3}
std::int64_t fixed(const json& extent, const std::string& where, const std::string& name) {
  if (extent.is_object() && extent.contains("as_int") && extent["as_int"].is_number_integer())
    return extent["as_int"].get<std::int64_t>();
  damaged(where, fmt::format("weight '{}' has an extent that is no number", printable(name)));
}

std::vector<std::int64_t> fixed_list(const json& list, const std::string& where, const std::string& name) {
  std::vector<std::int64_t> values;
  if (!list.is_array() || list.size() > most_rank)
    damaged(where, fmt::format("weight '{}' is damaged", printable(name)));
  for (const json& each : list) values.push_back(fixed(each, where, name));
  return values;
}

// From the first element to the last one, both included; -1 where that is no tensor.
std::int64_t reach_of(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& strides) {
  if (extents.size() != strides.size()) return -1;
  std::int64_t reach = 1, count = 1;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    const std::int64_t extent = extents[axis], stride = strides[axis];
    if (extent < 0 || stride < 0 || (extent > 0 && count > most_elements / extent)) return -1;
    if (extent > 1 && stride > (most_elements - reach) / (extent - 1)) return -1;
    count *= extent;
    if (extent > 1) reach += (extent - 1) * stride;
  }
  return reach;
}

// Elements out of a storage by strides, into the row-major order.
std::string gathered(const std::string& storage, const std::vector<std::int64_t>& extents,
                     const std::vector<std::int64_t>& strides, std::int64_t offset, std::size_t size) {
  const std::int64_t count = Shape(extents).element_count();
  std::string elements(static_cast<std::size_t>(count) * size, '\0');
  std::vector<std::int64_t> index(extents.size(), 0);
  for (std::int64_t done = 0; done < count; ++done) {
    std::int64_t at = offset;
    for (std::size_t axis = 0; axis < index.size(); ++axis) at += index[axis] * strides[axis];
    std::memcpy(elements.data() + static_cast<std::size_t>(done) * size,
                storage.data() + static_cast<std::size_t>(at) * size, size);
    for (std::size_t axis = index.size(); axis-- > 0 && ++index[axis] == extents[axis];) index[axis] = 0;
  }
  return elements;
}

}  // namespace

ExportedType exported_type(std::int64_t number) {
  for (const Known& known : known_types) {
    if (known.number != number) continue;
    if (known.type.bytes > 0) return known.type;
    throw Error(ErrorCode::unsupported, fmt::format("numbers of type {} are not read", known.name));
  }
  throw Error(ErrorCode::unsupported, fmt::format("numbers of type {} are not read", number));
}

ExportedProgram::ExportedProgram(std::span<const std::byte> bytes, const std::string& where)
    : where_(where), zip_(bytes, where) {
  constexpr std::string_view mark = "archive_format";
  for (const data::ZipEntry& entry : zip_.entries())
    if (entry.name == mark || entry.name.ends_with("/archive_format"))
      prefix_ = entry.name.substr(0, entry.name.size() - mark.size());
  require_version();
  const json model = json_of(only_model());
  try {
    const std::int64_t major = model.at("schema_version").at("major");
    if (major != schema_read)
      throw Error(
          ErrorCode::unsupported,
          fmt::format("is of version {} of the schema of torch.export, and {} is read", major, schema_read),
          where, "write it by a PyTorch of this schema, as 2.15 is");
    producer_ = model.value("torch_version", "");
    graph_ = model.at("graph_module").at("graph");
    signature_ = model.at("graph_module").at("signature");
  } catch (const json::exception& error) {
    damaged(where, fmt::format("its graph is damaged: {}", error.what()));
  }
  read_weights("data/weights/", "model_weights_config.json");
  read_weights("data/constants/", "model_constants_config.json");
}

const data::ZipEntry* ExportedProgram::find(const std::string& name) const {
  const auto found = std::ranges::find(zip_.entries(), prefix_ + name, &data::ZipEntry::name);
  return found == zip_.entries().end() ? nullptr : &*found;
}

std::string ExportedProgram::text_of(const std::string& name) const {
  const data::ZipEntry* entry = find(name);
  if (!entry) damaged(where_, fmt::format("has no entry '{}'", printable(name)));
  if (entry->size > largest_text && name.ends_with(".json"))
    throw Error(ErrorCode::unsupported, fmt::format("'{}' is longer than 256 MB", printable(name)), where_);
  std::string text(entry->size, '\0');
  data::ZipReader::Stream stream(zip_, *entry);
  stream.read(std::as_writable_bytes(std::span(text)));
  stream.finish();
  return text;
}

json ExportedProgram::json_of(const std::string& name) const {
  json value = parse_json(text_of(name));
  if (!value.is_object()) damaged(where_, fmt::format("'{}' is no JSON", printable(name)));
  return value;
}

void ExportedProgram::require_version() const {
  const auto holds = [&](std::string_view ending) {
    return std::ranges::any_of(zip_.entries(), [&](const data::ZipEntry& entry) {
      return entry.name == ending || entry.name.ends_with("/" + std::string(ending));
    });
  };
  if (holds("serialized_exported_program.json"))
    throw Error(ErrorCode::unsupported, "is an archive of torch.export in an older form", where_,
                "write it anew by a newer PyTorch: torch.export.save(torch.export.load(FILE), FILE)");
  if (!holds("archive_format")) damaged(where_, "is a zip archive, but none of torch.export");
  const std::string format = text_of("archive_format"), version = text_of("archive_version");
  if (format != "pt2" || version != "0")
    throw Error(ErrorCode::unsupported,
                fmt::format("is an archive of format '{}', version {}; pt2, version 0, is read",
                            printable(format), printable(version)),
                where_);
  if (find("byteorder") && text_of("byteorder") != "little")
    throw Error(ErrorCode::unsupported, "its numbers begin with their largest byte", where_);
}

std::string ExportedProgram::only_model() const {
  std::vector<std::string> names;
  for (const data::ZipEntry& entry : zip_.entries())
    if (entry.name.starts_with(prefix_ + "models/") && entry.name.ends_with(".json"))
      names.push_back(entry.name.substr(prefix_.size()));
  if (names.size() == 1) return names.front();
  throw Error(ErrorCode::unsupported,
              names.empty() ? "holds no graph of torch.export, but what was compiled of one"
                            : fmt::format("holds {} models: {}", names.size(), fmt::join(names, ", ")),
              where_, "save one program: torch.export.save(torch.export.export(module, inputs), FILE)");
}

void ExportedProgram::read_weights(const std::string& folder, const std::string& list) {
  if (!find(folder + list)) return;
  const json all = json_of(folder + list);
  if (!all.contains("config") || !all["config"].is_object())
    damaged(where_, fmt::format("'{}' is damaged", list));
  for (const auto& [name, said] : all["config"].items()) {
    if (!said.is_object() || !said.contains("path_name") || !said["path_name"].is_string())
      damaged(where_, fmt::format("'{}' says nothing of '{}'", list, printable(name)));
    weights_.insert_or_assign(name, std::pair(folder + said["path_name"].get<std::string>(), said));
  }
}

ExportedType ExportedProgram::type(const std::string& value) const {
  const auto& values = graph_.at("tensor_values");
  if (!values.contains(value))
    damaged(where_, fmt::format("the graph names '{}', which nothing gives", printable(value)));
  return exported_type(values[value].at("dtype").get<std::int64_t>());
}

std::vector<ExportedExtent> ExportedProgram::extents(const std::string& value) const {
  static_cast<void>(type(value));
  std::vector<ExportedExtent> extents;
  for (const json& each : graph_.at("tensor_values")[value].at("sizes")) {
    ExportedExtent extent;
    if (each.contains("as_int")) extent.value = each["as_int"];
    if (each.contains("as_expr")) {  // "Symbol('s77', positive=True, integer=True)"
      const std::string text = each["as_expr"].at("expr_str");
      const std::size_t end = text.find('\'', 8);
      const bool alone =
          text.starts_with("Symbol('") && end != text.npos && text.find(')') + 1 == text.size();
      if (alone) extent.symbol = text.substr(8, end - 8);
    }
    extents.push_back(extent);
  }
  return extents;
}

ExportedProgram::Weight ExportedProgram::weight(const std::string& name) const {
  const auto found = weights_.find(name);
  if (found == weights_.end()) damaged(where_, fmt::format("has no weight '{}'", printable(name)));
  const auto& [entry, said] = found->second;
  const auto refuse = [&](const std::string& why) {
    damaged(where_, fmt::format("weight '{}' {}", printable(name), why));
  };
  if (said.value("use_pickle", false) || !said.contains("tensor_meta"))
    throw Error(ErrorCode::unsupported, fmt::format("weight '{}' is pickled", printable(name)), where_,
                "save it as a plain tensor");
  const json& meta = said["tensor_meta"];
  if (!meta.contains("dtype") || !meta.contains("sizes") || !meta.contains("strides")) refuse("is damaged");
  const ExportedType type = exported_type(meta["dtype"].get<std::int64_t>());
  const std::vector<std::int64_t> extents = fixed_list(meta["sizes"], where_, name),
                                  strides = fixed_list(meta["strides"], where_, name);
  const std::int64_t offset =
      meta.contains("storage_offset") ? fixed(meta["storage_offset"], where_, name) : 0;
  if (offset < 0) refuse("is damaged");
  const std::int64_t reach = reach_of(extents, strides),
                     count = reach < 0 ? -1 : Shape(extents).element_count();
  if (reach < 0 || offset > most_elements) refuse("is damaged");
  if (count > reach) refuse("has elements that lie over each other");
  const data::ZipEntry* stored = find(entry);
  if (!stored) refuse(fmt::format("lies in entry '{}', which is not there", printable(entry)));
  const std::uint64_t needed = count == 0 ? 0 : static_cast<std::uint64_t>(offset + reach) * type.bytes;
  if (stored->size < needed)
    refuse(fmt::format("has {} bytes, and its shape {} takes {}", stored->size, to_string(Shape(extents)),
                       needed));
  const std::string storage = text_of(entry);
  return {type.onnx, extents, gathered(storage, extents, strides, offset, type.bytes)};
}

}  // namespace superstep::onnx
