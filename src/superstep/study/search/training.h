// One trial's training up to a rung, in a process of its own.
#pragma once

#include "superstep/study/search/search.h"

namespace superstep::study {

// Begins the run of the trial, or goes on with it, and puts down in `trial` how it ended. Throws Error
// (interrupted): the run's last step is saved.
void train_to_rung(const SearchReport& search, Trial& trial);

// That its training has, or, where nothing of it is there, those of this call: other numbers of threads round
// otherwise.
int threads_of(const SearchReport& search, const Trial& trial);

// Of a run's metrics.jsonl; empty where there is none yet.
Curve curve_of(const std::filesystem::path& log, const std::string& metric);

}  // namespace superstep::study
