// What a call of `superstep serve` was given.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "superstep/cli/serve/curve_options.h"

namespace superstep::cli {

struct ServeArguments {
  std::vector<std::string> models;
  std::vector<std::string> shapes;
  std::string target = "cpu", precision = "f32", http = "127.0.0.1:8000", grpc, queue_full = "block",
              token_file;
  std::string memory = "1G", body = "64M", pull, pull_model, pull_channel, publish, write, journal, stitch,
              positions, learn, regression, learn_when = "each-scan", scale = "1";
  std::int64_t max_batch = 64, queue = 4096;
  double max_delay = 0, deadline = 0, drain = 10, seconds = 0;  // us, ms, s, s
  int learn_epochs = 6;
  double budget = 60;
  double stall = 300;  // s
  bool shared = false, reproducible = false, allow_not_finite = false;
  int workers = 0, http_threads = 1, connections = 1024;
  std::vector<std::string> hosts;
  std::string verify_key, protect, tls_certificate, tls_key, tls_client_ca, access_log, audit_log,
      log_bytes = "16M", peer_memory;
  int peer_connections = 0, peer_requests = 256, access_log_rate = 1000;
  CurveArguments curve;
  double header_time = 10, idle_time = 300, lame_duck = 0;  // s
};

std::chrono::milliseconds milliseconds(double seconds);
std::size_t bytes_of(const std::string& text);  // of an option that was checked

}  // namespace superstep::cli
