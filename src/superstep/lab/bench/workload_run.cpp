#include "superstep/lab/bench/workload_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/base/stopwatch.h"
#include "superstep/lab/bench/primitive_graph.h"

namespace superstep::lab {
namespace {

constexpr double most_reference_flops = 5e8;  // a second or a few of the reference evaluation
// A rate at which repeating one batch thousands of times does not run off to infinity. Time does not depend
// on it.
constexpr float harmless_learning_rate = 1e-9f;

std::vector<Tensor> tensors_of(std::span<const target::Executable::Port> ports) {
  std::vector<Tensor> tensors;
  for (const auto& port : ports) tensors.emplace_back(port.type.element, port.type.shape);
  return tensors;
}

// The first sample of a batch.
Tensor first_row(const Tensor& tensor, const graph::ValueType& one) {
  Tensor row(one.element, one.shape);
  std::copy_n(tensor.bytes(), row.byte_count(), row.bytes());
  return row;
}

// The largest difference of the first elements from what is expected, as a share of the largest of these.
// Infinities and what is no number agree with themselves; outputs of zeros have no share.
double share_apart(const Tensor& expected, const Tensor& found) {
  double largest = 1e-6, difference = 0;
  for (std::int64_t k = 0; k < expected.element_count(); ++k) {
    const double a = expected.at(k), b = found.at(k);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    difference = std::max(difference,
                          std::isfinite(a - b) ? std::abs(a - b) : std::numeric_limits<double>::infinity());
  }
  for (std::int64_t k = 0; k < expected.element_count(); ++k)
    if (std::isfinite(expected.at(k))) largest = std::max(largest, std::abs(expected.at(k)));
  return difference / largest;
}

// Largest difference from the reference, as a share of the largest output. Chosen: rounding through many
// layers passes, a wrong kernel does not.
double tolerance_of(const std::string& precision) { return precision == "f32" ? 1e-3 : 6e-2; }

}  // namespace

WorkloadRun::WorkloadRun(const WorkloadRunSettings& settings)
    : settings_(settings),
      model_(settings.model),
      is_file_(run::is_model_file(settings.model.workload)),
      pool_(settings.threads) {
  const Stopwatch watch;
  if (model_.fixed_batch() > 0) settings_.model.micro_batch = settings_.model.batch;
  const target::CompileOptions options{.batch = settings_.model.batch,
                                       .micro_batch = settings_.model.micro_batch,
                                       .threads = settings_.threads,
                                       .measure_steps = settings_.measure_steps};
  const target::Target& target = target::find_target(settings_.model.target);
  executable_ =
      target.compile(settings_.trains ? model_.training_step(&target) : model_.inference(&target), options);
  compile_seconds_ = watch.seconds();
  inputs_ = tensors_of(executable_->inputs());
  outputs_ = tensors_of(executable_->outputs());
  open_data();
  fill_resident();
}

WorkloadRun::~WorkloadRun() = default;

// Enough for every batch to be fresh for a while; the training share of the tasks is at least one half. Large
// samples are fewer: what lies beyond every cache is fresh, and drawing 4,096 pictures of 224 x 224 takes
// minutes.
std::int64_t WorkloadRun::data_samples() const {
  constexpr std::int64_t most = 4096, fewest = 256;  // chosen
  constexpr double enough_bytes = 256e6;             // several times the last caches of servers
  double bytes = 0;
  for (const Tensor& input : inputs_) bytes += static_cast<double>(input.byte_count());
  const double of_sample = std::max(1.0, bytes / static_cast<double>(settings_.model.batch));
  const auto held = static_cast<std::int64_t>(std::min(static_cast<double>(most), enough_bytes / of_sample));
  return std::max({4 * settings_.model.batch, fewest, held});
}

void WorkloadRun::open_data() {
  if (is_file_) return;
  run::TaskSettings data{
      .data = settings_.model.data, .samples = 0, .seed = settings_.model.seed, .pool = &pool_};
  data.samples = data_samples();
  try {
    task_ = run::open_task(model_.workload(), data);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
  }
}

void WorkloadRun::fill_resident() {
  const std::size_t given = inputs_.size() - (settings_.trains ? 1 : 0);
  if (settings_.trains) inputs_.back() = Tensor::scalar(harmless_learning_rate);
  if (task_) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(settings_.model.batch));
    for (std::size_t i = 0; i < indices.size(); ++i)
      indices[i] = static_cast<std::int64_t>(i) % task_->size();
    if (settings_.trains)
      task_->fill(indices, 0, false, std::span(inputs_).first(given));
    else
      task_->fill_inputs(indices, inputs_, pool_);
    return;
  }
  // Integers are indices: 0 is always one that is there. Those of a model file that is served are masks, too.
  for (std::size_t i = 0; i < given; ++i) {
    RandomStream random(settings_.model.seed, i);
    if (is_floating(inputs_[i].type()))
      fill_random(inputs_[i], settings_.model.seed + i, 1);
    else if (is_file_ && !settings_.trains)
      for (std::int64_t k = 0; k < inputs_[i].element_count(); ++k)
        inputs_[i].set(k, static_cast<double>(random.below(2)));
  }
}

