// Random numbers. A node without a seed of its own may give any numbers, but two such nodes must not give the
// same: each is seeded by its place among them, so that a model gives the same numbers at every import.
#include "superstep/onnx/adapters/adapters.h"

namespace superstep::onnx {
namespace {

std::vector<Var> seeded(NodeImport& node) {
  if (!node.attributes.has("seed")) node.attributes.set("seed", node.emitter.next_seed());
  return node.pass();
}

constexpr Adapter table[] = {
    {"RandomNormal", 1, any_later, seeded},  {"RandomNormalLike", 1, any_later, seeded},
    {"RandomUniform", 1, any_later, seeded}, {"RandomUniformLike", 1, any_later, seeded},
    {"Bernoulli", 1, any_later, seeded},     {"Multinomial", 1, any_later, seeded},
};

}  // namespace

std::span<const Adapter> random_adapters() { return table; }

}  // namespace superstep::onnx
