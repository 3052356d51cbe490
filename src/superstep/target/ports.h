// What the targets share about inputs, outputs and graphs on their way in.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "superstep/target/target.h"

namespace superstep::target {

// Throws Error (invalid_argument) naming the first tensor whose type differs from its port's.
void check_ports(std::string_view kind, std::span<const Executable::Port> ports,
                 std::span<const Tensor> tensors);

// The ports of a model at a batch, and which of them have a row a sample: those whose first extent follows
// the batch.
struct BatchedPorts {
  std::vector<Executable::Port> inputs, outputs;
  std::vector<bool> input_is_batched, output_is_batched;
  bool splits = false;  // the model gives the same results sample by sample, so a batch can be split
};
// `micro_batch` is the one asked for: the model is not built at another size when it is the batch itself, and
// then no port counts as batched. 0: any.
BatchedPorts batched_ports(const GraphAtBatch& model, std::int64_t batch, std::int64_t micro_batch = 0);

// The verified graph after the passes that every target runs first.
graph::Graph prepare_graph(graph::Graph graph);

// For targets that cannot average over parts of a batch: throws Error (unsupported) when there are several.
void refuse_parts(const CompileOptions& options, std::string_view target);
// For targets that are one machine: throws Error (unsupported) when a run is to be shared by chips.
void refuse_chips(const CompileOptions& options, std::string_view target);

}  // namespace superstep::target
