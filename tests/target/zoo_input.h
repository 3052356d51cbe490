// What the models of the zoo are fed in tests.
#pragma once

#include "superstep/base/random.h"
#include "superstep/target/target.h"

namespace superstep::test {

// Labels and tokens that every model here has; numbers in [-1, 1) elsewhere. Labels of -1 are not scored.
inline Tensor random_input(const target::Executable::Port& port, std::uint64_t seed) {
  if (port.name == "learning_rate") return Tensor::scalar(0.05f);
  Tensor tensor(port.type.element, port.type.shape);
  RandomStream random(seed);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    if (!is_integer(port.type.element))
      tensor.set(i, port.name == "mask_target"      ? static_cast<double>(random.below(2))
                    : port.name == "sigma"          ? random.uniform(0.5, 2)  // a conductivity is above zero
                    : port.name == "measured_K"     ? random.uniform(150, 600)
                    : port.name == "yield_target"   ? random.uniform(0, 100)
                    : port.name.ends_with("weight") ? random.uniform(0, 2)  // of a loss
                                                    : random.uniform(-1, 1));
    else if (port.name == "token_type_ids" || port.name == "next_labels")
      tensor.set(i, static_cast<double>(random.below(2)));
    else if (port.name == "masked_positions" || port.name == "first_positions")
      tensor.set(i, static_cast<double>(random.below(4)));
    else if (port.name == "attention_mask")
      tensor.set(i, i % 12 < 9 ? 1 : 0);
    else
      tensor.set(i, static_cast<double>(random.below(10)) -
                        (port.name == "labels" || port.name == "masked_labels" ? 3
                         : port.name == "edge_index"                           ? 1  // -1: no edge
                                                                               : 0));
  }
  return tensor;
}

}  // namespace superstep::test
