// The trainings of a study of time to quality, each in a folder of its own that a later call goes on with,
// and what they say: steps to the target by batch, and the law that they follow.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "superstep/study/quality/noise.h"
#include "superstep/study/quality/settings.h"

namespace superstep::study {

enum class Ending { reached, not_reached, diverged, failed };

struct Training {
  std::string precision;
  std::int64_t batch = 0;
  std::uint64_t seed = 1;
  double learning_rate = 0;
  Ending ending = Ending::failed;
  // Steps at which the quality passes the target, on a line between the epochs before and after, which are
  // the ends of the interval.
  double steps = 0, steps_low = 0, steps_high = 0;
  double best = 0;     // quality that it came to
  double seconds = 0;  // of this computer, until then
  std::string words;   // why it failed, or where it diverged
  struct Epoch {
    double step = 0, seconds = 0, quality = 0;
  };
  std::vector<Epoch> curve;  // until it was reached
  std::vector<std::string> command;
};

// Of one precision and batch: the median of the seeds that reached it, and their ends.
struct Reached {
  std::string precision;
  std::int64_t batch = 0;
  int reached = 0, seeds = 0, diverged = 0;
  double steps = 0, steps_low = 0, steps_high = 0;
  double seconds = 0;  // of this computer
  // What some seeds alone reach says nothing of the others: neither a law nor a cost is made of it.
  bool by_all() const { return seeds > 0 && reached == seeds; }
  // Quality is looked at once an epoch: what is good enough at the end of the first may have been so from its
  // beginning on, and its steps are those of the data, not of the batch.
  bool resolved() const { return by_all() && steps_low > 0; }
  double samples() const { return steps * static_cast<double>(batch); }
};

// Steps S at batch B follow S = S_min (1 + B_crit / B): with larger batches than the critical one steps are
// hardly saved, with smaller ones hardly any samples are wasted (McCandlish et al. 2018, equation 2.11).
// Least squares of relative deviations.
struct BatchLaw {
  std::string precision;
  double least_steps = 0, critical_batch = 0;
  double largest_deviation = 0;  // of a batch's steps from the law, relative
  int batches = 0;               // it is fitted to; two determine it, and nothing checks it then
  double steps_at(double batch) const { return least_steps * (1 + critical_batch / batch); }
};

// Rows of a run's metrics.jsonl: where the quality passes the target. Throws Error (bad_file).
void read_crossing(const std::filesystem::path& log, const QualitySettings& settings, Training& training);

// All of them, one after the other; those that an earlier call finished are read. Throws Error (interrupted)
// between two; a folder's run goes on where it was stopped.
std::vector<Training> trainings_of(const QualitySettings& settings);

// Where its trainings of the first seed are kept. Throws Error (interrupted).
std::vector<MeasuredNoise> noises_of(const QualitySettings& settings, const std::vector<Training>& trainings);

std::vector<Reached> summary_of(const std::vector<Training>& trainings);

// Nothing where fewer than two batches reached the target with every seed after their first epoch, or steps
// do not fall with the batch.
std::optional<BatchLaw> law_of(const std::vector<Reached>& reached, const std::string& precision);

}  // namespace superstep::study
