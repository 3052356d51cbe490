// superstep bench data PATH: how fast samples come out of files.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "superstep/cli/shared/outcome.h"

namespace superstep::cli {

struct DataBenchArguments {
  std::vector<std::string> against;
};

void declare_data_bench(CLI::App& command, DataBenchArguments& arguments);
// `batch`: samples read at a time. Throws what reading throws.
void bench_data(const std::string& path, const DataBenchArguments& arguments, std::int64_t batch,
                double seconds, const std::string& python, const OutputChoice& output);

}  // namespace superstep::cli
