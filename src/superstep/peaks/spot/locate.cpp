#include "superstep/peaks/spot/locate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/baseline/xray/bragg_position.h"
#include "superstep/physics/xray/bragg_patches.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/served_weights.h"

namespace superstep::peaks {
namespace {

constexpr int usual_patch = 11;              // px: what the published network takes
constexpr std::int64_t fits_an_item = 16;    // a fit takes a fraction of a millisecond
constexpr std::int64_t network_batch = 512;  // as `infer` has it

void throw_if_interrupted() {
  if (interrupted()) throw Error(ErrorCode::interrupted, "no file was written");
}

bool is_within(double place, int size) { return place >= -0.5 && place <= size - 0.5; }  // not NaN

PatchPlace checked(double column, double row, bool located, std::span<const float> patch, int size) {
  if (located && is_within(column, size) && is_within(row, size)) return {column, row, true};
  const baseline::PeakPosition middle = baseline::centroid(patch, size);
  return {middle.column, middle.row, false};
}

class Conventional final : public Locator {
 public:
  Conventional(baseline::BraggMethod method, int patch) : method_(method), patch_(patch) {}

  int patch() const override { return patch_; }
  std::int64_t batch() const override { return 1; }
  std::vector<PatchPlace> locate(std::span<const float> patches, ThreadPool& pool) override {
    throw_if_interrupted();
    const auto area = static_cast<std::size_t>(patch_) * static_cast<std::size_t>(patch_);
    const auto count = static_cast<std::int64_t>(patches.size() / area);
    std::vector<PatchPlace> places(static_cast<std::size_t>(count));
    pool.parallel_for((count + fits_an_item - 1) / fits_an_item, [&](std::int64_t item, int) {
      if (interrupted()) return;
      for (std::int64_t i = item * fits_an_item; i < std::min(count, (item + 1) * fits_an_item); ++i) {
        const std::span<const float> patch = patches.subspan(static_cast<std::size_t>(i) * area, area);
        const baseline::PeakFit fit = baseline::locate(method_, patch, patch_);
        places[static_cast<std::size_t>(i)] =
            checked(fit.position.column, fit.position.row, fit.converged, patch, patch_);
      }
    });
    throw_if_interrupted();
    return places;
  }

 private:
  baseline::BraggMethod method_;
  int patch_;
};

// Whole batches, the last filled up: a patch is computed the same way wherever it is.
class Network final : public Locator {
 public:
  Network(const run::Weights& weights, int threads) {
    const target::Target& target = target::find_target("cpu");
    executable_ = target.compile(run::Model(weights.settings).inference(&target),
                                 {.batch = network_batch, .threads = threads});
    for (const std::string& name : executable_->state_names()) {
      const auto found = weights.states.find(name);
      if (found == weights.states.end())
        throw Error(ErrorCode::bad_file,
                    fmt::format("has no parameter {}: it belongs to another model", name), weights.where);
      executable_->set_state(name, found->second);
    }
    for (const auto& port : executable_->inputs()) inputs_.emplace_back(port.type.element, port.type.shape);
    for (const auto& port : executable_->outputs()) outputs_.emplace_back(port.type.element, port.type.shape);
    patch_ = static_cast<int>(inputs_[0].shape()[2]);
  }

  int patch() const override { return patch_; }
  std::int64_t batch() const override { return network_batch; }
  std::vector<PatchPlace> locate(std::span<const float> patches, ThreadPool&) override {
    const auto area = static_cast<std::size_t>(patch_) * static_cast<std::size_t>(patch_);
    std::vector<PatchPlace> places;
    for (std::size_t first = 0; first * area < patches.size();
         first += static_cast<std::size_t>(network_batch)) {
      throw_if_interrupted();
      const std::span<const float> batch = patches.subspan(
          first * area,
          std::min(static_cast<std::size_t>(network_batch) * area, patches.size() - first * area));
      locate_batch(batch, area, places);
    }
    return places;
  }

 private:
  void locate_batch(std::span<const float> patches, std::size_t area, std::vector<PatchPlace>& places) {
    const std::span<float> input = inputs_[0].as<float>();
    std::ranges::fill(std::ranges::copy(patches, input.begin()).out, input.end(), 0.0f);
    for (std::size_t i = 0; i < patches.size(); i += area) data::scale_to_unit(input.subspan(i, area));
    executable_->run(inputs_, outputs_);
    const std::span<const float> found = std::as_const(outputs_[0]).as<float>();
    for (std::size_t i = 0; i * area < patches.size(); ++i)
      places.push_back(checked(double{found[2 * i]} * patch_, double{found[2 * i + 1]} * patch_, true,
                               patches.subspan(i * area, area), patch_));
  }

  std::unique_ptr<target::Executable> executable_;
  std::vector<Tensor> inputs_, outputs_;
  int patch_ = 0;
};

std::unique_ptr<Locator> open_network(const LocatorSettings& settings) {
  if (settings.run.empty())
    throw Error(ErrorCode::invalid_argument, "the network has to be trained: of which run is it?", "--run",
                "superstep train braggnn --out run, then --run run; or --method fit");
  const run::Weights weights = run::load_weights(settings.run);
  if (weights.settings.workload != "braggnn")
    throw Error(ErrorCode::invalid_argument,
                fmt::format("is a run of '{}', not of 'braggnn'", weights.settings.workload),
                settings.run.string());
  auto network = std::make_unique<Network>(weights, settings.threads);
  if (settings.patch > 0 && settings.patch != network->patch())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the network of this run takes patches of {} px, not {}", network->patch(),
                            settings.patch),
                "--patch", "leave it away, or train with --set patch=");
  return network;
}

}  // namespace

std::span<const std::string> method_names() {
  static const std::vector<std::string> names{"braggnn", "fit", "centroid"};
  return names;
}

std::unique_ptr<Locator> open_locator(const LocatorSettings& settings) {
  if (settings.method == Method::braggnn) return open_network(settings);
  if (!settings.run.empty())
    throw Error(ErrorCode::invalid_argument, "is of --method braggnn", "--run", "leave one of the two away");
  const auto method =
      settings.method == Method::fit ? baseline::BraggMethod::rotated : baseline::BraggMethod::centroid;
  return std::make_unique<Conventional>(method, settings.patch > 0 ? settings.patch : usual_patch);
}

}  // namespace superstep::peaks
