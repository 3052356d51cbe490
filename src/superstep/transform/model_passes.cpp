#include "superstep/transform/model_passes.h"

#include <array>

#include "superstep/base/error.h"
#include "superstep/transform/expand.h"
#include "superstep/transform/passes.h"
#include "superstep/transform/precision/round_products.h"
#include "superstep/transform/training/over_parts.h"

namespace superstep::transform {

// Of a layer's result, what rounding its operands to 8 bits (bf16) may change in a deep model.
constexpr double reduced_rounding = 0.1;
// The same for operands in bytes.
constexpr double byte_rounding = 0.3;

Pass autocast_pass(ElementType reduced, bool trained, ProductsKept kept) {
  const AutocastOptions options{
      .depthwise = !trained && reduced == ElementType::bf16, .served = !trained, .trained = trained};
  return {.name = "autocast",
          .run = rebuild([reduced, options, kept = std::move(kept)](const graph::Graph& model) {
            AutocastOptions chosen = options;
            if (kept) chosen.kept = kept(model, options);
            return autocast(model, reduced, chosen);
          }),
          .summary = "products in bf16 or f16, what needs it in f32",
          .rounding = reduced_rounding};
}

namespace {

// With the products of these results in bf16, and no others.
graph::Graph with_bf16(const graph::Graph& model, const std::set<std::string, std::less<>>& wanted) {
  AutocastOptions options{.depthwise = true, .served = true};
  for (const graph::NodeId id : products_to_narrow(model, options)) {
    const std::string& name = model.value(model.node(id).outputs[0]).name;
    if (!wanted.contains(name)) options.kept.insert(name);
  }
  return autocast(model, ElementType::bf16, options);
}

}  // namespace

Pass quantize_pass(RangeTable ranges, std::function<QuantizeOptions(const graph::Graph&)> options,
                   ProductsInBf16 in_bf16) {
  return {.name = "quantize",
          .run = rebuild([ranges = std::move(ranges), options = std::move(options),
                          in_bf16 = std::move(in_bf16)](const graph::Graph& model) {
            graph::Graph on_bytes = quantize(model, ranges, options(model));
            const auto wanted = in_bf16 ? in_bf16(model) : std::set<std::string, std::less<>>();
            return wanted.empty() ? std::move(on_bytes) : with_bf16(on_bytes, wanted);
          }),
          .summary = "products on bytes, with calibrated ranges",
          .rounding = byte_rounding};
}

Pass training_step_pass(LossSpec loss, OptimizerSpec optimizer, TrainingStepOptions options) {
  return {.name = "make_training_step",
          .run =
              [loss = std::move(loss), optimizer, options = std::move(options)](graph::Graph& model) {
                model = make_training_step(model, loss, optimizer, options);
                return true;
              },
          .summary = "loss, gradients and optimizer behind the model",
          .required = "without it there is nothing to train by",
          .rounding = Pass::other_results};
}

Pass round_products_pass() {
  return {.name = "round_products",
          .run = rebuild([](const graph::Graph& model) { return round_products(model); }),
          .summary = "operands and results of products rounded to f16",
          .rounding = reduced_rounding};
}

Pass loss_gradient_pass(std::vector<LossTerm> terms, LossGradientOptions options) {
  return {.name = "make_loss_gradient",
          .run =
              [terms = std::move(terms), options](graph::Graph& model) {
                model = make_loss_gradient(model, terms, options);
                return true;
              },
          .summary = "the terms of a loss and their gradients behind the model, nothing updated",
          .required = "without it there is nothing to sample by",
          .rounding = Pass::other_results};
}

Pass gradient_step_pass(LossSpec loss, TrainingStepOptions options) {
  return {.name = "make_gradient_step",
          .run =
              [loss = std::move(loss), options = std::move(options)](graph::Graph& model) {
                model = make_gradient_step(model, loss, options);
                return true;
              },
          .summary = "loss and gradients behind the model, nothing updated by them",
          .required = "without it there are no gradients",
          .rounding = Pass::other_results};
}

Pass over_parts_pass(std::int64_t parts) {
  return {.name = "over_parts",
          .run =
              [parts](graph::Graph& graph) {
                if (parts <= 1) return false;
                std::optional<graph::Graph> part = over_parts(graph, parts);
                if (!part)
                  throw Error(ErrorCode::unsupported, "its samples cannot be divided over parts of a batch",
                              graph.name(), "run the whole batch at a time");
                graph = std::move(*part);
                return true;
              },
          .summary = "statistics of a batch that runs in parts, in step, are those of all parts",
          .required = "each part of the batch would take its own samples for all",
          .rounding = Pass::other_results};
}

Pass recompute_pass(RecomputeOptions options,
                    std::function<std::vector<graph::ValueId>(const graph::Graph&)> keep) {
  return {.name = "recompute",
          .run =
              [options = std::move(options), keep = std::move(keep)](graph::Graph& graph) {
                if (options.extra_share <= 0) return false;
                RecomputeOptions chosen = options;
                chosen.keep = keep(graph);
                Recomputed result = recompute(graph, chosen);
                if (result.values == 0) return false;
                graph = std::move(result.graph);
                return true;
              },
          .summary = "values of the forward pass made again in the backward pass, to keep fewer"};
}

std::span<const Pass> export_passes() {
  static const std::array passes{
      Pass{.name = "expand_to_onnx",
           // Always another graph: constants come in the order in which they are read, whoever made them, so
           // that a model is always written as the same file.
           .run =
               [](graph::Graph& graph) {
                 graph = expand_to_onnx(graph);
                 return true;
               },
           .summary = "operators beyond ONNX as plain ONNX, and without what nothing needs",
           .required = "other programs know ONNX's operators alone",
           .rounding = Pass::sums},
  };
  return passes;
}

}  // namespace superstep::transform
