// A simulation as a page: what was run, how steady it was, what came of it.
#pragma once

#include "superstep/base/metric.h"
#include "superstep/md/study/analysis.h"
#include "superstep/md/study/simulation.h"
#include "superstep/page/page.h"

namespace superstep::md {

// What a simulation came to, in numbers; of the sitting the speed.
std::vector<Metric> metrics_of(const Settings& settings, const Analysis& analysis, const Sitting& sitting);

page::Page page_of(const Settings& settings, const Analysis& analysis, const Sitting& sitting);

// The same for the terminal.
std::string summary_of(const Settings& settings, const Analysis& analysis, const Sitting& sitting);

}  // namespace superstep::md
