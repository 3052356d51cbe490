// Cells of trainings to a quality: the command `superstep study quality` that measures them, and their
// figures out of what it found.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "superstep/study/jobs.h"
#include "superstep/study/kept.h"
#include "superstep/study/predicted.h"

namespace superstep::study {

// "steps_to_quality", "time_to_quality": what a training to a quality says beside the quality itself.
bool is_of_quality(const std::string& metric);

// One command for all batches and machines of the study's cells of this model and precision, without how many
// samples and epochs it has.
std::vector<std::string> quality_command(const Cells& cells, const Recipe& recipe,
                                         const std::string& workload);

// Measured here: steps, seconds of this computer, or the quality that was come to; the seeds' median of the
// first two, the mean of the last, between the first and the last seed.
Figure measured_to_quality(const Cells& cells, const Cell& cell, const Recipe& recipe, const Kept& kept);
// A machine's time: the measured steps times its predicted step.
Figure predicted_to_quality(const Cells& cells, const Cell& cell, const Recipe& recipe, const Kept& kept);

// How the quality of each batch's first seed grew.
struct QualityCurve {
  std::string label;  // "f32, batch 64"
  std::vector<double> seconds, values;
};
std::vector<QualityCurve> quality_curves(const Kept& kept);

}  // namespace superstep::study
