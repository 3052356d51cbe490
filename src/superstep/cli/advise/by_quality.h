// superstep advise by measured quality: which study of quality counts, and what is said of it.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "superstep/lab/advise/by_quality.h"

namespace superstep::cli {

struct QualityChoice {
  std::string path;  // as it was given: a folder or file, none, or empty
  std::optional<lab::QualityCurve> curve;
};

void add_quality_option(CLI::App& command, QualityChoice& choice);

// The curve that the call is ranked by: that of --quality, or of study/quality-WORKLOAD here, for the goals
// that count a whole training. Throws Error (invalid_argument) where it was given to another goal, or with
// options that it does not heed.
void find_quality(const CLI::App& command, const lab::AdviseSettings& settings, const std::string& mode,
                  const std::string& goal, QualityChoice& choice);

void advise_by_quality(const lab::AdviseSettings& settings, const lab::QualityCurve& curve,
                       const std::string& page, bool every_option);

// What is missing where nothing was measured, and how it is.
void tell_how_to_measure(const std::string& workload);

}  // namespace superstep::cli
