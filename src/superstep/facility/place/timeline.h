// When each task of a placement was at work, and each link carried data: a drawing for its page, and a trace.
#pragma once

#include <string>
#include <vector>

#include "superstep/facility/place/assess.h"

namespace superstep::facility {

// A row of either: a task, one direction of a link, the network of a site.
struct TimelineRow {
  std::string name;
  bool link = false;
  int partition = -1;       // of a task
  std::vector<Span> spans;  // in the order of their ends
  bool whole = true;        // false: more was done than was kept
};

// Tasks first, in the order of the workflow, then links that carried anything.
std::vector<TimelineRow> timeline_rows(const Problem& problem, const Assessed& assessed);

// Trusted HTML: a row each, 0 to the end, tasks in the color of their partition.
std::string draw_timeline(const Problem& problem, const Assessed& assessed);

}  // namespace superstep::facility
