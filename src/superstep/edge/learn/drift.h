// Is what comes now like what the model has learnt from? Three ways to ask.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace superstep::edge {

// What a frame looks like, in five numbers: sum, largest value, distance of the centre of mass from the
// middle, spread around it, share of zeros.
inline constexpr std::size_t frame_features = 5;
using FrameFeatures = std::array<double, frame_features>;
FrameFeatures features_of(std::span<const float> frame, std::int64_t width);
const char* name_of_feature(std::size_t feature);

// The largest distance of two empirical distributions (Kolmogorov and Smirnov), and the probability of one as
// large where both samples are of one distribution (the asymptotic form, with Stephens' correction for small
// samples: W. Press et al., Numerical Recipes, section 14.3).
struct KolmogorovSmirnov {
  double distance = 0, probability = 1;
};
KolmogorovSmirnov kolmogorov_smirnov(std::vector<double> a, std::vector<double> b);

// Which of the hypotheses with these probabilities are refused, so that the probability of refusing any true
// one is at most `level` (S. Holm, Scand. J. Statist. 6, 65, 1979).
std::vector<bool> holm(std::span<const double> probabilities, double level);

struct InputDrift {
  std::array<KolmogorovSmirnov, frame_features> features;
  bool found = false;
};
InputDrift input_drift(std::span<const FrameFeatures> reference, std::span<const FrameFeatures> now,
                       double level);

// Has the mean of a sequence risen? Sums of what exceeds the running mean by `slack`; a rise is where the sum
// is more than `threshold` above its least value (E. Page, Biometrika 41, 100, 1954). `slack` and `threshold`
// in units of the first mean.
class PageHinkley {
 public:
  PageHinkley(double slack, double threshold) : slack_(slack), threshold_(threshold) {}
  bool add(double value);                             // true: it has, by now
  double statistic() const { return sum_ - least_; }  // in units of the first mean
  void forget();

 private:
  double slack_, threshold_, scale_ = 0, mean_ = 0, sum_ = 0, least_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace superstep::edge
