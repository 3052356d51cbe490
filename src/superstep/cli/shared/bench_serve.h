// superstep bench serve URL: load on a server, and how long its answers take.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "superstep/cli/shared/outcome.h"

namespace superstep::cli {

struct ServeBenchArguments {
  std::vector<double> request_rates;      // open loop, one after the other
  std::vector<std::int64_t> concurrency;  // closed loop
  std::string arrive = "poisson", tensors = "binary";
  std::int64_t rows = 1, connections = 64;
  std::string token_file, ca, certificate, key;
};

void declare_serve_bench(CLI::App& command, ServeBenchArguments& arguments);
// `seconds` of every load. Throws Error (io) where a request was not answered as it should be, after
// everything else was measured and kept.
void bench_serve(const std::string& url, const ServeBenchArguments& arguments, double seconds,
                 const OutputChoice& output);
// The same, of the program that has it.
using ServeBench = decltype(&bench_serve);

}  // namespace superstep::cli
