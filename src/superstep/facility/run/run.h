// superstep run: a workflow done for real, by the clock: commands here or as jobs of Slurm, what is not here
// emulated. All that a call has done stays in its folder, in which the next one goes on.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "superstep/facility/place/place.h"

namespace superstep::facility {

struct RunSettings {
  PlaceSettings place;  // where tasks go is found anew, and must be what it was
  std::filesystem::path out;
  double speed = 1;             // simulated seconds per second, where every task is emulated
  std::int64_t most_items = 0;  // of each source; 0: all
};

struct Ran {
  Placed placed;
  Simulated simulated;  // the usual course of the same items
  Simulated actual;
  std::size_t went_on = 0;                 // firings of earlier calls
  std::map<std::string, double> measured;  // s of a firing in the median, of tasks with commands
};

// Throws Error: what place() throws; invalid_argument where the folder holds another run; io and diverged for
// commands that fail, with their log; interrupted, after which the same call goes on.
Ran run(const RunSettings& settings);

std::string text_of(const Ran& ran);
std::vector<Metric> metrics_of(const Ran& ran);
void write_page(const Ran& ran, const std::filesystem::path& file);
// W3C PROV-JSON: items are entities, firings activities. Written beside the run as prov.json.
std::string provenance_of(const RunSettings& settings, const Ran& ran);

}  // namespace superstep::facility
