// Random numbers for the recurrent layers of which only throughput counts.
#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/run/task/tasks.h"

namespace superstep::run {
namespace {

constexpr std::int64_t default_samples = 256;
constexpr double training_share = 0.8;

class RandomSequenceTask : public Task {
 public:
  explicit RandomSequenceTask(const TaskSettings& settings)
      : seed_(settings.seed), size_(settings.samples > 0 ? settings.samples : default_samples) {
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
    for (std::size_t i = 0; i < indices.size(); ++i) {
      RandomStream random(seed_, static_cast<std::uint64_t>(indices[i]));
      for (Tensor& tensor : tensors) {
        const std::size_t row = tensor.as<float>().size() / indices.size();
        for (float& value : tensor.as<float>().subspan(i * row, row))
          value = static_cast<float>(random.uniform(-1, 1));
      }
    }
  }

  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool&) const override {
    fill(indices, 0, false, inputs);
  }

  std::vector<Metric> quality(std::span<const std::int64_t>, std::span<const Tensor>) const override {
    return {};
  }
  bool has_labels() const override { return false; }

  nlohmann::json describe() const override {
    return {{"source", "random numbers: for throughput alone"},
            {"samples", size_},
            {"training", training_count()}};
  }

 private:
  std::uint64_t seed_;
  std::int64_t size_;
};

}  // namespace

std::unique_ptr<Task> open_random_sequence_task(const TaskSettings& settings, const Options&) {
  return std::make_unique<RandomSequenceTask>(settings);
}

}  // namespace superstep::run
