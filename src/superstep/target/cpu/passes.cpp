#include "superstep/target/cpu/passes.h"

#include "superstep/target/cpu/lower/lowering.h"
#include "superstep/target/cpu/passes/compose.h"
#include "superstep/target/cpu/passes/convolution_borders.h"
#include "superstep/target/cpu/passes/decompose.h"
#include "superstep/target/cpu/passes/linear_sums.h"
#include "superstep/target/cpu/passes/postpone.h"
#include "superstep/target/cpu/passes/remake.h"
#include "superstep/target/cpu/passes/spellings.h"
#include "superstep/target/cpu/passes/table_gradients.h"
#include "superstep/target/cpu/passes/widen_half.h"
#include "superstep/transform/model_passes.h"
#include "superstep/transform/pipeline.h"

namespace superstep::target::cpu {
namespace {

using transform::Pass;
using transform::rebuild;

// Values computed again in the backward pass, but for what attention reads and makes: its one step makes
// scores and weights again itself.
Pass recomputation_pass(const PassUse& use) {
  const auto values_of_attentions = [use](const graph::Graph& graph) {
    std::vector<bool> batched = use.batched_output;
    if (batched.empty()) batched.assign(graph.outputs().size(), true);
    return Lowering(graph, batched, use.whole_batch).values_of_attentions();
  };
  return transform::recompute_pass(
      {.extra_share = use.recomputation.share, .stretches = use.recomputation.stretches},
      values_of_attentions);
}

// Behind a cotangent that is joined stand factors of all parts, before it those of one.
Pass scaling_pass() {
  return {.name = "scale_behind_sums",
          .run = rebuild(scale_behind_sums),
          .summary = "constant factors of large operands of sums beside or behind these",
          .rounding = Pass::sums};
}

}  // namespace

std::vector<Pass> model_passes() {
  return {{.name = "recognize_spellings",
           .run = rebuild(recognize_spellings),
           .summary = "GELU written as a formula is one operator",
           .rounding = Pass::sums},
          {.name = "compose_linear",
           .run = rebuild(compose_linear),
           .summary = "weights of linear operators one behind the other multiplied with each other",
           .rounding = Pass::sums}};
}

std::vector<Pass> decomposition_passes() {
  return {{.name = "widen_half",
           .run = rebuild(widen_half),
           .summary = "products, windows and sums of f16 values computed in f32",
           .rounding = Pass::sums},
          {.name = "fold_normalizations",
           .run = rebuild(fold_normalizations),
           .summary = "a normalization at inference goes into the convolution before it",
           .rounding = Pass::sums},
          {.name = "scale_weights",
           .run = rebuild(scale_weights),
           .summary = "a constant factor before a convolution goes into its weights",
           .rounding = Pass::sums},
          {.name = "decompose",
           .run = rebuild(decompose),
           .summary = "operators without a kernel as what they are made of",
           .rounding = Pass::sums}};
}

std::vector<Pass> graph_passes(const PassUse& use) {
  std::vector<Pass> passes = decomposition_passes();
  passes.push_back(transform::over_parts_pass(use.parts_in_step));
  const auto standard = transform::standard_passes();
  passes.insert(passes.end(), standard.begin(), standard.end());
  passes.push_back({.name = "split_convolutions",
                    .run = rebuild(split_convolutions),
                    .summary = "a split of a convolution's few channels as a convolution for each part"});
  passes.push_back(scaling_pass());
  passes.push_back({.name = "split_weight_gradients",
                    .run = rebuild(split_weight_gradients),
                    .summary = "a gradient by weights whose cotangent is joined as one for each part"});
  passes.push_back(scaling_pass());
  passes.push_back({.name = "postpone_linear",
                    .run = rebuild(postpone_linear),
                    .summary = "linear work on sums over the batch once per step, in the update",
                    .rounding = Pass::sums});
  passes.push_back({.name = "sum_before_products",
                    .run = rebuild(sum_before_products),
                    .summary = "a sum over a product's rows as a product of a sum",
                    .rounding = Pass::sums});
  passes.push_back({.name = "sum_squares",
                    .run = rebuild(sum_squares),
                    .summary = "a sum of squares squares as it sums",
                    .rounding = Pass::sums});
  passes.push_back({.name = "add_into_tables",
                    .run = rebuild(add_into_tables),
                    .summary = "a table's gradient rows are added where the rest of it is",
                    .rounding = Pass::sums});
  // From here on equal nodes stay apart: no pass that merges them may follow.
  passes.push_back({.name = "remake_between_passes",
                    .run = rebuild(remake_between_passes),
                    .summary = "cheap chains made again by each reader instead of read"});
  passes.push_back(recomputation_pass(use));
  return passes;
}

}  // namespace superstep::target::cpu
