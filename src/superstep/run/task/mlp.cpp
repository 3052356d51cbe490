// The perceptron's data: a smooth function of sixteen variables, with a linear fit as the floor.
#include <cmath>

#include "superstep/base/random.h"
#include "superstep/run/task/pictures.h"
#include "superstep/run/task/tasks.h"

namespace superstep::run {
namespace {

constexpr std::int64_t default_samples = 8192;
constexpr std::size_t features = 16;
constexpr double training_share = 0.8;

// y = sin(x0 + x1) + x2 x3 + (x4 - x5)^2 / 2 + 0.1 sum of the rest: linear in part, in part not.
double target_of(const double* x) {
  double rest = 0;
  for (std::size_t i = 6; i < features; ++i) rest += x[i];
  return std::sin(x[0] + x[1]) + x[2] * x[3] + 0.5 * (x[4] - x[5]) * (x[4] - x[5]) + 0.1 * rest;
}

class MlpTask : public Task {
 public:
  explicit MlpTask(TaskSettings settings) : settings_(std::move(settings)) {
    if (!settings_.data.empty())
      throw Error(ErrorCode::unsupported, "this workload makes its own data", settings_.data.string(),
                  "leave --data out");
    size_ = settings_.samples > 0 ? settings_.samples : default_samples;
  }

  std::int64_t size() const override { return size_; }
  std::int64_t training_count() const override {
    return static_cast<std::int64_t>(training_share * static_cast<double>(size_));
  }

  void fill(std::span<const std::int64_t> indices, std::uint64_t, bool,
            std::span<Tensor> tensors) const override {
    auto x = tensors[0].as<float>();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      double values[features];
      const double y = sample(indices[i], values);
      for (std::size_t k = 0; k < features; ++k) x[i * features + k] = static_cast<float>(values[k]);
      if (tensors.size() > 1) tensors[1].as<float>()[i] = static_cast<float>(y);
    }
  }

  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool&) const override {
    fill(indices, 0, false, inputs);
  }

  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    double squares = 0;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      double values[features];
      const double error = static_cast<double>(outputs[0].as<float>()[i]) - sample(indices[i], values);
      squares += error * error;
    }
    return {{.name = "rmse",
             .value = std::sqrt(squares / static_cast<double>(indices.size())),
             .unit = "",
             .samples = {}}};
  }

  std::string present(const Predictions& found, ThreadPool&, page::Page& page) const override {
    Regression regression{.quantity = "y", .unit = "", .truth = {}, .found = {}, .samples = {}};
    for (std::size_t i = 0; i < found.indices.size(); ++i) {
      double values[features];
      regression.truth.push_back(sample(found.indices[i], values));
      regression.found.push_back(found.outputs[0].at(static_cast<std::int64_t>(i)));
      regression.samples.push_back(found.indices[i]);
    }
    present_regression(page, regression);
    return {};
  }

  nlohmann::json describe() const override {
    return {{"source", "generated"}, {"samples", size_}, {"training", training_count()}};
  }

 private:
  double sample(std::int64_t index, double* values) const {
    RandomStream random(settings_.seed, static_cast<std::uint64_t>(index));
    for (std::size_t k = 0; k < features; ++k) values[k] = random.uniform(-1, 1);
    return target_of(values);
  }

  TaskSettings settings_;
  std::int64_t size_;
};

}  // namespace

std::unique_ptr<Task> open_mlp_task(const TaskSettings& settings) {
  return std::make_unique<MlpTask>(settings);
}

}  // namespace superstep::run
