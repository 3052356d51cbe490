// Intervals around what an ensemble says, by split conformal prediction (J. Lei et al., J. Am. Stat. Assoc.
// 113, 1094 (2018), section 5.2: residuals relative to a local spread).
#pragma once

#include <span>
#include <vector>

namespace superstep::workflow {

// Of several members' values for the same samples: [member][sample].
struct Ensemble {
  std::vector<double> mean, spread;  // the spread: standard deviation between the members
};
Ensemble ensemble_of(std::span<const std::vector<double>> members);

// How many spreads wide an interval must be: the smallest factor that holds a share `level` of the known
// samples, and one more. A section as good as the known ones lies inside with at least this probability.
class Calibration {
 public:
  // Throws Error (invalid_argument) when there are no samples.
  Calibration(const Ensemble& known, std::span<const double> truth);

  double factor(double level) const;
  double half_width(double spread, double level) const { return factor(level) * (spread + least_); }

 private:
  std::vector<double> scores_;  // ascending
  double least_;                // added to every spread: members that agree are not sure for that alone
};

// Of unseen samples.
struct Intervals {
  std::vector<double> mean, half_width;  // at the study's level
  double inside = 0;                     // share of the truth within
  std::vector<double> levels, covered;   // what was asked for, and found
};
Intervals intervals_of(const Calibration& calibration, const Ensemble& unseen, std::span<const double> truth,
                       double level);

}  // namespace superstep::workflow
