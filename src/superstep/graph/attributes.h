// Typed attributes of a node, by name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "superstep/base/tensor.h"

namespace superstep::graph {

class Graph;

using Attribute =
    std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                 std::vector<std::string>, Tensor, std::shared_ptr<const Graph>>;

// Exact equality: tensors by type, shape and bits, graphs by their text.
bool same(const Attribute& a, const Attribute& b);

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Attribute>> items) : items_(items) {}

  bool has(std::string_view name) const { return items_.find(name) != items_.end(); }
  void set(std::string name, Attribute value) { items_.insert_or_assign(std::move(name), std::move(value)); }
  void erase(std::string_view name);
  const Attribute* find(std::string_view name) const;

  // The attribute, or the default; throws Error (bad_graph) when it is of another kind. The forms without
  // a default throw when it is missing. `number` takes an integer too.
  std::int64_t integer(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  double number(std::string_view name) const;
  double number(std::string_view name, double otherwise) const;
  std::string text(std::string_view name) const;
  std::string text(std::string_view name, std::string otherwise) const;
  std::vector<std::int64_t> integers(std::string_view name) const;
  std::vector<std::int64_t> integers(std::string_view name, std::vector<std::int64_t> otherwise) const;
  Tensor tensor(std::string_view name) const;
  std::shared_ptr<const Graph> subgraph(std::string_view name) const;

  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  std::size_t size() const { return items_.size(); }
  friend bool operator==(const Attributes& a, const Attributes& b);

 private:
  std::map<std::string, Attribute, std::less<>> items_;
};

}  // namespace superstep::graph
