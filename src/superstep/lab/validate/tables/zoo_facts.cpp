#include "superstep/lab/validate/tables/zoo_facts.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/lab/validate/row_run.h"
#include "superstep/machine/configuration/set_ups.h"
#include "superstep/machine/work.h"
#include "superstep/run/model.h"

namespace superstep::lab {
namespace {

graph::Graph served(const std::string& name, std::int64_t length) {
  std::vector<std::string> options;
  if (const machine::Form* form = machine::form_of(name)) options = form->options;
  if (length > 0) options.push_back(fmt::format("length={}", length));
  return run::Model({.workload = known_workload(name), .model_options = options}).inference()(1);
}

// Operators as a framework launches them: none fused with those of other layers.
machine::NetworkSums sums_of(const graph::Graph& graph) {
  constexpr double f32_bytes = 4;
  machine::NetworkSums sums;
  for (const machine::Work& work :
       machine::works_of(graph, machine::precision_from_name("f32"), {.fuse_across_layers = false})) {
    const double values = (work.read_bytes + work.write_bytes - work.weight_bytes) / f32_bytes;
    sums.kernels += 1;
    sums.parameters += work.weight_bytes / f32_bytes;
    sums.tensors += work.weight_bytes > 0;
    const bool multiplies = work.kind == machine::WorkKind::product ||
                            work.kind == machine::WorkKind::recurrent ||
                            work.kind == machine::WorkKind::attention;
    if (multiplies) {
      // What multiplies no weights multiplies two activations.
      (work.weight_bytes > 0 ? sums.macs : sums.attention) += work.flops / 2;
      sums.product_elements += values;
    } else {
      sums.other_elements += values;
    }
  }
  sums.padded = sums.macs;
  return sums;
}

}  // namespace

std::optional<ModelFacts> zoo_facts(const std::string& name, std::int64_t length) {
  if (known_workload(name).empty()) return std::nullopt;
  ModelFacts facts{.kind = "model"};
  try {
    facts.sums = sums_of(served(name, length));
  } catch (const Error&) {
    return std::nullopt;  // no option of this model: it has no sequences, or none that long
  }
  return facts;
}

}  // namespace superstep::lab
