// What `superstep bench` was asked to measure, and its measuring.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "superstep/base/system/interrupt.h"
#include "superstep/record/result.h"

namespace superstep::cli {

struct BenchArguments {
  std::vector<std::string> what;
  std::vector<std::string> configs{"all"}, precisions{"f32"}, modes{"train", "infer"}, loads, model_options;
  std::vector<std::string> gradients{"reverse"};
  std::vector<std::string> shapes;  // of a model file
  std::vector<std::string> bounds;  // of a model file
  std::string loss, python = "python3";
  std::vector<std::int64_t> batches;
  std::string target = "cpu", format = "text", out, sizes = "4K..64M", order = "ranks", launcher = "mpirun";
  std::string only;  // of the configurations, this one alone; empty: all
  int ranks = 0;
  std::int64_t micro_batch = 0, requests = 1000;
  int iterations = 20;
  double seconds = 3, rate = 0, pause = 60;
  int repeat = 1, processes = 1;
  bool sweep = false, self_check = false, energy = false, no_record = false, no_peak = false;
  bool modes_given = false;  // a model file is served where nobody says that it be trained
  bool peers = false;
};

// Refuses what is wrong before minutes of measuring: throws Error (invalid_argument, not_found).
void check_bench(const BenchArguments& arguments);

// Measures everything and appends each result as soon as it is there, so that an error (interrupted) leaves
// those before. Where there is more than one configuration the first is measured again at the end
// (lab/bench/baseline.h). From the first result on `until_kept` holds the end of the program: a call may take
// longer than a stop is waited for, and the results before it would be lost.
void run_bench(const BenchArguments& arguments, std::vector<record::Result>& results,
               std::optional<HoldEnd>& until_kept);

}  // namespace superstep::cli
