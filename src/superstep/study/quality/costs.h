// What a quality takes on each machine: measured steps times the predicted time of a step, with its data;
// energy at the power of the data sheet, and money where a price is given.
#pragma once

#include <string>
#include <vector>

#include "superstep/study/predicted.h"
#include "superstep/study/quality/trainings.h"

namespace superstep::study {

struct QualityCost {
  std::string precision, machine;
  std::int64_t batch = 0;
  int units = 1;
  // The interval joins that of the prediction (80 %) with the seeds' first and last.
  Figure seconds, joules, money;  // without a value: see its words
  bool best = false;              // no other is faster and takes less energy
};

// Of every precision, batch, machine and number of its devices; a batch is shared by the devices as
// replicas. Cells where no seed reached the target have no figure.
std::vector<QualityCost> costs_of(const QualitySettings& settings, const std::vector<Reached>& reached);

}  // namespace superstep::study
