// The pictures of a profile: inline SVG in the colours of the page (page/stylesheet.h).
#pragma once

#include <span>
#include <string>

#include "superstep/lab/profile/profile.h"
#include "superstep/page/page.h"

namespace superstep::lab {

// The operator's place in the order of cost gives its colour: the same in both drawings. 0 to 7; operators
// beyond the seventh share the last colour.
int color_of(const Profile& profile, const std::string& op);

// What a step does, for people: "Conv+LeakyRelu"; steps that no operator of the model asks for by what they
// do.
std::string shown_op(const std::string& op);

// A bar an operator: its time, and within it the least that its steps could take.
std::vector<page::Bar> operator_bars(const Profile& profile);

// A lane a thread, time to the right from `begin` to `end` (seconds since the run began). A block bears the
// name of its node or of its operator where there is room. Neighbours too narrow to be seen apart are drawn
// as one.
std::string draw_timeline(const Profile& profile, std::span<const target::StepEvent> events, double begin,
                          double end);

// The colours of draw_timeline, in words.
std::string draw_legend(const Profile& profile);

}  // namespace superstep::lab
