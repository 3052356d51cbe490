#include <fmt/format.h>

#include <algorithm>

#include "superstep/onnx/writer.h"
#include "superstep/superstep.h"
#include "superstep/workload/layers.h"

namespace superstep {
namespace {

using Activation = workload::Var (*)(workload::Layers&, workload::Var);

Activation activation_of(const std::string& name) {
  if (name == "relu") return [](workload::Layers& layers, workload::Var x) { return layers.relu(x); };
  if (name == "silu") return [](workload::Layers& layers, workload::Var x) { return layers.silu(x); };
  if (name == "gelu") return [](workload::Layers& layers, workload::Var x) { return layers.gelu(x); };
  throw Error(ErrorCode::invalid_argument, fmt::format("there is no activation '{}'", name), "activation",
              "there are: relu, silu, gelu");
}

}  // namespace

void write_dense_network(const std::filesystem::path& file, const DenseNetwork& network) {
  const std::vector<std::int64_t>& widths = network.widths;
  if (widths.size() < 2 || std::ranges::any_of(widths, [](std::int64_t width) { return width < 1; }))
    throw Error(ErrorCode::invalid_argument, "is not a list of two or more widths of at least 1", "widths");
  const Activation activation = activation_of(network.activation);
  onnx::write_onnx(file, [&](std::int64_t batch) {
    graph::Graph graph("dense_network");
    workload::Builder builder(graph);
    workload::Layers layers(builder, network.seed, workload::FirstWeights::he);
    workload::Var y = builder.input("x", ElementType::f32, {batch, widths.front()});
    for (std::size_t i = 1; i < widths.size(); ++i) {
      y = layers.dense(y, fmt::format("fc{}", i), widths[i]);
      if (i + 1 < widths.size()) y = activation(layers, y);
    }
    builder.output("y", y);
    return graph;
  });
}

}  // namespace superstep
