// Where tools/setup-oracles puts what results are compared with.
#pragma once

namespace superstep {

// In a file of its own, since it is a path of this build: tests that named it themselves would be compiled
// anew in every other copy of the sources, whatever the compiler's cache holds.
const char* oracles_folder();

}  // namespace superstep
