#include "superstep/workload/schedule.h"

#include <array>

namespace superstep::workload {

const char* name_of(Schedule::Kind kind) {
  static constexpr std::array names{"constant",    "linear",      "cosine", "triangular",
                                    "triangular2", "exponential", "stairs", "plateau"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace superstep::workload
