// The gradient noise scale: from which batch on a larger one makes the gradient hardly surer. It is known
// from gradients alone, without a training to the target, and foretells the critical batch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/study/quality/settings.h"

namespace superstep::study {

struct NoiseScale {
  double gradient = 0;  // |G|^2, of the mean gradient of all samples
  double noise = 0;     // tr(Sigma), the variance of a sample's gradient
  double batch = 0;     // tr(Sigma) / |G|^2
  double low = 0,
         high = 0;  // two standard errors about it; high is infinite where the gradient is not resolved
  std::int64_t samples = 0;  // that it is of
};

// The simple noise scale of McCandlish et al. 2018 ("An empirical model of large-batch training", equation
// 2.9), from gradients of small batches and of all of them together (appendix A.1):
//   |G|^2 = (B |G_B|^2 - b |G_b|^2) / (B - b),  tr(Sigma) = (|G_b|^2 - |G_B|^2) / (1/b - 1/B),
// b samples in each small batch, B in all; both are unbiased, their ratio nearly so. The error is that of a
// jackknife over groups of batches.
class NoiseMeter {
 public:
  static constexpr std::size_t groups = 8;
  // Gradients of so many numbers, of batches of so many samples.
  NoiseMeter(std::size_t parameters, std::int64_t batch);

  void add(std::span<const float> gradient);
  // Nothing where there are fewer than two batches in each group, or the gradients do not differ.
  std::optional<NoiseScale> result() const;

 private:
  struct Group {
    std::vector<double> sum;  // of its gradients
    double squares = 0;       // of their norms
    std::int64_t count = 0;
  };
  struct Parts {
    double gradient = 0, noise = 0;
  };
  // Of all groups but one; all of them without a number.
  Parts parts_without(std::optional<std::size_t> left_out) const;

  std::int64_t batch_;
  std::vector<Group> groups_;
  std::size_t next_ = 0;
};

// Where in a training it was measured.
struct MeasuredNoise {
  std::string precision;
  std::int64_t batch = 0;  // of the training
  std::uint64_t seed = 1;
  std::int64_t step = 0;
  std::optional<NoiseScale> scale;
  std::string words;  // why there is none
};

// Of the run in `folder`: at its first step, and where its last checkpoint is. Gradients are of its own
// samples, as augmented in training, in f32 or its own precision. Throws Error (interrupted).
std::vector<MeasuredNoise> noise_of_run(const std::filesystem::path& folder, int threads);

}  // namespace superstep::study
