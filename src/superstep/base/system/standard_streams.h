// Standard input, output and error as the program finds them: closed, full, or nobody's.
#pragma once

#include <string_view>

namespace superstep {

// Of the descriptors 0 to 2 those that are closed are opened on the null device, so that no file of ours is
// given their number and gets what is printed. What is written to a standard output that was closed fails.
// Call first in main.
void occupy_standard_descriptors();

// Writes to standard error. What goes there is said to people: that nobody can hear it is no failure.
void tell(std::string_view text);

// Whether a write to standard output failed.
bool standard_output_failed();

// Writes out what standard output holds. Throws Error (io) when that, or an earlier write to it, failed.
void flush_standard_output();

}  // namespace superstep
