// Rows of whole applications and of primitives on real machines, and their predictions.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "superstep/lab/validate/table.h"
#include "superstep/machine/predict.h"

namespace superstep::lab {

// Whether the table has the columns of such rows.
bool has_application_rows(const PublishedTable& table);

struct RowPrediction {
  std::optional<double> value;  // in the row's unit; nothing: not covered
  double low = 0, high = 0;     // 80 %
  std::string reason;           // why not, or what was assumed and what bounds it
};

// Predicts rows one after the other and keeps what it predicted: tables repeat configurations.
class ApplicationRows {
 public:
  explicit ApplicationRows(const PublishedTable& table) : table_(table) {}
  RowPrediction predict(std::size_t row);

 private:
  struct Run;
  RowPrediction from_run(std::size_t row, const std::string& metric, const std::string& unit);
  RowPrediction collective(std::size_t row);
  RowPrediction ratio(std::size_t row);
  Run run_of(std::size_t row) const;
  const machine::Prediction& prediction_of(const Run& run);

  const PublishedTable& table_;
  std::map<std::string, machine::Prediction> predictions_;
};

}  // namespace superstep::lab
