#include "superstep/baseline/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "superstep/base/error.h"

namespace superstep::baseline {
namespace {

// Of scores in falling order: how many are equal, and how many of those are labelled.
struct Level {
  double score;
  double count, labelled;
};

std::vector<Level> levels(std::span<const double> scores, std::span<const bool> labels) {
  if (scores.size() != labels.size())
    throw Error(ErrorCode::invalid_argument, "scores and labels differ in number");
  std::vector<Level> all;
  for (std::size_t i = 0; i < scores.size(); ++i)
    all.push_back({std::isnan(scores[i]) ? -std::numeric_limits<double>::infinity() : scores[i], 1,
                   labels[i] ? 1.0 : 0.0});
  std::ranges::sort(all, std::greater<>(), &Level::score);
  std::vector<Level> merged;
  for (const Level& each : all) {
    if (merged.empty() || merged.back().score != each.score) {
      merged.push_back(each);
    } else {
      merged.back().count += each.count;
      merged.back().labelled += each.labelled;
    }
  }
  return merged;
}

}  // namespace

double area_under_roc(std::span<const double> scores, std::span<const bool> labels) {
  double labelled = 0, others = 0, area = 0;
  for (const Level& level : levels(scores, labels)) {
    const double here = level.count - level.labelled;
    area += here * (labelled + level.labelled / 2);
    labelled += level.labelled, others += here;
  }
  return labelled > 0 && others > 0 ? area / (labelled * others) : 0.5;
}

double average_precision(std::span<const double> scores, std::span<const bool> labels) {
  double count = 0, labelled = 0, sum = 0;
  for (const Level& level : levels(scores, labels)) {
    count += level.count, labelled += level.labelled;
    sum += level.labelled * labelled / count;
  }
  return labelled > 0 ? sum / labelled : 0;
}

}  // namespace superstep::baseline
