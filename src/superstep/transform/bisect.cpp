#include "superstep/transform/bisect.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "superstep/base/random.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/transform/pipeline.h"

namespace superstep::transform {
namespace {

using graph::Graph;
using graph::Value;
using graph::ValueId;

// How far parameters and inputs are moved to see what rounding does: some last bits of f32; the last of bf16
// where values are rounded to it (or to f16) on the way.
constexpr double wide_step = 0x1p-20, narrow_step = 0x1p-9;
// A pass rounds at every operator, a move of parameters happens once.
constexpr double margin = 4;

constexpr double unlike = std::numeric_limits<double>::infinity();

using Named = std::map<std::string, Tensor>;

void fill(Tensor& tensor, RandomStream random, double low, double high) {
  const bool whole = !is_floating(tensor.type());
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, whole ? static_cast<double>(random.below(2)) : random.uniform(low, high));
}

bool is_zero(const Tensor& tensor) {
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    if (tensor.at(i) != 0) return false;
  return true;
}

// What a graph is evaluated on, by name: passes keep inputs and states.
class Data {
 public:
  Data(const Graph& graph, std::uint64_t seed) {
    std::uint64_t index = 0;
    for (const ValueId id : graph.inputs()) {
      Tensor tensor(graph.type(id).element, graph.type(id).shape);
      fill(tensor, RandomStream(seed, index++), 0, 1);
      inputs_.push_back(std::move(tensor));
    }
    for (const ValueId id : graph.states()) {
      const Value& state = graph.value(id);
      ++index;
      if (!is_floating(state.type.element) || !is_zero(state.data)) continue;
      Tensor tensor(state.type.element, state.type.shape);
      fill(tensor, RandomStream(seed, index), 0.25, 1);
      states_.emplace(state.name, std::move(tensor));
    }
  }

  // Outputs and states after a run: "output y", "state w".
  Named run(const Graph& graph) const { return run(graph, inputs_, states_); }

  // The same with all numbers a share of themselves away, at most `step`.
  Named run_moved(const Graph& graph, double step, std::uint64_t seed) const {
    std::uint64_t index = 0;
    const auto moved = [&](const Tensor& tensor) {
      Tensor result = tensor.clone();
      RandomStream random(seed, index++, 1);
      if (is_floating(tensor.type()))
        for (std::int64_t i = 0; i < result.element_count(); ++i)
          result.set(i, result.at(i) * (1 + step * random.uniform(-1, 1)));
      return result;
    };
    std::vector<Tensor> inputs;
    for (const Tensor& input : inputs_) inputs.push_back(moved(input));
    Named states;
    for (const ValueId id : graph.states()) {
      const Value& state = graph.value(id);
      const auto given = states_.find(state.name);
      states.emplace(state.name, moved(given == states_.end() ? state.data : given->second));
    }
    return run(graph, inputs, states);
  }

 private:
  static Named run(const Graph& graph, std::span<const Tensor> inputs, const Named& states) {
    op::Evaluation evaluation = op::evaluate(graph, inputs, states);
    Named results;
    for (std::size_t i = 0; i < evaluation.outputs.size(); ++i)
      results.emplace("output " + graph.outputs()[i].name, std::move(evaluation.outputs[i]));
    for (auto& [name, tensor] : evaluation.states) results.emplace("state " + name, std::move(tensor));
    return results;
  }

  std::vector<Tensor> inputs_;
  Named states_;
};

// The largest difference as a share of the largest element. Elements that are no numbers must be the same.
double difference(const Tensor& before, const Tensor& after) {
  if (before.type() != after.type() || before.shape() != after.shape()) return unlike;
  double largest = 0, apart = 0;
  for (std::int64_t i = 0; i < before.element_count(); ++i) {
    const double a = before.at(i), b = after.at(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) {
      if (std::isfinite(a)) largest = std::max(largest, std::abs(a));
      continue;
    }
    if (!std::isfinite(a) || !std::isfinite(b)) return unlike;
    largest = std::max({largest, std::abs(a), std::abs(b)});
    apart = std::max(apart, std::abs(a - b));
  }
  return apart > 0 ? apart / largest : 0;
}

bool has_narrow_values(const Graph& graph) {
  return std::ranges::any_of(graph.values(), [](const Value& value) {
    return is_floating(value.type.element) && size_in_bytes(value.type.element) == 2;
  });
}

// What the graph gave last, and how far rounding moves that.
class Watch {
 public:
  Watch(const Graph& graph, std::uint64_t seed) : seed_(seed), data_(graph, seed) { begin(graph); }

  // From here on results are held against those of this graph.
  void restart(const Graph& graph) {
    data_ = Data(graph, seed_);
    begin(graph);
  }

  // Fills in what the graph gives beside what it gave before.
  void compare(const Graph& graph, double rounding, BisectStep& step) {
    Named now = data_.run(graph);
    if (has_narrow_values(graph) != narrow_) find_noise(graph, now);
    double worst = 0;
    const auto note = [&](const std::string& where, double found) {
      const double allowed = rounding > 0 ? std::max(rounding, margin * noise_[where]) : 0;
      const double share = allowed > 0 ? found / allowed : found > 0 ? unlike : 0;
      if (found == 0 || share < worst || (share == worst && !step.where.empty())) return;
      worst = share;
      step.difference = found;
      step.allowed = allowed;
      step.where = where;
    };
    for (const auto& [where, tensor] : last_) {
      const auto found = now.find(where);
      note(where, found == now.end() ? unlike : difference(tensor, found->second));
    }
    for (const auto& [where, tensor] : now)
      if (!last_.contains(where)) note(where, unlike);
    if (step.where.empty()) step.allowed = rounding;
    last_ = std::move(now);
  }

 private:
  void begin(const Graph& graph) {
    last_ = data_.run(graph);
    find_noise(graph, last_);
  }

  void find_noise(const Graph& graph, const Named& results) {
    narrow_ = has_narrow_values(graph);
    noise_.clear();
    const Named moved = data_.run_moved(graph, narrow_ ? narrow_step : wide_step, seed_);
    for (const auto& [where, tensor] : results) noise_[where] = difference(tensor, moved.at(where));
  }

  std::uint64_t seed_;
  Data data_;
  Named last_;
  bool narrow_ = false;
  std::map<std::string, double> noise_;
};

}  // namespace

Bisection bisect(Graph graph, std::span<const Pass> passes, const BisectOptions& options) {
  Bisection result;
  Watch watch(graph, options.seed);
  const auto after = [&](const Graph& now, const PassRecord& record) {
    if (options.progress) options.progress(record.position + 1, passes.size());
    if (result.wrong()) return;
    const double rounding = passes[record.position].rounding;
    BisectStep step{.pass = record.pass, .position = record.position, .changed = record.changed};
    if (record.changed && rounding == Pass::other_results)
      watch.restart(now);
    else if (record.changed)
      watch.compare(now, rounding, step);
    result.steps.push_back(std::move(step));
  };
  run_pipeline(graph, passes, {.disabled = options.disabled, .after = after});
  return result;
}

}  // namespace superstep::transform
