// The best cut of a step over so many units: what advise does for a user, for a question that leaves it open.
#pragma once

#include <vector>

#include "superstep/machine/configuration/question.h"

namespace superstep::machine {

// Configurations that fit and reach a fair share of the best one's throughput, best first; what was stated
// stays. Micro-batches 1, 2, 4 ...; recomputed where a training fits so alone; then in pipelines of 2, 4, ...
// units with balanced stages; last with the optimizer's state beside the chip. Empty: nothing fits.
// `start` has what is known already.
std::vector<Configuration> searched_configurations(const Machine& machine, const Question& question,
                                                   const Configuration& start, const GraphAt& graph_at);

}  // namespace superstep::machine
