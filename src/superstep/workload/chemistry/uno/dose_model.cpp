#include <fmt/format.h>

#include "superstep/op/move/movement.h"
#include "superstep/op/product/matmul.h"
#include "superstep/workload/chemistry/uno/dose.h"
#include "superstep/workload/layers.h"

namespace superstep::workload {
namespace {

constexpr int tower_depth = 3, joint_depth = 3;

struct Towers {
  Layers& layers;
  std::int64_t width;
  double dropped;

  // The activations of one layer on every x, which all go through the same weights. `names` are of the x.
  std::vector<Var> layer(std::vector<Var> xs, std::span<const std::string> names, const std::string& name) {
    const std::int64_t in = xs[0].shape()[1];
    const Var weight = layers.weight(name + ".weight", {width, in}, in, width);
    const Var bias = layers.zeros(name + ".bias", {width});
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const std::string own = names[i] + name;
      Var y;
      {
        const op::NameScope scope(layers.builder(), own);
        y = op::gemm(xs[i], weight, bias, {.transpose_b = true});
      }
      xs[i] = layers.dropout(layers.relu(y), own + ".dropout", dropped);
    }
    return xs;
  }

  std::vector<Var> tower(std::vector<Var> xs, std::span<const std::string> names, const std::string& name,
                         int depth) {
    for (int i = 1; i <= depth; ++i) xs = layer(std::move(xs), names, fmt::format("{}{}", name, i));
    return xs;
  }
};

}  // namespace

graph::Graph build_uno_dose(std::int64_t batch, const Options& options, std::uint64_t seed) {
  graph::Graph graph("uno");
  Builder b(graph);
  Layers layers(b, seed);
  Towers towers{layers, options.integer("width", 1, 16384), options.number("dropout", 0, 0.9)};
  const auto input = [&](const char* name, std::int64_t width) {
    return b.input(name, ElementType::f32, {batch, width});
  };
  const Var cell = input("cell", 942);
  const std::vector<Var> descriptors{input("drug1_descriptors", 5270), input("drug2_descriptors", 5270)};
  const std::vector<Var> fingerprints{input("drug1_fingerprints", 2048), input("drug2_fingerprints", 2048)};
  const Var dose1 = input("dose1", 1), dose2 = input("dose2", 1);
  const std::string alone[] = {""}, drugs[] = {"drug1.", "drug2."};
  std::vector<Var> parts{dose1, dose2, towers.tower({cell}, alone, "cell", tower_depth)[0]};
  for (const Var part : towers.tower(descriptors, drugs, "descriptors", tower_depth)) parts.push_back(part);
  for (const Var part : towers.tower(fingerprints, drugs, "fingerprints", tower_depth)) parts.push_back(part);
  const Var joint = towers.tower({op::concat(parts, 1)}, alone, "joint", joint_depth)[0];
  b.output("growth", layers.dense(joint, "out", 1));
  graph.set_data(graph.find_value("out.bias"),
                 Tensor::full(ElementType::f32, {1}, options.number("mean", -10, 10)));
  return graph;
}

}  // namespace superstep::workload
