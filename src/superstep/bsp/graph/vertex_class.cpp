#include "superstep/bsp/graph/vertex_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace superstep::bsp {

const char* name_of(VertexKind kind) {
  switch (kind) {
    case VertexKind::worker: return "worker";
    case VertexKind::multi: return "multi-vertex";
    case VertexKind::supervisor: return "supervisor";
  }
  return "?";
}

std::uint64_t state_bytes(VectorLayout layout) {
  switch (layout) {
    case VectorLayout::span: return 8;
    case VectorLayout::short_span:
    case VectorLayout::one_ptr: return 4;
    default: return 2;
  }
}

std::uint64_t unpack_cycles(VectorLayout layout) {
  switch (layout) {
    case VectorLayout::scaled_ptr32:
    case VectorLayout::short_span: return 2;
    case VectorLayout::scaled_ptr64:
    case VectorLayout::scaled_ptr128: return 1;
    default: return 0;
  }
}

VertexFields& VertexFields::add(std::string_view name, Type type, std::vector<std::int64_t> sizes) {
  entries_.push_back({name, type, std::move(sizes)});
  return *this;
}

VertexFields& VertexFields::add_value(std::string_view name, Type type, double value) {
  entries_.push_back({name, type, {}, value});
  return *this;
}

const VertexFields::Entry* VertexFields::find(std::string_view name) const {
  for (const Entry& entry : entries_)
    if (entry.name == name) return &entry;
  return nullptr;
}

const VertexFields::Entry& VertexFields::get(std::string_view name) const {
  if (const Entry* entry = find(name)) return *entry;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("a cost function asks for the field '{}', which is not there", name));
}

std::int64_t VertexFields::size(std::string_view field) const {
  std::int64_t size = 0;
  for (const std::int64_t one : get(field).sizes) size += one;
  return size;
}

std::int64_t VertexFields::size(std::string_view field, std::size_t i) const {
  const Entry& entry = get(field);
  if (i >= entry.sizes.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a cost function asks for vector {} of '{}', which has {}", i, field,
                            entry.sizes.size()));
  return entry.sizes[i];
}

std::size_t VertexFields::count(std::string_view field) const { return get(field).sizes.size(); }
double VertexFields::value(std::string_view field) const { return get(field).value; }
Type VertexFields::type(std::string_view field) const { return get(field).type; }

std::int64_t VertexFields::total_elements() const {
  std::int64_t total = 0;
  for (const Entry& entry : entries_)
    for (const std::int64_t one : entry.sizes) total += one;
  return total;
}

std::int64_t VertexFields::most_elements() const {
  std::int64_t most = 0;
  for (const Entry& entry : entries_)
    most = std::max(most, std::accumulate(entry.sizes.begin(), entry.sizes.end(), std::int64_t{0}));
  return most;
}

std::size_t VertexFields::most_vectors() const {
  std::size_t most = 0;
  for (const Entry& entry : entries_) most = std::max(most, entry.sizes.size());
  return most;
}

int VertexClass::field_index(std::string_view field) const {
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == field) return static_cast<int>(i);
  return -1;
}

void check_vertex_class(const VertexClass& description) {
  std::set<std::string> names;
  for (const FieldInfo& field : description.fields) {
    if (!names.insert(field.name).second)
      throw Error(ErrorCode::invalid_argument, fmt::format("two fields are called '{}'", field.name),
                  "vertex class " + description.name, "list every field once");
    if (!is_device_type(field.type))
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("field '{}' is {}, which a tile does not have", field.name, name_of(field.type)),
          "vertex class " + description.name, "use float or half");
  }
}

namespace {

// All of a tile's workers take their turns: what a thread does in a cycle of its own is the tile's in as many
// as there are of them.
PerfEstimate counted_estimate(const VertexClass& description, const VertexFields& fields,
                              std::uint32_t workers) {
  const CountedInstructions& counted = *description.counted;
  const double own = counted.fixed + counted.outer * static_cast<double>(fields.most_vectors());
  const double elements = counted.element * static_cast<double>(fields.most_elements());
  const auto rounded = [](double cycles) { return static_cast<std::uint64_t>(std::ceil(cycles)); };
  switch (description.kind) {
    case VertexKind::worker: return rounded(own + elements);
    case VertexKind::multi: return workers * rounded(own + elements / workers);
    case VertexKind::supervisor: return workers * rounded(own + elements);
  }
  return 0;
}

}  // namespace

PerfEstimate default_estimate(const VertexClass& description, const VertexFields& fields,
                              const Device& device) {
  if (description.counted) return counted_estimate(description, fields, device.workers);
  const auto work = 6 * static_cast<std::uint64_t>(fields.total_elements());
  switch (description.kind) {
    case VertexKind::worker: return 20 + work;
    case VertexKind::multi: return 20 + device.workers * ((work + device.workers - 1) / device.workers);
    case VertexKind::supervisor: return 20 + device.workers * work;
  }
  return 0;
}

}  // namespace superstep::bsp
