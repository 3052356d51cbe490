#include "superstep/machine/rates/network_by_law.h"

#include <algorithm>

#include "superstep/machine/predict.h"
#include "superstep/machine/rates/kept.h"

namespace superstep::machine {
namespace {

// Multiply-adds of a sample of the smallest network that the law was fitted to (machines/rates/networks.csv).
// What is smaller is launches for the larger part, which the model counts operator by operator.
constexpr double least_macs = 19.75e6;

// A law's seconds by what they are spent on, times what its factors make of them.
Parts parts_of(const LawCall& call, const LawConstants& constants, double seconds) {
  const Terms& t = call.call.terms;
  const double compute = t.compute / constants.compute_share, memory = t.memory / constants.memory_share;
  Parts parts{.compute = t.serial / constants.compute_share,
              .memory = t.vectors / constants.vector_share + t.grouped / constants.grouped_share,
              .launch = constants.launch * t.launches,
              .collective = t.link / constants.link_share + constants.collective * t.collectives};
  (compute >= memory ? parts.compute : parts.memory) += std::max(compute, memory);
  return seconds / law_seconds(t, constants) * parts;
}

struct Micro {
  Parts parts;
  LawAnswer answer;
  std::string law;
};

std::optional<Micro> micro_batch_on(const NetworkByLaw& network, const PredictSettings& settings,
                                    double units) {
  const LawCall call = network_call(network.facts, network.sums,
                                    {.of = {},
                                     .batch = static_cast<double>(settings.micro_batch),
                                     .units = units,
                                     .training = network.training,
                                     .software = network.software,
                                     .type = type_of(settings.precision)});
  const LawConstants* constants = kept_laws().constants_of(call.call);
  if (!constants) return std::nullopt;
  Micro micro{.parts = {}, .answer = answer_by_law(call, network.facts, network.software), .law = {}};
  micro.parts = parts_of(call, *constants, micro.answer.seconds);
  micro.law = call.call.kinds.front();
  return micro;
}

}  // namespace

std::string type_of(const Precision& precision) {
  if (precision.name == "mixed") return "amp";
  if (precision.name == "f32") return "fp32";
  return precision.name == "bf16" || precision.name == "tf32" ? precision.name : "fp16";
}

std::optional<StepByLaw> step_by_law(const NetworkByLaw& network, const PredictSettings& settings,
                                     double recomputed) {
  const NetworkSums& sums = network.sums;
  if (settings.pipeline.size() > 1 || sums.macs + sums.grouped + sums.attention < least_macs)
    return std::nullopt;
  const std::optional<Micro> alone = micro_batch_on(network, settings, 1);
  if (!alone) return std::nullopt;
  // A forward pass is a third of a training's work.
  constexpr double forward_share = 1.0 / 3;
  StepByLaw step{.parts = settings.accumulate * (1 + recomputed * forward_share) * alone->parts,
                 .answer = alone->answer,
                 .law = alone->law};
  if (settings.replicas > 1)
    if (const auto together = micro_batch_on(network, settings, settings.replicas))
      step.parts.collective += together->parts.collective;
  const double factor = step.parts.total() / alone->answer.seconds;
  for (double* seconds : {&step.answer.seconds, &step.answer.low, &step.answer.high}) *seconds *= factor;
  return step;
}

}  // namespace superstep::machine
