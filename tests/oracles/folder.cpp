#include "tests/oracles/folder.h"

namespace superstep {

const char* oracles_folder() { return SUPERSTEP_ORACLES; }

}  // namespace superstep
