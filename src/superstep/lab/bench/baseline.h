// The first configuration of a series measured again at its end: did the machine stay the same meanwhile?
#pragma once

#include <string>
#include <vector>

#include "superstep/record/result.h"

namespace superstep::lab {

// A result that was measured again at the end of a series; its config names the first ("repeats").
bool is_baseline(const record::Result& result);

// Marks `again` as the repeat of `first`: its id ends with "-again", and a flag of its time tells the change.
// The machine drifted where the intervals of the two times do not meet and they differ by 2 % or more.
void mark_as_baseline(record::Result& again, const record::Result& first);

// A line a repeat, for people; empty where there are none.
std::string baseline_text(const std::vector<record::Result>& results);

}  // namespace superstep::lab
