// What a run that goes on may be told anew, and what it may not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "superstep/run/train/train.h"

namespace superstep::run {

// How far a resumed run goes, and on how many threads and devices. What is empty stays as it was.
struct Extension {
  std::optional<double> epochs;  // lifts a limit of steps that is not given anew
  std::optional<std::int64_t> steps;
  std::optional<Until> until;
  std::optional<int> replicas, devices;
  double stop_after = 0;  // epochs; a run that was to stop goes on to its end where that is not given anew
};
TrainSettings extended(TrainSettings kept, const Extension& extension);

// Whether a run keeps what this option of superstep train ("--batch") said: a call that goes on with it need
// not say it again.
bool is_kept(std::string_view option);

// Everything else is what the run is. Throws Error (invalid_argument) naming the first of the options `given`
// ("--batch") that says something else than the run in `folder` was begun with.
void refuse_changes(const TrainSettings& kept, const TrainSettings& asked, std::span<const std::string> given,
                    const std::string& folder);

}  // namespace superstep::run
