// The commands by which a study's cells are measured on this computer and executed on the machine model: each
// is `superstep` with words of its own, so that whoever doubts a figure can repeat it. Cells share commands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "superstep/study/cells.h"

namespace superstep::study {

struct Job {
  std::string key;                   // the name of its file: "bench-braggnn-train-f32-b512"
  std::vector<std::string> command;  // without how long it takes
  Way way = Way::bench;
  std::int64_t steps = 0;  // of a training, at the study's own time
  // Of trainings to a quality, at the study's own time, and the fewest samples that their largest batch asks.
  std::int64_t samples = 0, fewest_samples = 1;
  double epochs = 0;
  double least = 1;  // seconds

  // With what is to be added for so many seconds, or such a share of the study's own time.
  std::vector<std::string> words(double seconds, double share) const;
};

// How a cell's figure comes out of the results of its jobs.
struct Recipe {
  std::vector<std::size_t>
      jobs;  // of the plan; of a speedup the half precision first; of a training a seed each
  const Measure* measure = nullptr;
  std::int64_t batch = 0;
  std::string precision;
  std::string why;  // why there is none
};

struct Plan {
  std::vector<Job> jobs;
  std::vector<Recipe> measured, executed;  // of each cell
};

// `processors`: that ranks may have. The study outlives the plan.
Plan plan_of(const Study& study, const Cells& cells, int processors);

}  // namespace superstep::study
