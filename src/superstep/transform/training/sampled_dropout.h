// A model that drops out while it is served: every run draws other masks, and the spread of many runs says
// how sure the model is (Y. Gal, Z. Ghahramani, Dropout as a Bayesian Approximation, ICML 2016).
#pragma once

#include <cstdint>

#include "superstep/transform/pass.h"

namespace superstep::transform {

// Every Dropout as a product with a random mask, addressed by the state `dropout.counter` (training_form.h),
// which a run sets forward by the samples of its batch. Everything else stays as it is at inference. A model
// that drops nothing out comes back without that state.
graph::Graph with_sampled_dropout(const graph::Graph& model, std::uint64_t seed);

Pass sampled_dropout_pass(std::uint64_t seed);

}  // namespace superstep::transform
