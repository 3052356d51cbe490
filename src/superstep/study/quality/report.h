// A study of time to quality in words: for the terminal, as a page and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "superstep/study/quality/costs.h"
#include "superstep/study/quality/noise.h"

namespace superstep::study {

struct QualityReport {
  QualitySettings settings;
  std::string goal;  // "error_px_mean <= 0.3"
  std::vector<Training> trainings;
  std::vector<Reached> reached;
  std::vector<BatchLaw> laws;
  std::vector<MeasuredNoise> noises;  // of each batch's first seed, at its first step and at its last
  std::vector<QualityCost> costs;
};

// Trains, predicts, and writes index.html and results.json into the folder. Throws Error: invalid_argument
// where the folder holds another study or other things; interrupted, after which the same call goes on.
QualityReport study_quality(const QualitySettings& settings);

std::vector<std::string> findings_of(const QualityReport& report);
std::string text_of(const QualityReport& report);
std::string page_of(const QualityReport& report);
nlohmann::json json_of(const QualityReport& report);

}  // namespace superstep::study