void WorkloadRun::call_with_data() {
  if (settings_.trains) {
    if (!feeder_) {
      std::vector<Tensor> prototypes(inputs_.begin(), inputs_.end() - 1);
      feeder_ = std::make_unique<run::Feeder>(*task_, std::move(prototypes), settings_.model.batch,
                                              settings_.model.seed, true, run::BatchAddress{});
    }
    std::vector<Tensor> batch = feeder_->next();
    batch.push_back(inputs_.back());
    executable_->run(batch, outputs_);
    return;
  }
  std::vector<std::int64_t> indices(static_cast<std::size_t>(settings_.model.batch));
  for (std::int64_t& index : indices) index = next_sample_++ % task_->size();
  task_->fill_inputs(indices, inputs_, pool_);
  call();
}

std::string WorkloadRun::data_source() const {
  if (!task_) return "random values";
  const nlohmann::json about = task_->describe();
  return about.value("source", settings_.model.data.empty() ? "generated" : "file");
}

std::string WorkloadRun::check() {
  call();
  const target::PlanSummary plan = summary();
  if (settings_.trains) {
    const double loss = outputs_[0].at(0);
    if (!std::isfinite(loss))
      throw Error(ErrorCode::internal, fmt::format("the loss of the timed step is {}", loss),
                  settings_.model.workload);
    return fmt::format("loss {:.4g}, finite", loss);
  }
  std::string found = "not checked: the reference evaluation would take too long";
  compare_with_reference(plan.flops / static_cast<double>(plan.batch), found);
  return found;
}

// Whether the reference's one sample says what is right for the first of a batch: not for what is made of
// all.
bool WorkloadRun::is_of_rows(const std::string& output) const {
  const std::vector<std::string> whole = model_.whole_outputs();
  return settings_.model.batch == std::max<std::int64_t>(1, model_.fixed_batch()) ||
         std::ranges::find(whole, output) == whole.end();
}

void WorkloadRun::compare_with_reference(double flops_a_sample, std::string& found) {
  if (flops_a_sample > most_reference_flops) return;
  const std::int64_t rows = std::max<std::int64_t>(1, model_.fixed_batch());
  const auto reference =
      target::find_target("reference").compile(model_.inference(), {.batch = rows, .micro_batch = rows});
  std::vector<Tensor> inputs, outputs = tensors_of(reference->outputs());
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    inputs.push_back(first_row(inputs_[i], reference->inputs()[i].type));
  reference->run(inputs, outputs);
  double worst = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (is_of_rows(reference->outputs()[i].name))
      worst = std::max(worst, share_apart(outputs[i], outputs_[i]));
  if (!(worst <= tolerance_of(settings_.model.precision)))
    throw Error(
        ErrorCode::internal,
        fmt::format("the outputs differ by {:.2g} of their largest from the reference evaluation", worst),
        settings_.model.workload, "the time of a wrong result is not reported");
  found = fmt::format("outputs within {:.1g} of the reference evaluation", worst);
}

}  // namespace superstep::lab
