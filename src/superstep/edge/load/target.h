// What a load is sent to: a model of a server that speaks the Open Inference Protocol, and a request to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "superstep/base/element_type.h"

namespace superstep::edge {

struct LoadPort {
  std::string name;
  ElementType element = ElementType::f32;
  std::vector<std::int64_t> extents;  // -1: any
};

struct LoadTarget {
  std::string host, port, model;
  std::string version;
  std::vector<LoadPort> inputs;
};

// "http://HOST:PORT/v2/models/NAME", or http://HOST:PORT of a server with one model, which is asked what it
// takes. Throws Error: invalid_argument (no such address, several models), io (nobody answers), bad_file (it
// speaks something else).
LoadTarget open_target(const std::string& url);

// What the server says of its own times so far; zero where it says nothing.
struct ServerTimes {
  std::uint64_t requests = 0, batches = 0, rows = 0;
  double queue = 0, compute = 0;  // seconds, of all of them
};
ServerTimes server_times(const LoadTarget& target);

// A whole HTTP request of so many rows of normal random numbers (whole numbers: of zeros).
std::string infer_message(const LoadTarget& target, std::int64_t rows, bool binary, std::uint64_t seed);

}  // namespace superstep::edge
