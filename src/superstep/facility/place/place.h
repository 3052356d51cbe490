// superstep place: where the tasks of a workflow go on a facility, and what to expect of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "superstep/facility/place/assess.h"
#include "superstep/record/result.h"

namespace superstep::facility {

struct PlaceSettings {
  std::filesystem::path workflow, facility;
  Aim aim = Aim::end;
  bool aim_said = false;           // else what the first target is about
  std::vector<std::string> fixed;  // TASK=PARTITION
  AssessSettings assess;
  SearchLimits limits;
  std::size_t shown = 3;  // placements that are looked at closely
  TimingSettings timing;
};

struct Placed {
  Problem problem;
  SearchResult found;
  std::vector<Assessed> best;  // the first is the answer
  std::vector<Variant> variants;
  std::vector<Coupled> coupled;

  bool meets_targets() const;  // in its usual course
};

// Throws Error: what reading the files and predictions throw; invalid_argument where no placement is
// possible.
Placed place(const PlaceSettings& settings);

std::string text_of(const Placed& placed);
void write_page(const Placed& placed, const std::filesystem::path& file);
// In the Trace Event Format, which Perfetto opens: a row for each task and each direction of a link.
std::string trace_of(const Problem& problem, const Assessed& assessed);
std::vector<Metric> metrics_of(const Placed& placed);
nlohmann::json config_of(const Placed& placed);

// A figure of an aim as people read it: "3:20 min", "12.3 EUR", "4.2 MJ".
std::string amount_of(const Problem& problem, Wish wish, double value);
std::string where_of(const Problem& problem, const Candidate& candidate, std::size_t task);  // "edge x 2"
// What takes the time: sentences, the largest part first.
std::vector<std::string> what_binds(const Problem& problem, const Assessed& assessed);

}  // namespace superstep::facility
