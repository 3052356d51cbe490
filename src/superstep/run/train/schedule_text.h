// A schedule of learning rates as users write it: KIND or KIND:NAME=VALUE,...
#pragma once

#include <string_view>

#include "superstep/workload/schedule.h"

namespace superstep::run {

// "cosine", "cosine:warm_up=5,final=0.01", "stairs:period=10,factor=0.5", "plateau:patience=5", "one_cycle".
// `warm_up` and `period` count epochs; `warm_up_from` and `final` are shares of `peak`. What is not said: no
// warm-up, `final` 0, `factor` 0.1, `patience` 10; of one_cycle (after L. Smith and N. Topin, 2018) a warm-up
// over 0.3 of the steps from 0.04, and half a cosine down to 4e-6. Throws Error (invalid_argument).
workload::Schedule schedule_from_text(std::string_view text, double peak);

}  // namespace superstep::run
