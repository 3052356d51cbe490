// Drawings of predictions that several workloads share, for reports: of regressions, of classes, and which
// samples are worth looking at.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/page/page.h"
#include "superstep/workload/generated.h"
#include "superstep/workload/task.h"

namespace superstep::workload {

// A sample worth looking at: its position among the predictions, and why.
struct Chosen {
  std::size_t at;
  const char* why;  // "best", "median", "worst"
};

// `each` of the best, of those around the median and of the worst, none of them twice. Small errors are good;
// one that is not a number is the worst.
std::vector<Chosen> best_median_worst(std::span<const double> errors, std::size_t each);

// True values against predicted ones, with what is left: a plot of both, the distribution of the errors and
// the worst samples. `unit` may be empty. Where the model stated how sure it is, errors by the tenths of its
// spread as well.
struct Regression {
  std::string quantity, unit;
  std::vector<double> truth, found;
  std::vector<std::int64_t> samples;  // their numbers
  std::vector<double> spread = {};    // stated for each; empty where nothing was stated
};
void present_regression(page::Page& page, const Regression& regression);

// Scores of classes against labels: a table or a picture of what was taken for what, the errors that the
// model was surest of, classes that are hardest.
struct Classification {
  std::vector<std::int64_t> labels;
  std::span<const float> scores;  // [n, classes], before the softmax
  std::vector<std::int64_t> samples;
  std::function<page::Image(std::size_t at)> picture;  // of a sample; may be empty
};
void present_classification(page::Page& page, const Classification& classification);

// A picture of red, green and blue planes of bytes, [3, height, width].
page::Image color_image(std::span<const std::uint8_t> planes, int width, int height);

// Of fields `image` (u8 [n, 3, height, width]) and `label`.
std::string present_classes(const Fields& fields, const Predictions& found, page::Page& page);

}  // namespace superstep::workload
