#include "superstep/target/ipu/chips/chip_options.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/machine/predict.h"
#include "superstep/transform/batch_axis.h"

namespace superstep::target::ipu {

bool is_training(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes())
    if (node.phase == graph::Phase::update) return true;
  return false;
}

BatchedPorts ports_of(const GraphAtBatch& model, const CompileOptions& options) {
  const bool whole = options.chips.accumulate == 1 && options.chips.replicas == 1;
  return batched_ports(model, options.batch, whole ? options.batch : 0);
}

std::int64_t micro_batch_of(const GraphAtBatch& model, const BatchedPorts& ports,
                            const CompileOptions& options) {
  const Chips& chips = options.chips;
  if (chips.accumulate < 1 || chips.replicas < 1 || chips.stages < 1)
    throw Error(ErrorCode::invalid_argument, "stages, replicas and micro-batches are at least one", "chips");
  const std::int64_t parts = std::int64_t{chips.accumulate} * chips.replicas;
  if (options.batch % parts != 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a batch of {} does not divide into {} micro-batches for each of {} replicas",
                            options.batch, chips.accumulate, chips.replicas),
                "--batch", fmt::format("take a multiple of {}", parts));
  if (parts > 1 && !ports.splits)
    if (const Status status = transform::splittable(model(options.batch)); !status.has_value())
      throw status.error();
  return options.batch / parts;
}

ChipLayout layout_of(const machine::Machine& machine, const graph::Graph& graph,
                     const CompileOptions& options) {
  const Chips& chips = options.chips;
  ChipLayout layout{{1}, chips.accumulate, chips.replicas};
  if (!chips.pipeline.empty())
    layout.shares = chips.pipeline;
  else if (chips.stages > 1)
    layout.shares = machine::balanced_pipeline(
        machine, graph,
        {.precision = machine::precision_from_name("f32"), .accumulate = chips.accumulate, .pipeline = {}},
        chips.stages);
  for (const int share : layout.shares)
    if (share < 1)
      throw Error(ErrorCode::invalid_argument, "every stage needs one layer or more", "--pipeline");
  return layout;
}

std::string description_of(const ChipLayout& layout) {
  std::vector<std::string> shares;
  for (const int share : layout.shares) shares.push_back(fmt::format("{}", share));
  std::string text = shares.size() > 1 ? fmt::format("{} stages, layers {}", shares.size(), join(shares, ","))
                                       : std::string("one stage");
  text += fmt::format("; {} micro-batch{}", layout.micro_batches, layout.micro_batches == 1 ? "" : "es");
  if (layout.replicas > 1) text += fmt::format(" of each of {} replicas", layout.replicas);
  if (layout.chips() > layout.shares.size()) text += "; one chip of a replica is idle, links join pairs";
  return text;
}

}  // namespace superstep::target::ipu
