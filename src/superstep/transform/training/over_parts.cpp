#include "superstep/transform/training/over_parts.h"

#include <algorithm>
#include <array>
#include <map>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/rows/channel_statistics.h"
#include "superstep/op/rows/parts_mean.h"
#include "superstep/transform/batch_axis.h"
#include "superstep/transform/rewrite.h"

namespace superstep::transform {
namespace {

bool is_moments(const Node& node) { return node.op == "superstep.ChannelMoments"; }

class OverParts {
 public:
  OverParts(const Graph& graph, std::int64_t parts)
      : graph_(graph),
        parts_(static_cast<double>(parts)),
        axes_(find_batch_axes(graph, {.averages_sums = true})),
        of_sums_(graph.value_count()),
        of_whole_(graph.value_count()) {
    for (const Node& node : graph.nodes()) note(node);
  }

  // Only sums of cotangents may be averaged, which are as many times too large as there are parts, and only
  // cotangents may be multiplied by what is made of sums of the whole batch.
  bool is_exact() const {
    for (const Node& node : graph_.nodes())
      for (ValueId input : node.inputs) {
        if (averages(node, input) && !of_sums_[input.index()]) return false;
        if (scales(node, input) && node.phase != Phase::backward) return false;
      }
    return true;
  }

  Graph run() {
    return rewrite(graph_, [&](Rewrite& rewrite, const Node& node) {
      if (is_moments(node)) {
        const op::ChannelMoments all = op::channel_moments_over_parts(rewrite.now(node.inputs[0]));
        return rewrite.replace(node, std::array{all.mean, all.variance});
      }
      const bool changes = std::ranges::any_of(
          node.inputs, [&](ValueId input) { return averages(node, input) || scales(node, input); });
      changes ? replace(rewrite, node) : rewrite.keep(node);
      if (is_sum_over_parts(node)) {
        const Var total = op::parts_mean_in_f32(rewrite.now(node.outputs[0])) * parts_;
        rewrite.replace(node, std::array{total});
      }
    });
  }

 private:
  BatchKind kind(ValueId id) const { return axes_[id.index()].kind; }
  bool makes(const Node& node, BatchKind wanted) const {
    return std::ranges::any_of(node.outputs, [&](ValueId id) { return id.valid() && kind(id) == wanted; });
  }

  // A sum over the part's samples meets samples.
  bool averages(const Node& node, ValueId input) const {
    return input.valid() && kind(input) == BatchKind::reduced && makes(node, BatchKind::per_sample);
  }
  // A cotangent that is the same for all samples meets them. In the forward pass sums may be added to what is
  // averaged afterwards.
  bool scales(const Node& node, ValueId input) const {
    if (!input.valid() || kind(input) != BatchKind::constant || !of_whole_[input.index()]) return false;
    return makes(node, BatchKind::per_sample) ||
           (node.phase == Phase::backward && makes(node, BatchKind::reduced));
  }

  void note(const Node& node) {
    const auto all_are = [&](const std::vector<bool>& what) {
      return std::ranges::all_of(node.inputs, [&](ValueId input) {
        return !input.valid() || kind(input) == BatchKind::constant || what[input.index()];
      });
    };
    const bool sums =
        (node.op == "superstep.ChannelSums" && node.phase == Phase::backward) || all_are(of_sums_);
    const bool whole = is_sum_over_parts(node) || std::ranges::any_of(node.inputs, [&](ValueId input) {
                         return input.valid() && of_whole_[input.index()];
                       });
    for (ValueId id : node.outputs) {
      if (!id.valid()) continue;
      of_sums_[id.index()] = kind(id) == BatchKind::reduced && sums;
      of_whole_[id.index()] = kind(id) == BatchKind::constant && whole;
    }
  }

  void replace(Rewrite& rewrite, const Node& node) {
    std::vector<Var> inputs;
    for (ValueId input : node.inputs) {
      Var now = rewrite.now(input);
      if (averages(node, input)) {
        Var& mean = averaged_[input];
        if (!mean.valid()) mean = op::parts_mean_in_f32(now);
        now = mean;
      }
      inputs.push_back(scales(node, input) ? now * parts_ : now);
    }
    const auto outputs =
        rewrite.builder().node(node.op, inputs, node.attributes, static_cast<int>(node.outputs.size()));
    rewrite.replace(node, outputs);
  }

  const Graph& graph_;
  double parts_;
  std::vector<BatchAxis> axes_;
  std::vector<bool> of_sums_;   // by value: linear in sums of cotangents, and in nothing else of the samples
  std::vector<bool> of_whole_;  // by value: the same for all samples, and made of sums over the whole batch
  std::map<ValueId, Var> averaged_;
};

}  // namespace

bool is_sum_over_parts(const Node& node) {
  return node.op == "ReduceSum" && node.attributes.integer("over_parts", 0) != 0;
}

std::optional<Graph> over_parts(const Graph& graph, std::int64_t parts) {
  const bool mixes = std::ranges::any_of(
      graph.nodes(), [](const Node& node) { return is_moments(node) || is_sum_over_parts(node); });
  if (!mixes || !splittable(graph, {.averages_sums = true})) return std::nullopt;
  OverParts over(graph, parts);
  if (!over.is_exact()) return std::nullopt;
  return over.run();
}

}  // namespace superstep::transform
