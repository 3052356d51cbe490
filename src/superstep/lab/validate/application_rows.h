// Rows of whole applications and of primitives on real machines, and their predictions.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "superstep/graph/graph.h"
#include "superstep/lab/validate/row_run.h"
#include "superstep/lab/validate/table.h"
#include "superstep/machine/configuration/resolve.h"

namespace superstep::lab {

// Whether the table has the columns of such rows.
bool has_application_rows(const PublishedTable& table);

// From SI to a row's own unit: 1e3 of "ms".
double scale_of_unit(const std::string& unit);
// Samples of an epoch, by the first number of a note: "training part of an epoch: 19968 of 20608 samples".
double epoch_samples_of(const std::string& note);

struct RowPrediction {
  std::optional<double> value;    // in the row's unit; nothing: not covered
  double low = 0, high = 0;       // 80 %
  std::string reason;             // why not, or what was assumed and what bounds it
  double peak = 0, roofline = 0;  // the same of arithmetic alone, and of arithmetic and memory; 0: not said
  bool memory_ends = false;       // the reason is that it does not fit
};

// Things by what they are of, each made once: whoever asks while it is being made waits for it.
template <class Thing>
class MadeOnce {
 public:
  template <class Make>
  const Thing& get(const std::string& key, Make make);

 private:
  struct Entry {
    std::once_flag made;
    Thing thing;
  };
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // entries stay where they are
};

// Predicts rows, on any thread, and keeps what it predicted: tables repeat configurations.
class ApplicationRows {
 public:
  explicit ApplicationRows(const PublishedTable& table) : table_(table) {}
  RowPrediction predict(std::size_t row);

 private:
  RowPrediction from_run(std::size_t row, const std::string& metric, const std::string& unit);
  RowPrediction collective(std::size_t row);
  RowPrediction ratio(std::size_t row);
  RowPrediction ratio_of(std::size_t row, RowRun first);
  std::optional<RowRun> compared(std::size_t row, const RowRun& first);
  const machine::Answer& answer_of(const RowRun& run);
  const graph::Graph& graph_at(const RowRun& run, std::int64_t micro_batch);

  const PublishedTable& table_;
  MadeOnce<machine::Answer> answers_;
  MadeOnce<std::unique_ptr<graph::Graph>> graphs_;
};

template <class Thing>
template <class Make>
const Thing& MadeOnce<Thing>::get(const std::string& key, Make make) {
  Entry* entry = nullptr;
  {
    const std::lock_guard lock(mutex_);
    entry = &entries_[key];
  }
  std::call_once(entry->made, [&] { entry->thing = make(); });
  return entry->thing;
}

}  // namespace superstep::lab
