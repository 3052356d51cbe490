// A page of benchmark results: tables, a roofline, batch sweeps, the distribution of samples, and published
// numbers beside ours.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "superstep/record/result.h"

namespace superstep::lab {

// A published number beside one of ours. Units are those of the published row.
struct PublishedRatio {
  std::string id, source, machine, precision, metric, unit, result;
  double published = 0, ours = 0, ratio = 0;  // ours / published
};

struct BenchReportSettings {
  std::vector<record::Result> results;
  std::filesystem::path published;  // CSV of published rows; empty: none
  std::filesystem::path out;        // folder for index.html
};

struct BenchReport {
  std::string text;  // for the terminal
  std::filesystem::path page;
};

// Throws Error (invalid_argument) without results, (not_found, bad_file) of the published rows.
BenchReport make_bench_report(const BenchReportSettings& settings);

// Rows of the published table that have a partner among the results: the same workload and mode, and a metric
// that both have (throughput, compute_utilization, time, latency_per_sample). Of our results at several
// batches the one at the published batch is taken, else the best, in each precision. Products are also found
// under the names "gemm_MxNxK_nn".
std::vector<PublishedRatio> compare_with_published(const std::vector<record::Result>& results,
                                                   const std::filesystem::path& published);

}  // namespace superstep::lab
