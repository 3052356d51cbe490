#include "peak.h"

namespace superstep::bench {

double run_bf16_dot(std::int64_t, float&) { return 0; }

}  // namespace superstep::bench
