#include "superstep/target/states.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::target {

States::States(const graph::Graph& graph) {
  for (graph::ValueId id : graph.states()) tensors_[graph.value(id).name] = graph.value(id).data;
}

std::vector<std::string> States::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

const Tensor& States::get(std::string_view name) const {
  const auto found = tensors_.find(std::string(name));
  if (found == tensors_.end())
    throw Error(ErrorCode::invalid_argument, "there is no such state", std::string(name),
                unknown_name_hint(name, names()));
  return found->second;
}

void States::set(std::string_view name, const Tensor& value) {
  const Tensor& old = get(name);
  if (value.type() != old.type() || value.shape() != old.shape())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("is {}, not {}", to_string(graph::ValueType{old.type(), old.shape()}),
                            to_string(graph::ValueType{value.type(), value.shape()})),
                fmt::format("state {}", name));
  tensors_[std::string(name)] = value.clone();
}

}  // namespace superstep::target
