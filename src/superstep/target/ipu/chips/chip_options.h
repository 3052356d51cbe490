// What a user asked for, as a layout over chips; what cannot be is refused.
#pragma once

#include <string>

#include "superstep/machine/machine.h"
#include "superstep/target/ipu/chips/chips.h"
#include "superstep/target/ports.h"
#include "superstep/target/target.h"

namespace superstep::target::ipu {

bool is_training(const graph::Graph& graph);

// The model's ports. Where one micro-batch is the batch it is not built at another one, which a model may not
// have: no port counts as batched then.
BatchedPorts ports_of(const GraphAtBatch& model, const CompileOptions& options);

// Samples of a micro-batch. Throws Error (invalid_argument) when the batch does not divide, (unsupported)
// when the model mixes the samples of a batch.
std::int64_t micro_batch_of(const GraphAtBatch& model, const BatchedPorts& ports,
                            const CompileOptions& options);

// `graph` of a micro-batch: stages that are not given are balanced over modelled time and memory.
ChipLayout layout_of(const machine::Machine& machine, const graph::Graph& graph,
                     const CompileOptions& options);

// For people: "2 stages (layers 4,3) x 2 replicas, 4 micro-batches".
std::string description_of(const ChipLayout& layout);

}  // namespace superstep::target::ipu
