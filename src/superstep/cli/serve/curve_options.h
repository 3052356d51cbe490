// Options for the keys of streams over ZeroMQ, at both of their ends.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "superstep/edge/zeromq/curve.h"

namespace superstep::cli {

struct CurveArguments {
  std::string key, server;
  std::vector<std::string> clients;
};

void declare_curve(CLI::App& command, CurveArguments& a);

// What the ends of a call's streams do.
struct StreamEnds {
  bool listen = false, connect = false;
};

// Null: none were given. Connections that are refused are said on standard error. Throws Error
// (invalid_argument) for keys that no end would use, and what edge::read_curve() throws.
std::shared_ptr<edge::Curve> curve_of(const CurveArguments& a, StreamEnds ends);

}  // namespace superstep::cli
