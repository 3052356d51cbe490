// The transforms that take a choice, as passes: what makes of a model what is trained, served or exported.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "superstep/transform/pass.h"
#include "superstep/transform/precision/precision.h"
#include "superstep/transform/precision/quantize.h"
#include "superstep/transform/training/loss_gradient.h"
#include "superstep/transform/training/recompute.h"
#include "superstep/transform/training/training_step.h"

namespace superstep::transform {

// transform/precision/precision.h. What is `trained` keeps depthwise convolutions in f32. `kept` is asked
// which products of a model stay in f32 besides.
using ProductsKept = std::function<std::set<std::string, std::less<>>(const graph::Graph& model,
                                                                      const AutocastOptions& options)>;
Pass autocast_pass(ElementType reduced, bool trained = true, ProductsKept kept = {});

// transform/precision/quantize.h. `options` is asked which products of a model stay as they are, `in_bf16`
// for the results of those among them that are then put on bf16.
using ProductsInBf16 = std::function<std::set<std::string, std::less<>>(const graph::Graph& model)>;
Pass quantize_pass(RangeTable ranges, std::function<QuantizeOptions(const graph::Graph& model)> options,
                   ProductsInBf16 in_bf16 = {});

// transform/training/training_step.h
Pass training_step_pass(LossSpec loss, OptimizerSpec optimizer, TrainingStepOptions options = {});

// transform/training/loss_gradient.h
// Products on f16 as processors of f32 compute them (transform/precision/round_products.h).
Pass round_products_pass();
Pass loss_gradient_pass(std::vector<LossTerm> terms, LossGradientOptions options = {});

// make_gradient_step() of transform/training/training_step.h
Pass gradient_step_pass(LossSpec loss, TrainingStepOptions options = {});

// transform/training/over_parts.h. Leaves the graph alone where there is one part. Error (unsupported) where
// the samples are mixed in another way.
Pass over_parts_pass(std::int64_t parts);

// transform/training/recompute.h. Leaves the graph alone where nothing may be done again. `keep` is asked
// which values of a graph stay.
Pass recompute_pass(RecomputeOptions options,
                    std::function<std::vector<graph::ValueId>(const graph::Graph& graph)> keep);

// What a graph goes through before it is written to an ONNX file: transform/expand.h.
std::span<const Pass> export_passes();

}  // namespace superstep::transform
