#include "superstep/lab/profile/device_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "superstep/base/error.h"
#include "superstep/base/statistics.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/target/sends_ahead.h"

namespace superstep::lab {
namespace {

using target::Executable;

constexpr int traced_runs = 3;  // chosen: enough to see a pattern, few enough for a small file

// Two sets of inputs in memory of their own, so that one can go ahead while the other is computed with.
struct Tensors {
  std::array<std::vector<Tensor>, 2> inputs;
  std::vector<Tensor> outputs;

  Tensors(const Executable& executable, const ProfiledModel& model) {
    for (std::vector<Tensor>& set : inputs) {
      for (const auto& port : executable.inputs()) set.emplace_back(port.type.element, port.type.shape);
      model.fill(set);
    }
    for (const auto& port : executable.outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  }
};

double timed_run(Executable& executable, Tensors& tensors) {
  if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while profiling");
  const Stopwatch watch;
  executable.run(tensors.inputs[0], tensors.outputs);
  return watch.seconds();
}

// The run in the middle of three: its inputs were sent during the first, and those of the third go up during
// it.
double timed_run_sending_ahead(Executable& executable, Tensors& tensors) {
  const auto run = [&](std::size_t set, bool sends) {
    const Stopwatch watch;
    target::run_sending_ahead(executable, tensors.inputs[set], tensors.outputs,
                              [&] { return sends ? tensors.inputs[1 - set] : std::vector<Tensor>(); });
    return watch.seconds();
  };
  run(0, true);
  const double seconds = run(1, true);
  run(0, false);
  return seconds;
}

class Measurement {
 public:
  Measurement(const target::Target& target, const ProfiledModel& model, const ProfileSettings& settings,
              const target::Chips& chips)
      : plain_(compile(target, model, settings, chips, false)),
        clocked_(compile(target, model, settings, chips, true)),
        plain_tensors_(*plain_, model),
        clocked_tensors_(*clocked_, model) {}

  void run(int runs) {
    for (int i = 0; i < std::max(2, runs / 3); ++i) round();
    seconds_ = {};
    timelines_.clear();
    for (int i = 0; i < runs; ++i) round();
  }

  void fill(DeviceProfile& profile) const {
    profile.plan = plain_->summary();
    profile.program = target::pjrt::program_facts(*plain_);
    profile.seconds = median(seconds_[0]);
    profile.awaited_seconds = median(seconds_[1]);
    profile.ahead_seconds = median(seconds_[2]);
    profile.phases = phases();
    profile.timeline = middle();
  }

  std::string trace() {
    return target::pjrt::device_trace(*plain_, [&] {
      for (int i = 0; i < traced_runs; ++i) timed_run(*plain_, plain_tensors_);
    });
  }

 private:
  static std::unique_ptr<Executable> compile(const target::Target& target, const ProfiledModel& model,
                                             const ProfileSettings& settings, const target::Chips& chips,
                                             bool measured) {
    return target.compile(model.graph, {.batch = settings.batch,
                                        .micro_batch = settings.batch,
                                        .threads = settings.threads,
                                        .measure_steps = measured,
                                        .chips = chips});
  }

  void round() {
    seconds_[0].push_back(timed_run(*plain_, plain_tensors_));
    seconds_[1].push_back(timed_run(*clocked_, clocked_tensors_));
    timelines_.push_back(clocked_->timeline());
    seconds_[2].push_back(timed_run_sending_ahead(*plain_, plain_tensors_));
  }

  // Inputs go up in the first phase, outputs come down in the last.
  std::vector<DevicePhase> phases() const {
    const auto bytes_of = [](std::span<const Tensor> tensors) {
      double bytes = 0;
      for (const Tensor& tensor : tensors) bytes += static_cast<double>(tensor.byte_count());
      return bytes;
    };
    std::vector<DevicePhase> phases;
    for (const target::PlanStep& step : timelines_.front().steps) phases.push_back({.name = step.op});
    for (std::size_t i = 0; i < phases.size(); ++i) {
      std::vector<double> seconds;
      for (const target::Timeline& timeline : timelines_) seconds.push_back(timeline.events[i].seconds);
      phases[i].seconds = median(seconds);
    }
    phases.front().bytes = bytes_of(plain_tensors_.inputs[0]);
    phases.back().bytes = bytes_of(plain_tensors_.outputs);
    return phases;
  }

  const target::Timeline& middle() const {
    std::vector<const target::Timeline*> order;
    for (const target::Timeline& timeline : timelines_) order.push_back(&timeline);
    std::ranges::sort(order, {}, [](const target::Timeline* timeline) { return timeline->seconds; });
    return *order[order.size() / 2];
  }

  std::unique_ptr<Executable> plain_, clocked_;
  Tensors plain_tensors_, clocked_tensors_;
  std::array<std::vector<double>, 3> seconds_;
  std::vector<target::Timeline> timelines_;
};

}  // namespace

DeviceProfile measure_device_profile(const target::Target& target, const ProfiledModel& model,
                                     const ProfileSettings& settings, const target::Chips& chips,
                                     bool traced) {
  Measurement measurement(target, model, settings, chips);
  measurement.run(std::max(3, settings.runs));
  DeviceProfile profile{.name = model.name,
                        .mode = model.mode,
                        .precision = model.precision,
                        .target = std::string(target.name())};
  measurement.fill(profile);
  for (const target::pjrt::DeviceFacts& device : target::pjrt::devices_in_use(target.name()))
    profile.devices.push_back(
        fmt::format("{}, {} ({}, {})", device.name, device.kind, device.plugin, device.versions));
  if (traced && profile.program.has_profiler) profile.trace = measurement.trace();
  return profile;
}

}  // namespace superstep::lab
