// Machines ranked by what it takes to reach a measured quality: steps to the target that `superstep study
// quality` found by batch and precision, times predicted steps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "superstep/lab/advise/advise.h"

namespace superstep::lab {

// Of one batch and precision: the median of the seeds' steps, the first and the last.
struct QualityPoint {
  std::string precision;  // that it was trained in: f32, bf16
  std::int64_t batch = 0;
  double steps = 0, low = 0, high = 0;
  int seeds = 0;
};

struct QualityCurve {
  std::string workload, until, source;
  std::vector<QualityPoint> points;
  std::vector<std::string> left_out;  // batches that some seed did not bring to the target, in words
};

// results.json of a study of quality, or the folder that has it. Throws Error: not_found; bad_file;
// invalid_argument where it is of another workload, or no batch reached its target with every seed.
QualityCurve read_quality_curve(const std::filesystem::path& path, const std::string& workload);

struct QualityOption {
  std::string precision;  // of the machine: 16 bits of any form take the steps that bf16 was measured to take
  std::string measured_in;
  int units = 1;
  std::int64_t batch = 0;
  Figure seconds, joules, money;  // to the target; intervals join the prediction's 80 % with the seeds' ends
  std::string bound;
};

struct QualityAdvice {
  machine::Machine machine;
  std::vector<QualityOption> options;
  int best = -1;
  int first_place = 0, last_place = 0;  // as MachineAdvice has them
  std::string words;                    // why there is none
};

// `settings.goal` is time_to_quality, energy (of the whole training) or cost; micro-batches, pipelines and
// recomputation are not searched: a batch is shared by replicas that take it at once. Best first. Throws
// Error as advise() does.
std::vector<QualityAdvice> advise_by_quality(const AdviseSettings& settings, const QualityCurve& curve);

// Of an option what the goal counts.
const Figure& figure_of(Goal goal, const QualityOption& option);

std::string text_of(const std::vector<QualityAdvice>& machines, const QualityCurve& curve, Goal goal,
                    bool every_option);
std::string page_of(const std::vector<QualityAdvice>& machines, const QualityCurve& curve, Goal goal);
std::vector<record::Result> results_of(const std::vector<QualityAdvice>& machines, const QualityCurve& curve,
                                       Goal goal);

}  // namespace superstep::lab
