// From the kernels of a graph to plans on tiles.
#pragma once

#include <map>
#include <string>

#include "superstep/machine/ipu/hardware.h"
#include "superstep/machine/ipu/plan.h"
#include "superstep/machine/work.h"

namespace superstep::machine::ipu {

// Plans kernels, and remembers the plans of products by their shape: models repeat their layers.
class KernelPlanner {
 public:
  KernelPlanner(const Hardware& hardware, const graph::Graph& graph, const Precision& precision)
      : hardware_(hardware), graph_(graph), precision_(precision) {}

  Plan plan(const Work& work);

 private:
  Plan product(const Work& work, const graph::Node& node);
  Plan matrix(const graph::Node& node, graph::Phase phase);
  Plan einsum(const Work& work);
  Plan recurrent(const graph::Node& node);
  Plan attention(const graph::Node& node);
  Plan elementwise(const Work& work);
  Plan normalization(const Work& work);
  Plan whitening(double total) const;
  Plan group_gradient(const Work& work) const;
  Plan whitened_and_scaled(const Work& work, const graph::Node& node) const;
  Plan reduction(const Work& work, const graph::Node& node);
  Plan pooling(const Work& work, const graph::Node& node);
  Plan gather(const graph::Node& node);
  Plan pick(const graph::Node& node, bool scatters);
  Plan scatter(const graph::Node& node);
  Plan add_rows(const graph::Node& node);
  Plan movement(const Work& work, const graph::Node& node);
  Plan arg(const graph::Node& node);
  Plan sorting(const graph::Node& node);
  Plan triangular(const graph::Node& node);

  const Shape& shape(graph::ValueId id) const { return graph_.type(id).shape; }
  double elements(graph::ValueId id) const { return static_cast<double>(shape(id).element_count()); }

  const Hardware& hardware_;
  const graph::Graph& graph_;
  const Precision& precision_;
  std::map<std::string, Plan> products_;
};

}  // namespace superstep::machine::ipu
