// A task: a workload together with its data. What the training loop needs to know of either.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/base/tensor.h"
#include "superstep/base/thread_pool.h"
#include "superstep/run/predictions.h"
#include "superstep/run/quality.h"
#include "superstep/workload/workload.h"

namespace superstep::page {
class Page;
}

namespace superstep::run {

struct TaskSettings {
  std::filesystem::path data;  // a file of the workload's format; empty: generated in memory
  std::int64_t samples = 0;    // of the generated data, or a limit on the file's; 0: the workload's own
  std::uint64_t seed = 1;      // of the generated data and of the augmentation
  std::vector<std::string> model_options;  // name=value, as the model is built: sizes of generated data
  bool labels_required = true;  // false: only inputs are wanted; quality() needs labels all the same
  ThreadPool* pool = nullptr;   // never null
};

class Task {
 public:
  virtual ~Task() = default;

  // Samples are numbered; those below training_count() train, the others validate.
  virtual std::int64_t size() const = 0;
  virtual std::int64_t training_count() const = 0;

  // Fills a batch: the model's inputs, then its targets, one tensor each, in the order of the training
  // graph's inputs. `augment` draws the augmentation as a function of (seed, epoch, index) alone.
  // Thread-safe.
  virtual void fill(std::span<const std::int64_t> indices, std::uint64_t epoch, bool augment,
                    std::span<Tensor> tensors) const = 0;

  // The model's inputs alone, not augmented, on all threads of the pool.
  virtual void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                           ThreadPool& pool) const = 0;

  // The quality of predictions: `outputs` are the model's outputs for the samples `indices`, [n, ...] each.
  // Names as in the house's JSON ("error_px_mean"); the first is the one that targets are set on.
  virtual std::vector<Metric> quality(std::span<const std::int64_t> indices,
                                      std::span<const Tensor> outputs) const = 0;

  // What others reach on the samples `indices`, in the first metric of quality(): learnt, where something is
  // to be learnt, on the training samples alone. Runs them, in about `reference_seconds`. Nothing where the
  // task knows none.
  virtual References references(std::span<const std::int64_t>, ThreadPool&) const { return {}; }
  virtual double reference_seconds() const { return 0; }

  // Adds to the page what predictions look like in the task's own field, beside the truth, the worst cases
  // too. Returns what of it a terminal can show. Needs labels.
  virtual std::string present(const Predictions&, ThreadPool&, page::Page&) const { return {}; }

  // The same task on `samples` that no training has seen; null where it has no others than its own.
  virtual std::unique_ptr<Task> fresh(std::int64_t /*samples*/, std::uint64_t /*seed*/, ThreadPool&) const {
    return nullptr;
  }

  virtual bool has_labels() const { return true; }

  virtual nlohmann::json describe()
      const = 0;  // for the run's configuration: the file, its samples, its split
};

// The quality `found` on the samples `indices`, beside what others reach on them; nothing without a quality.
// Others that take longer than `seconds` are left out, and all are when the user interrupts them.
std::optional<Quality> judge(const Task& task, const workload::Workload& workload,
                             const std::vector<Metric>& found, std::span<const std::int64_t> indices,
                             ThreadPool& pool, double seconds);

// Opens the data of a workload; throws Error naming the file and data set, or when the workload has no data.
std::unique_ptr<Task> open_task(const workload::Workload& workload, const TaskSettings& settings);

// The order of the training samples in an epoch: a permutation that depends on (seed, epoch) alone.
std::vector<std::int64_t> epoch_order(std::int64_t count, std::uint64_t seed, std::uint64_t epoch);

}  // namespace superstep::run
