// The program superstep, which has no wing of its own.
#include "superstep/cli/wing.h"

namespace superstep::cli {

const Wing& this_wing() {
  static const Wing wing{};
  return wing;
}

}  // namespace superstep::cli
