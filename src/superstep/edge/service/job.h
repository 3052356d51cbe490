// One request on its way through a model: its rows, and who is told when they are done.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/edge/model/version.h"
#include "superstep/edge/service/account.h"
#include "superstep/edge/service/durations.h"

namespace superstep::edge {

struct Job {
  std::shared_ptr<Version> version;  // that answers all of it: a swap on the way changes nothing
  std::int64_t rows = 0;
  std::vector<Tensor> inputs, outputs;        // in the order of the ports, of `rows` rows
  std::optional<Clock::time_point> deadline;  // its computation begins before, or not at all
  // Told once, by any thread, which must not be kept waiting. Not told where a queue refused the job.
  std::function<void(Job& job, Outcome outcome, const std::string& why)> done;

  // Kept by the batcher.
  Clock::time_point arrived, started;
  std::int64_t taken_rows = 0, done_rows = 0;
  std::string failure;

  std::size_t bytes() const {
    return static_cast<std::size_t>(rows) *
           (version->ports().input_bytes() + version->ports().output_bytes());
  }
};
using JobPointer = std::shared_ptr<Job>;

// `version`'s tensors of as many rows: inputs for the caller to fill.
JobPointer make_job(std::shared_ptr<Version> version, std::int64_t rows);
std::vector<Tensor> make_outputs(const ServedPorts& ports, std::int64_t rows);

}  // namespace superstep::edge
