// How well scores put what is there above what is not.
#pragma once

#include <span>

namespace superstep::baseline {

// The chance that one of the labelled ones scores above one of the others, equal scores counting half (A. P.
// Bradley, Pattern Recognition 30, 1145 (1997)). 0.5 where all labels are alike, and for NaN among the scores
// the score counts as below all others.
double area_under_roc(std::span<const double> scores, std::span<const bool> labels);

// The mean, over the labelled ones by falling score, of the share of labelled ones among those up to there;
// of equal scores the last one's share counts for all. 0 where none is labelled.
double average_precision(std::span<const double> scores, std::span<const bool> labels);

}  // namespace superstep::baseline
