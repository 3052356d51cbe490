// Data for the recurrent layers: noisy oscillations, or random numbers where only throughput counts.
#include <cmath>
#include <numbers>

#include "superstep/base/random.h"
#include "superstep/run/task/pictures.h"
#include "superstep/run/task/tasks.h"

namespace superstep::run {
namespace {

constexpr std::int64_t default_samples = 4096;
constexpr double training_share = 0.8;
constexpr double slowest = 1, fastest = 5;  // periods in a whole sequence
constexpr double noise = 0.2;               // standard deviation, of an amplitude of 1

using MakeSample = void (*)(RandomStream& random, std::int64_t steps, std::span<float> x, std::span<float> y);

// An oscillation of one frequency and phase, which every sensor sees with a delay of its own.
void oscillation(RandomStream& random, std::int64_t steps, std::span<float> x, std::span<float> y) {
  const double periods = random.uniform(slowest, fastest), phase = random.uniform(0, 2 * std::numbers::pi);
  const std::size_t sensors = x.size() / static_cast<std::size_t>(steps);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto step = static_cast<double>(i / sensors) / static_cast<double>(steps);
    const double delay = static_cast<double>(i % sensors) / static_cast<double>(sensors);
    const double angle = 2 * std::numbers::pi * (periods * step + delay) + phase;
    x[i] = static_cast<float>(std::sin(angle) + noise * random.normal());
  }
  for (float& value : y) value = static_cast<float>(periods / fastest);
}

void random_numbers(RandomStream& random, std::int64_t, std::span<float> x, std::span<float> y) {
  for (auto values : {x, y})
    for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
}

class SequenceTask : public Task {
 public:
  // `steps` and `sensors` are those of the model: what a drawing of a sample shows.
  SequenceTask(const TaskSettings& settings, MakeSample make, std::int64_t samples, std::int64_t steps = 0,
               std::int64_t sensors = 0)
      : seed_(settings.seed),
        make_(make),
        size_(settings.samples > 0 ? settings.samples : samples),
        steps_(steps),
        sensors_(sensors) {
    if (!settings.data.empty())
      throw Error(ErrorCode::unsupported, "this workload makes its own data", settings.data.string(),
                  "leave --data out");
  }

  std::int64_t size() const override { return size_; }
  std::int64_t training_count() const override {
    return static_cast<std::int64_t>(training_share * static_cast<double>(size_));
  }

  void fill(std::span<const std::int64_t> indices, std::uint64_t, bool,
            std::span<Tensor> tensors) const override {
    const std::int64_t steps = tensors[0].shape()[1];
    const std::size_t x_row = tensors[0].as<float>().size() / indices.size();
    const std::size_t y_row = tensors.size() > 1 ? tensors[1].as<float>().size() / indices.size() : 0;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto x = tensors[0].as<float>().subspan(i * x_row, x_row);
      const auto y = y_row > 0 ? tensors[1].as<float>().subspan(i * y_row, y_row) : std::span<float>();
      RandomStream random(seed_, static_cast<std::uint64_t>(indices[i]));
      make_(random, steps, x, y);
    }
  }

  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool&) const override {
    fill(indices, 0, false, inputs);
  }

  // Against the targets drawn again.
  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    const auto found = outputs[0].as<float>();
    if (make_ != oscillation) return {};
    double squares = 0;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      RandomStream random(seed_, static_cast<std::uint64_t>(indices[i]));
      float truth = 0;
      make_(random, 1, {}, {&truth, 1});
      squares += (found[i] - truth) * (found[i] - truth);
    }
    return {{.name = "rmse",
             .value = std::sqrt(squares / static_cast<double>(indices.size())),
             .unit = "",
             .samples = {}}};
  }

  std::string present(const Predictions& found, ThreadPool&, page::Page& page) const override {
    if (make_ != oscillation) return {};
    Regression periods{
        .quantity = "Periods in a window", .unit = "", .truth = {}, .found = {}, .samples = {}};
    for (std::size_t i = 0; i < found.indices.size(); ++i) {
      RandomStream random(seed_, static_cast<std::uint64_t>(found.indices[i]));
      float truth = 0;
      make_(random, 1, {}, {&truth, 1});
      periods.truth.push_back(fastest * static_cast<double>(truth));
      periods.found.push_back(fastest * found.outputs[0].at(static_cast<std::int64_t>(i)));
      periods.samples.push_back(found.indices[i]);
    }
    present_oscillations(page, periods, [&](std::size_t at) {
      Oscillation window{std::vector<float>(static_cast<std::size_t>(steps_ * sensors_)), sensors_};
      RandomStream random(seed_, static_cast<std::uint64_t>(found.indices[at]));
      make_(random, steps_, window.values, {});
      return window;
    });
    return {};
  }

  bool has_labels() const override { return make_ == oscillation; }

  nlohmann::json describe() const override {
    return {{"source", make_ == oscillation ? "generated" : "random numbers: for throughput alone"},
            {"samples", size_},
            {"training", training_count()}};
  }

 private:
  std::uint64_t seed_;
  MakeSample make_;
  std::int64_t size_, steps_, sensors_;
};

}  // namespace

std::unique_ptr<Task> open_oscillation_task(const TaskSettings& settings, const Options& model) {
  return std::make_unique<SequenceTask>(settings, oscillation, default_samples,
                                        model.integer("steps", 1, 1 << 20),
                                        model.integer("inputs", 1, 1 << 20));
}

std::unique_ptr<Task> open_random_sequence_task(const TaskSettings& settings, const Options&) {
  return std::make_unique<SequenceTask>(settings, random_numbers, 256);
}

}  // namespace superstep::run
