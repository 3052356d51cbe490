// Named state tensors, as the targets that keep state on the host hold them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/graph/graph.h"

namespace superstep::target {

class States {
 public:
  explicit States(const graph::Graph& graph);
  std::vector<std::string> names() const;
  const Tensor& get(std::string_view name) const;  // throws Error (invalid_argument), nearest name
  void set(std::string_view name, const Tensor& value);
  const std::map<std::string, Tensor>& all() const { return tensors_; }
  void replace(std::map<std::string, Tensor> tensors) { tensors_ = std::move(tensors); }

 private:
  std::map<std::string, Tensor> tensors_;
};

}  // namespace superstep::target
