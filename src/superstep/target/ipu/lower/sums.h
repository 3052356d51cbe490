// Sums of tensors tile by tile: what accumulation and the all-reduce of gradients compute.
#pragma once

#include <span>
#include <string>

#include "superstep/bsp/graph/graph.h"
#include "superstep/machine/ipu/hardware.h"

namespace superstep::target::ipu {

// sums[i] += addends[i], one vertex a tile and pair. Both tensors of a pair are f32 and lie alike.
bsp::ComputeSet add_into(bsp::Graph& graph, const machine::ipu::Hardware& hardware,
                         std::span<const bsp::Tensor> sums, std::span<const bsp::Tensor> addends,
                         const std::string& name);

// tensors[i] *= factor.
bsp::ComputeSet scale_by(bsp::Graph& graph, const machine::ipu::Hardware& hardware,
                         std::span<const bsp::Tensor> tensors, double factor, const std::string& name);

}  // namespace superstep::target::ipu
