#include "superstep/graph/attributes.h"

#include <fmt/format.h>

#include <cstring>

#include "superstep/graph/graph.h"
#include "superstep/graph/text.h"

namespace superstep::graph {
namespace {

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && a.shape() == b.shape() &&
         std::memcmp(a.bytes(), b.bytes(), a.byte_count()) == 0;
}

template <class T>
const T& require(const Attributes& attributes, std::string_view name, const char* kind) {
  const Attribute* found = attributes.find(name);
  if (!found) throw Error(ErrorCode::bad_graph, fmt::format("attribute '{}' is missing", name));
  const T* value = std::get_if<T>(found);
  if (!value) throw Error(ErrorCode::bad_graph, fmt::format("attribute '{}' is not {}", name, kind));
  return *value;
}

}  // namespace

bool same(const Attribute& a, const Attribute& b) {
  if (a.index() != b.index()) return false;
  if (const Tensor* tensor = std::get_if<Tensor>(&a)) return same_tensor(*tensor, std::get<Tensor>(b));
  if (const auto* graph = std::get_if<std::shared_ptr<const Graph>>(&a))
    return to_text(**graph) == to_text(*std::get<std::shared_ptr<const Graph>>(b));
  return std::visit(
      [&]<class T>(const T& value) {
        if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, std::shared_ptr<const Graph>>)
          return false;  // handled above
        else
          return value == std::get<T>(b);
      },
      a);
}

const Attribute* Attributes::find(std::string_view name) const {
  const auto found = items_.find(name);
  return found == items_.end() ? nullptr : &found->second;
}

void Attributes::erase(std::string_view name) {
  const auto found = items_.find(name);
  if (found != items_.end()) items_.erase(found);
}

std::int64_t Attributes::integer(std::string_view name) const {
  return require<std::int64_t>(*this, name, "an integer");
}
std::int64_t Attributes::integer(std::string_view name, std::int64_t otherwise) const {
  return has(name) ? integer(name) : otherwise;
}
double Attributes::number(std::string_view name) const {
  const Attribute* found = find(name);
  if (found && std::holds_alternative<std::int64_t>(*found)) return static_cast<double>(integer(name));
  return require<double>(*this, name, "a number");
}
double Attributes::number(std::string_view name, double otherwise) const {
  return has(name) ? number(name) : otherwise;
}
std::string Attributes::text(std::string_view name) const {
  return require<std::string>(*this, name, "a string");
}
std::string Attributes::text(std::string_view name, std::string otherwise) const {
  return has(name) ? text(name) : std::move(otherwise);
}
std::vector<std::int64_t> Attributes::integers(std::string_view name) const {
  return require<std::vector<std::int64_t>>(*this, name, "a list of integers");
}
std::vector<std::int64_t> Attributes::integers(std::string_view name,
                                               std::vector<std::int64_t> otherwise) const {
  return has(name) ? integers(name) : std::move(otherwise);
}
Tensor Attributes::tensor(std::string_view name) const { return require<Tensor>(*this, name, "a tensor"); }
std::shared_ptr<const Graph> Attributes::subgraph(std::string_view name) const {
  return require<std::shared_ptr<const Graph>>(*this, name, "a graph");
}

bool operator==(const Attributes& a, const Attributes& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, value] : a) {
    const Attribute* other = b.find(name);
    if (!other || !same(value, *other)) return false;
  }
  return true;
}

}  // namespace superstep::graph
