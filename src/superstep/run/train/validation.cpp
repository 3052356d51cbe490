#include "superstep/run/train/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "superstep/run/train/checkpoint.h"
#include "superstep/run/train/input_ranges.h"
#include "superstep/workload/training_curve.h"

namespace superstep::run {
namespace {

constexpr std::int64_t evaluation_batch = 256;
constexpr std::int64_t curve_samples =
    64;  // of each kind that a line of a curve looks at: chosen, a moment's work

// At most `most` of the samples from `first` on, at equal distances.
std::vector<std::int64_t> spread_over(std::int64_t first, std::int64_t samples, std::int64_t most) {
  std::vector<std::int64_t> indices;
  const std::int64_t taken = std::min(samples, most);
  for (std::int64_t i = 0; i < taken; ++i) indices.push_back(first + i * samples / taken);
  return indices;
}

target::CompileOptions options_for(const Model& model, const Task& task, int threads) {
  const std::int64_t samples = std::max<std::int64_t>(1, task.size() - task.training_count());
  const std::int64_t fixed = model.fixed_batch();
  return {.batch = fixed > 0 ? fixed : std::min(evaluation_batch, samples),
          .micro_batch = fixed,
          .threads = threads};
}

}  // namespace

std::int64_t samples_to_validate(const std::string& asked, std::int64_t available, std::int64_t trained) {
  constexpr std::int64_t usual_most =
      10'000;  // a hundredth of a share's deviation at most, of shares (chosen)
  if (asked == "all") return available;
  if (asked.empty()) return std::min({available, usual_most, std::max(trained, evaluation_batch)});
  const bool percent = asked.ends_with('%');
  const std::string number = percent ? asked.substr(0, asked.size() - 1) : asked;
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  const bool whole = !percent && value >= 1 && value == std::floor(value) && value < 1e15;
  const double share = percent ? value / 100 : value;
  if (number.empty() || *end != '\0' || !(whole || (share > 0 && share <= 1)))
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no number of samples", asked), "--validate",
                "give a whole number, a share (0.1 or 10%) or all");
  if (whole) return std::min(available, static_cast<std::int64_t>(value));
  return std::min(available, static_cast<std::int64_t>(std::ceil(share * static_cast<double>(available))));
}

Validation::Validation(const target::Target& target, const Model& model, const Task& task, ThreadPool& pool,
                       int threads)
    : task_(task),
      pool_(pool),
      evaluator_(target, model.recipe().passes > 0 ? model.sampling(&target) : model.inference(&target),
                 options_for(model, task, threads), model.fixed_batch() > 0 || !model.whole_outputs().empty(),
                 model.whole_outputs()) {}

std::vector<Metric> Validation::quality(target::Executable& trained, std::int64_t most) {
  const std::int64_t first = task_.training_count(), last = std::min(task_.size(), first + most);
  if (last <= first) return {};
  std::vector<std::int64_t> indices(static_cast<std::size_t>(last - first));
  std::iota(indices.begin(), indices.end(), first);
  return task_.quality(indices, predict(trained, indices));
}

std::optional<SelfTest> Validation::self_test(const Model& model,
                                              const std::map<std::string, Tensor>& states) {
  constexpr std::int64_t samples = 4;  // chosen: a moment's work
  const std::vector<InputPort> ports = row_inputs(model);
  const std::vector<std::int64_t> indices = spread_over(0, task_.size(), samples);
  if (ports.empty() || indices.empty() || model.recipe().passes > 0 || !model.whole_outputs().empty())
    return std::nullopt;
  SelfTest test{.precision = model.settings().precision};
  const std::vector<Tensor> inputs = filled_inputs(task_, ports, indices, pool_);
  for (std::size_t i = 0; i < ports.size(); ++i) test.inputs.emplace(ports[i].name, inputs[i]);
  evaluator_.set_parameters(states, "the trained model");
  const std::vector<Tensor> outputs = evaluator_.predict(task_, indices, pool_);
  evaluator_.release();
  const graph::Graph graph = model.inference()(1);
  for (std::size_t i = 0; i < outputs.size(); ++i) test.outputs.emplace(graph.outputs()[i].name, outputs[i]);
  return test;
}

nlohmann::json Validation::curve_points(target::Executable& trained, std::int64_t epoch) {
  const auto* keeps = dynamic_cast<const workload::KeepsCurve*>(&task_);
  nlohmann::json points = nlohmann::json::object();
  if (!keeps) return points;
  const auto add = [&](const char* name, std::int64_t first, std::int64_t samples) {
    const std::vector<std::int64_t> indices = spread_over(first, samples, curve_samples);
    if (indices.empty()) return;
    points[name] = keeps->curve_point(indices, predict(trained, indices), static_cast<std::uint64_t>(epoch));
  };
  add("validation_errors", task_.training_count(), task_.size() - task_.training_count());
  add("training_errors", 0, task_.training_count());
  return points;
}

std::vector<Tensor> Validation::predict(target::Executable& trained, std::span<const std::int64_t> indices) {
  // Training and its validation never need their memory at the same time.
  trained.release_working_memory();
  evaluator_.set_parameters(served(states_of(trained)), "the trained model");
  std::vector<Tensor> predictions = evaluator_.predict(task_, indices, pool_);
  evaluator_.release();
  return predictions;
}

}  // namespace superstep::run
