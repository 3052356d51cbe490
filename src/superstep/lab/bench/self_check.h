// Do two runs of the same benchmark, a while apart, agree within what each says of its own uncertainty?
#pragma once

#include <string>
#include <vector>

#include "superstep/record/result.h"

namespace superstep::lab {

struct SelfCheck {
  int rows = 0, agree = 0;  // rows whose intervals of the median time meet
  std::string text;         // the table, and the share
};

bool intervals_meet(const record::Quantity& a, const record::Quantity& b);

SelfCheck compare_runs(const std::vector<record::Result>& first, const std::vector<record::Result>& second);

void pause_for(double seconds);  // throws Error (interrupted) when the user asks to stop

}  // namespace superstep::lab
