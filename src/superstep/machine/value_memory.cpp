#include "superstep/machine/value_memory.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "superstep/op/training/optimizer.h"

namespace superstep::machine {
namespace {

using graph::Graph;
using graph::NodeId;
using graph::Phase;
using graph::ValueId;

constexpr std::size_t none = static_cast<std::size_t>(-1);
constexpr std::size_t values_shown = 8;

struct Life {
  ValueId value;
  std::size_t first = none, last = 0;  // kernels
  double bytes = 0;
  bool saved = false;  // made forward, read backward
};

class Lives {
 public:
  Lives(const Graph& graph, std::span<const OperatorCost> costs, const Precision& precision,
        std::size_t stage)
      : graph_(graph), costs_(costs), stage_(stage), kernel_of_(graph.node_count(), none) {
    for (std::size_t i = 0; i < costs.size(); ++i)
      for (NodeId id : costs[i].work.nodes) kernel_of_[id.index()] = i;
    for (std::size_t i = 0; i < graph.node_count(); ++i) visit(NodeId(i), precision);
    for (const graph::Output& output : graph.outputs()) extend(output.value, costs.size());
  }

  std::vector<Life> take() {
    std::vector<Life> lives;
    for (auto& [index, life] : lives_)
      if (life.first != none) lives.push_back(life);
    return lives;
  }

 private:
  // Views are no kernels: what they give is their first input.
  ValueId source(ValueId id) const {
    while (id.valid() && graph_.value(id).kind == graph::ValueKind::computed) {
      const graph::Node& node = graph_.node(graph_.value(id).producer);
      if (kernel_of_[graph_.value(id).producer.index()] != none || node.inputs.empty()) break;
      id = node.inputs[0];
    }
    return id;
  }

  void visit(NodeId id, const Precision& precision) {
    const std::size_t kernel = kernel_of_[id.index()];
    if (kernel == none) return;
    for (ValueId input : graph_.node(id).inputs)
      if (input.valid()) extend(source(input), kernel);
    if (costs_[kernel].work.stage != stage_) return;
    for (ValueId output : graph_.node(id).outputs) {
      if (!output.valid()) continue;
      lives_[output.index()] = {output, kernel, kernel, precision.bytes(graph_.value(output)), false};
    }
  }

  void extend(ValueId id, std::size_t kernel) {
    const auto found = lives_.find(id.index());
    if (found == lives_.end()) return;
    Life& life = found->second;
    life.last = std::max(life.last, std::min(kernel, costs_.size() - 1));
    if (kernel >= costs_.size()) return;
    life.saved |=
        costs_[life.first].work.phase == Phase::forward && costs_[kernel].work.phase == Phase::backward;
  }

  const Graph& graph_;
  std::span<const OperatorCost> costs_;
  std::size_t stage_;
  std::vector<std::size_t> kernel_of_;
  std::map<std::size_t, Life> lives_;
};

// A value read only inside its own kernel never exists.
void drop_internal(std::vector<Life>& lives) {
  std::erase_if(lives, [](const Life& life) { return life.first == life.last; });
}

// The ends of segments of about `target` bytes: of the last few values before a cut, the smallest is kept.
std::vector<std::size_t> checkpoints_of(const std::vector<Life*>& saved, double target) {
  constexpr std::size_t choice = 4;
  std::vector<std::size_t> kept;
  double segment = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    segment += saved[i]->bytes;
    if (segment < target && i + 1 < saved.size()) continue;
    std::size_t best = i;
    for (std::size_t j = i; j > begin && j + choice > i; --j)
      if (saved[j]->bytes < saved[best]->bytes) best = j;
    kept.push_back(best);
    begin = i + 1;
    segment = 0;
  }
  return kept;
}

struct Checkpoints {
  std::vector<std::size_t> kept;
  double bytes = 0, largest_segment = 0;
};

Checkpoints measure(const std::vector<Life*>& saved, std::vector<std::size_t> kept) {
  Checkpoints result{.kept = std::move(kept)};
  double segment = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    segment += saved[i]->bytes;
    if (next >= result.kept.size() || i != result.kept[next]) continue;
    result.bytes += saved[i]->bytes;
    result.largest_segment = std::max(result.largest_segment, segment);
    segment = 0;
    ++next;
  }
  result.largest_segment = std::max(result.largest_segment, segment);
  return result;
}

// Saved values that are no checkpoints are freed at the end of the forward pass; the largest segment comes
// back while its backward pass runs. The number of segments is the one that needs least.
struct Recomputed {
  double largest_segment = 0, share = 0;  // bytes; of the forward pass
};

