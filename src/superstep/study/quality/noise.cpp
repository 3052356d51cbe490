#include "superstep/study/quality/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/thread_pool.h"
#include "superstep/run/model.h"
#include "superstep/run/task.h"
#include "superstep/run/train/checkpoint.h"
#include "superstep/run/train/run_directory.h"
#include "superstep/run/train/train_state.h"

namespace superstep::study {
namespace {

namespace fs = std::filesystem;

// Samples of a small batch, and how many of these: chosen. Fewer samples make a batch's gradient differ more
// from that of all, which is what is measured; more batches make the mean surer.
constexpr std::int64_t small_batch = 16, most_batches = 128;

// What scatters is the samples, not how their gradients are rounded; in f16 those without a loss scale would
// be zeros.
run::TrainSettings in_f32_for_f16(run::TrainSettings settings) {
  if (settings.precision == "f16") settings.precision = "f32", settings.loss_scale.clear();
  return settings;
}

// The gradients of a run's samples at some states.
class Gradients {
 public:
  Gradients(const run::TrainSettings& settings, int threads)
      : model_(in_f32_for_f16(settings)),
        target_(target::find_target("cpu")),
        pool_(threads),
        task_(model_.open_task(task_settings_of(settings, pool_))),
        executable_(target_.compile(
            model_.gradient_step(&target_),
            {.batch = small_batch, .micro_batch = model_.fixed_batch(), .threads = threads})) {
    run::fit_states(*executable_, model_, *task_, pool_);
    for (const auto& port : executable_->inputs()) inputs_.emplace_back(port.type.element, port.type.shape);
    for (const auto& port : executable_->outputs()) {
      outputs_.emplace_back(port.type.element, port.type.shape);
      const bool gradient = port.name.starts_with("gradient/");
      counts_.push_back(gradient ? static_cast<std::size_t>(port.type.shape.element_count()) : 0);
      parameters_ += counts_.back();
    }
  }

  void restore(const run::Checkpoint& checkpoint) {
    for (const auto& [name, tensor] : run::states_of(*executable_))
      if (const auto found = checkpoint.states.find(name);
          found != checkpoint.states.end() && found->second.shape() == tensor.shape())
        executable_->set_state(name, found->second);
  }

  std::optional<NoiseScale> noise() {
    const run::TrainSettings& settings = model_.settings();
    const std::vector<std::int64_t> order = run::epoch_order(task_->training_count(), settings.seed, 0);
    const std::int64_t batches =
        std::min<std::int64_t>(most_batches, static_cast<std::int64_t>(order.size()) / small_batch);
    NoiseMeter meter(parameters_, small_batch);
    std::vector<float> gradient(parameters_);
    for (std::int64_t i = 0; i < batches; ++i) {
      if (interrupted()) throw Error(ErrorCode::interrupted, "measuring the gradients' noise");
      task_->fill(std::span(order).subspan(static_cast<std::size_t>(i * small_batch), small_batch), 0,
                  settings.augment, inputs_);
      executable_->run(inputs_, outputs_);
      take(gradient);
      meter.add(gradient);
    }
    return meter.result();
  }

 private:
  void take(std::vector<float>& gradient) const {
    std::size_t at = 0;
    for (std::size_t k = 0; k < outputs_.size(); ++k)
      for (std::size_t i = 0; i < counts_[k]; ++i)
        gradient[at++] = static_cast<float>(outputs_[k].at(static_cast<std::int64_t>(i)));
  }

  run::Model model_;
  const target::Target& target_;
  ThreadPool pool_;
  std::unique_ptr<run::Task> task_;
  std::unique_ptr<target::Executable> executable_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<std::size_t> counts_;  // of the outputs that are gradients; others have none
  std::size_t parameters_ = 0;
};

}  // namespace

NoiseMeter::NoiseMeter(std::size_t parameters, std::int64_t batch)
    : batch_(batch), groups_(groups, Group{.sum = std::vector<double>(parameters)}) {}

void NoiseMeter::add(std::span<const float> gradient) {
  Group& group = groups_[next_++ % groups];
  ++group.count;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double value = gradient[i];
    group.sum[i] += value;
    group.squares += value * value;
  }
}

NoiseMeter::Parts NoiseMeter::parts_without(std::optional<std::size_t> left_out) const {
  double count = 0, squares = 0;
  std::vector<double> sum(groups_[0].sum.size());
  for (std::size_t g = 0; g < groups; ++g) {
    if (g == left_out) continue;
    count += static_cast<double>(groups_[g].count);
    squares += groups_[g].squares;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += groups_[g].sum[i];
  }
  double of_all = 0;
  for (const double value : sum) of_all += value / count * (value / count);
  const double of_small = squares / count, b = static_cast<double>(batch_), all = b * count;
  return {.gradient = (all * of_all - b * of_small) / (all - b),
          .noise = (of_small - of_all) / (1 / b - 1 / all)};
}

std::optional<NoiseScale> NoiseMeter::result() const {
  for (const Group& group : groups_)
    if (group.count < 2) return std::nullopt;
  const Parts whole = parts_without(std::nullopt);
  if (!(whole.noise > 0) || !std::isfinite(whole.gradient)) return std::nullopt;
  NoiseScale scale{.gradient = whole.gradient, .noise = whole.noise};
  for (const Group& group : groups_) scale.samples += group.count * batch_;
  // The ratio turned over, |G|^2 / tr(Sigma), has no pole where the gradient is nearly zero.
  double mean = 0, squares = 0;
  std::vector<double> turned;
  for (std::size_t g = 0; g < groups; ++g) {
    const Parts parts = parts_without(g);
    turned.push_back(parts.gradient / parts.noise);
    mean += turned.back() / static_cast<double>(groups);
  }
  for (const double each : turned) squares += (each - mean) * (each - mean);
  const auto number = static_cast<double>(groups);
  const double error = std::sqrt((number - 1) / number * squares);
  const double center = whole.gradient / whole.noise;
  constexpr double infinite = std::numeric_limits<double>::infinity();
  scale.batch = center > 0 ? 1 / center : infinite;
  scale.low = 1 / std::max(center + 2 * error, std::numeric_limits<double>::min());
  scale.high = center - 2 * error > 0 ? 1 / (center - 2 * error) : infinite;
  return scale;
}

std::vector<MeasuredNoise> noise_of_run(const fs::path& folder, int threads) {
  const run::RunDirectory directory = run::RunDirectory::open(folder);
  const run::TrainSettings settings = run::train_settings_from_json(directory.config());
  const auto measured = [&](std::int64_t step) {
    return MeasuredNoise{.precision = settings.precision,
                         .batch = settings.batch,
                         .seed = settings.seed,
                         .step = step,
                         .scale = {},
                         .words = {}};
  };
  std::vector<MeasuredNoise> all{measured(0)};
  try {
    Gradients gradients(settings, threads);
    all[0].scale = gradients.noise();
    if (const auto checkpoint = run::read_newest_checkpoint(directory.checkpoints())) {
      gradients.restore(*checkpoint);
      all.push_back(measured(checkpoint->step));
      all.back().scale = gradients.noise();
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::interrupted) throw;
    all.back().words = error.message();
  }
  for (MeasuredNoise& each : all)
    if (!each.scale && each.words.empty())
      each.words = fmt::format("fewer than {} batches of {} samples train, or their gradients do not differ",
                               2 * NoiseMeter::groups, small_batch);
  return all;
}

}  // namespace superstep::study
