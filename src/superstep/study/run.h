// Doing a study: predictions, then the commands that measure and execute, one after the other, each kept when
// it ends; then the page. A call that was stopped goes on behind what is kept.
//
//   study.json     whose folder it is
//   jobs/*.json    what each command found
//   quality/*      folders of trainings to a quality, with pages of their own
//   results.json   the four figures of every cell
//   index.html     the page
#pragma once

#include <filesystem>

#include "superstep/study/report.h"

namespace superstep::study {

struct RunSettings {
  std::filesystem::path out;
  double minutes = 0;  // 0: the study's own
  int threads = 1;
  int processors = 1;
};

// Throws Error: invalid_argument where the folder holds another study, interrupted (what is done is kept and
// on the page), io.
Report run(const Study& study, const RunSettings& settings);

// A page that leads to those of several studies, each in its folder below `out`.
void write_contents(const std::filesystem::path& out, const std::vector<Study>& done);

}  // namespace superstep::study
