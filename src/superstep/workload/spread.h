// How far standard deviations that a method states tell its errors.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace superstep::workload {

// A normal error of the stated standard deviation lies within it with probability 0.683 and within twice it
// with 0.954. A statement that is too small by one factor everywhere is mended by that factor; whether larger
// spreads go with larger errors at all, the rank correlation and the tenths say.
struct SpreadCalibration {
  double factor = 0;  // sqrt(sum error^2 / sum spread^2): what spreads are to be multiplied by
  double inside_one = 0, inside_two = 0;  // shares of the errors within the spread, and within twice it
  double rank_correlation = 0;            // Spearman's, of |error| and spread; 0 where either does not vary

  // Split conformal prediction (Papadopoulos et al., ECML 2002): the times of the spread that hold nine
  // errors of ten, from every second sample; and the share of the others that they hold.
  double times_for_90 = 0, inside_90 = 0;

  // Samples in the order of their spread, in at most ten parts as equal as can be: root mean squares of both.
  struct Part {
    double spread = 0, error = 0;
  };
  std::vector<Part> parts;
};

// Nothing where fewer than 20 samples are there, every spread is zero, or a value is not finite. Spreads are
// at least 0; a spread of zero holds no error but zero.
std::optional<SpreadCalibration> calibrate_spread(std::span<const double> errors,
                                                  std::span<const double> spreads);

// Spearman's: the correlation of the ranks, of equal values the mean of theirs. 0 where either does not vary.
double rank_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace superstep::workload
