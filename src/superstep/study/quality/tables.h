// The two tables of a study of time to quality, as the terminal and the page show them.
#pragma once

#include <string>
#include <vector>

#include "superstep/study/quality/report.h"

namespace superstep::study {

struct ReportTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

ReportTable reached_table(const QualityReport& report);  // what was measured
ReportTable noise_table(const QualityReport& report);    // and of gradients
ReportTable cost_table(const QualityReport& report);     // what is predicted of it

// "66.2 ms [26.5 ms, 205 ms]", "-".
std::string seconds_words(const Figure& figure);
std::string energy_words(const Figure& figure);
// "310 [250, 420]"; an end that is not resolved is "more".
std::string noise_words(const NoiseScale& scale);

}  // namespace superstep::study