Recomputed recompute(std::vector<Life>& lives) {
  std::vector<Life*> saved;
  double all = 0;
  for (Life& life : lives)
    if (life.saved) saved.push_back(&life), all += life.bytes;
  if (saved.empty()) return {};
  std::sort(saved.begin(), saved.end(), [](const Life* a, const Life* b) { return a->first < b->first; });
  Checkpoints best;
  for (int segments = 1; segments <= 64; ++segments) {
    const Checkpoints found = measure(saved, checkpoints_of(saved, all / segments));
    const bool better = found.bytes + found.largest_segment < best.bytes + best.largest_segment;
    if (best.kept.empty() || better) best = found;
  }
  std::size_t next = 0;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    if (next < best.kept.size() && i == best.kept[next]) {
      ++next;
      continue;
    }
    saved[i]->last = std::min(saved[i]->last, saved[i]->first + 2);
    saved[i]->saved = false;
  }
  // Segments have equal bytes; of one alone everything is run again.
  const double segments = static_cast<double>(best.kept.size());
  return {best.largest_segment, segments > 1 ? 1 - 1 / segments : 1};
}

std::vector<NamedBytes> alive_at(const Graph& graph, const std::vector<Life>& lives, std::size_t kernel,
                                 double copies) {
  std::vector<NamedBytes> values;
  for (const Life& life : lives)
    if (life.first <= kernel && kernel <= life.last)
      values.push_back({graph.value(life.value).name, life.bytes * (life.saved ? copies : 1)});
  std::sort(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (values.size() > values_shown) values.resize(values_shown);
  return values;
}

}  // namespace

LiveMoment fullest_moment(const Graph& graph, std::span<const OperatorCost> costs, const Precision& precision,
                          const MemoryOptions& options) {
  std::vector<Life> lives = Lives(graph, costs, precision, options.stage).take();
  drop_internal(lives);
  const Recomputed again = options.recompute ? recompute(lives) : Recomputed();
  const double copies = options.in_flight > 0
                            ? options.in_flight
                            : static_cast<double>(2 * (options.stages - 1 - options.stage) + 1);
  std::vector<double> change(costs.size() + 2, 0.0);
  for (const Life& life : lives) {
    const double bytes = life.bytes * (life.saved ? copies : 1);
    change[life.first] += bytes;
    change[life.last + 1] -= bytes;
  }
  LiveMoment fullest{.recomputed = again.share};
  double alive = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    alive += change[i];
    if (costs[i].work.stage != options.stage) continue;
    const double activations = alive + (costs[i].work.phase == Phase::backward ? again.largest_segment : 0);
    if (activations + costs[i].temporary_bytes < fullest.activations + fullest.temporary) continue;
    fullest.kernel = i;
    fullest.activations = activations;
    fullest.temporary = costs[i].temporary_bytes;
  }
  fullest.values = alive_at(graph, lives, fullest.kernel, copies);
  return fullest;
}

StateBytes state_bytes(const Graph& graph, std::span<const OperatorCost> costs, const Precision& precision,
                       std::size_t stage) {
  std::vector<bool> here(graph.value_count(), false);
  for (const OperatorCost& cost : costs)
    if (cost.work.stage == stage)
      for (NodeId id : cost.work.nodes)
        for (ValueId input : graph.node(id).inputs)
          if (input.valid()) here[input.index()] = true;
  StateBytes bytes;
  for (ValueId id : graph.states()) {
    if (!here[id.index()]) continue;
    const graph::Value& value = graph.value(id);
    const bool optimizer = op::is_optimizer_state(value.name);
    (optimizer ? bytes.optimizer : bytes.parameters) += precision.bytes(value);
  }
  return bytes;
}

void place_optimizer(double bytes, const MemoryOptions& options, Memory& memory) {
  (options.optimizer_off_chip ? memory.streamed : memory.optimizer) = options.optimizer_share * bytes;
}

Memory memory_of_values(const graph::Graph& graph, std::span<const OperatorCost> costs,
                        const Precision& precision, const MemoryOptions& options, double capacity) {
  const LiveMoment moment = fullest_moment(graph, costs, precision, options);
  const StateBytes state = state_bytes(graph, costs, precision, options.stage);
  Memory memory{.limit = capacity, .parameters = state.parameters};
  place_optimizer(state.optimizer, options, memory);
  memory.activations = moment.activations;
  memory.largest = moment.values;
  memory.recomputed = moment.recomputed;
  if (!costs.empty()) memory.fullest = costs[moment.kernel].work.name;
  return memory;
}

}  // namespace superstep::machine
