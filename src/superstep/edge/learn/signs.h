// The signs that a model has grown old, looked at scan by scan.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "superstep/edge/learn/drift.h"
#include "superstep/edge/learn/scan.h"

namespace superstep::edge {

class DriftSigns {
 public:
  struct Seen {
    bool inputs = false, labels = false;   // frames look otherwise; errors against labels have risen
    double trend = 0;                      // of errors, in units of the first mean
    std::map<std::string, double> values;  // probabilities of features, and the statistic of errors
  };
  // `reference`: a scan of what the version was trained on; null: the first that is looked at.
  Seen look(const LearnScan& scan, std::span<const double> errors, const LearnScan* reference);
  // A new version has learnt from this scan: it is what later ones are held against.
  void begin_anew(const LearnScan& scan);

 private:
  std::vector<FrameFeatures> reference_;
  PageHinkley error_trend_{0.05, 1};
};

}  // namespace superstep::edge
