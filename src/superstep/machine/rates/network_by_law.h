// A network's step by the law of networks (call.h), in place of what a machine's own model adds up from its
// operators: of machines of which measurements say that the law is nearer (choices.h), or of which a data
// sheet alone is known.
#pragma once

#include <optional>
#include <string>

#include "superstep/machine/cost_model.h"
#include "superstep/machine/rates/intervals.h"

namespace superstep::machine {

struct PredictSettings;

struct NetworkByLaw {
  MachineFacts facts;
  NetworkSums sums;  // of a forward pass of one sample
  std::string software = "pytorch";
  bool training = true;
};

struct StepByLaw {
  Parts parts;       // of a whole step of all replicas
  LawAnswer answer;  // of `parts`, with its interval
  std::string law;   // "network training f16 pytorch"
};

// `recomputed`: the share of the forward pass that runs again. Nothing where the law does not reach: of a
// pipeline, and of a network smaller than any that it was fitted to.
std::optional<StepByLaw> step_by_law(const NetworkByLaw& network, const PredictSettings& settings,
                                     double recomputed);

// How tables write a precision of predictions: "amp" of "mixed", "fp32" of "f32".
std::string type_of(const Precision& precision);

}  // namespace superstep::machine
