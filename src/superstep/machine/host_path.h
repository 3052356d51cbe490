// What the host adds to a step: transfers over its link, the framework's calls of the program, and the loader
// that prepares samples.
//
// A call runs `device_iterations` steps and then returns to the framework, with the machine idle meanwhile.
// Loaders work ahead, so that a step takes the longer of theirs and the machine's time; those of a stack that
// does not read ahead keep the machine waiting. One that runs a model for an answer has its data at hand, and
// no loader.
#pragma once

#include "superstep/machine/cost_model.h"

namespace superstep::machine {

// What one replica's step asks of the host.
struct HostWork {
  double transfer_bytes = 0;  // of one micro-batch, over the link
  double loader_bytes = 0;    // of one sample, as the framework has it in memory
  double samples = 0;
  int accumulate = 1, device_iterations = 1;
  int loaders = 1;           // processes that prepare samples
  double extra_seconds = 0;  // of a loader on one sample, beside the constants
  bool in_files = false;     // a sample is a picture in a file of its own
  bool are_graphs = false;   // a sample is a graph of a size of its own
  bool training = true;
};

struct HostPath {
  double link = 0, call = 0, loader = 0;  // seconds of a step
  bool overlaps = false;                  // transfers run while the machine computes
  bool reads_ahead = true;                // and so do loaders

  double with(double step_seconds) const;  // a step that is fed
  double without_loader(double step_seconds) const;
  // "host loader", "host link", "host call"; null where the machine itself takes longest.
  const char* bound_by(double step_seconds) const;
};

// From the constants host_rate, host_latency, host_call, host_sample and host_feed_rate, and a stack's
// reads_ahead and host_decode.
HostPath host_path(const CostModel& model, const HostWork& work);

// The interval of a fed step that holds 80 %: that of step_seconds reaches from `shortest` to `longest`; the
// host's constants add theirs, each moved to the ends of its range alone.
struct FedInterval {
  double low = 0, high = 0;  // seconds
  double low_without_loader = 0, high_without_loader = 0;
};
FedInterval fed_interval(const Machine& machine, const HostWork& work, double step_seconds, double shortest,
                         double longest);

}  // namespace superstep::machine
