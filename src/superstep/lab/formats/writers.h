// Results in the forms that other tools read. Every writer is a function of results alone and adds nothing
// to them; numbers have all the digits that reading them back exactly takes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/record/result.h"

namespace superstep::lab {

// JSON of Google Benchmark (schema version 1), which its compare.py reads: a repetition a sample, then the
// aggregates. The time of a result is its `step_time`, else its first metric in s. CPU time is not measured a
// call: `cpu_time` repeats the wall time, and the context says so.
std::string write_google_benchmark(const std::vector<record::Result>& results);

// A row a metric, in the columns of the published results: RFC 4180, LF, decimal points.
std::string write_csv(const std::vector<record::Result>& results);

// Columns of DeepBench, a block a kind of primitive; times in us. Backward passes by inputs and by weights
// are timed together here: their columns hold n/a, and total_time is that of the result in mode train.
std::string write_deepbench(const std::vector<record::Result>& results);

// The table of nccl-tests, for results of mode "collective".
std::string write_nccl_table(const std::vector<record::Result>& results);
// Its JSON twin (version 3): times in us, bandwidths in GB/s. One time is kept of a run, when it was
// completed: start_time and end_time are that.
std::string write_nccl_json(const std::vector<record::Result>& results);

// Lines ":::MLLOG {...}". Not verified by MLCommons.
std::string write_mllog(const std::vector<record::Result>& results);

// Chrome's trace events, of the results that have a timeline: a process a result.
std::string write_chrome_trace(const std::vector<record::Result>& results);

struct Writer {
  std::string_view name;  // as typed: --format csv
  std::string_view summary;
  std::string (*write)(const std::vector<record::Result>& results);
};
std::span<const Writer> writers();
const Writer& find_writer(std::string_view name);  // throws Error (invalid_argument), nearest name

}  // namespace superstep::lab
