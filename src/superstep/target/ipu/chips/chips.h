// A graph on several chips: stages of a pipeline, replicas, and micro-batches that follow each other.
//
// `graph` is that of one micro-batch. The device has the chips of all replicas; a replica's stage s is on its
// chip s. Streams and handles are listed in what is returned.
#pragma once

#include <span>
#include <vector>

#include "superstep/target/ipu/lower/lowering.h"

namespace superstep::target::ipu {

struct ChipLayout {
  std::vector<int> shares;  // relative layers of each stage; one: a single stage
  int micro_batches = 1;    // of a replica's run
  int replicas = 1;

  // Of a replica: links join pairs of chips, so that one may stay idle.
  std::uint32_t chips() const;
};

// By node: its stage. Forward nodes come in no earlier stage than what they read, backward nodes in no later
// one than the gradients that they read.
std::vector<std::size_t> stages_of(const graph::Graph& graph, std::span<const int> shares);

// Inference: in every turn each stage has a micro-batch of its own, and then hands it on over the links. The
// pipeline fills, runs steadily and drains once a run. Throws Error (unsupported) when the graph keeps state.
LoweredGraph lower_pipeline(const graph::Graph& graph, const bsp::Device& device,
                            const machine::ipu::Hardware& hardware, const ChipLayout& layout,
                            const LowerOptions& options = {});

// A training step. In every turn each stage takes one micro-batch forward and an earlier one backward; what
// the backward half needs of the forward half is kept on the stage's chip until then. Gradients are summed
// over the micro-batches, then over the replicas (in log2(replicas) exchanges of partners, after which all
// hold the same bits), and the update runs once on their mean, each parameter's on its own stage. Throws
// Error (unsupported) for replicas that are no power of two, and for a state that forward or backward nodes
// change.
LoweredGraph lower_training(const graph::Graph& graph, const bsp::Device& device,
                            const machine::ipu::Hardware& hardware, const ChipLayout& layout,
                            const LowerOptions& options = {});

}  // namespace superstep::target::ipu
