// A task: a workload's samples, and what is asked about predictions of them. What training, serving and
// reports need to know of a workload's data stands here; they know no workload by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/metric.h"
#include "superstep/base/tensor.h"
#include "superstep/base/thread_pool.h"
#include "superstep/file/source/order.h"
#include "superstep/file/source/scaled_source.h"
#include "superstep/workload/workload.h"

namespace superstep::page {
class Page;
}

namespace superstep::workload {

struct TaskSettings {
  std::filesystem::path data;  // a file or folder of the workload's format; empty: generated in memory
  // Where the samples that validate are, all of them: then all of `data` train; empty: a part of `data`.
  std::filesystem::path validation = {};
  std::int64_t samples = 0;  // of the generated data, or a limit on the file's; 0: the workload's own
  std::uint64_t seed = 1;    // of the generated data and of the augmentation
  std::vector<std::string> model_options;  // name=value, as the model is built: sizes of generated data
  bool labels_required = true;  // false: only inputs are wanted; quality() needs labels all the same
  ThreadPool* pool = nullptr;   // never null
  double data_memory = 0;    // bytes that samples of a file may take; more are read as they are wanted. 0: a
                             // quarter of what is free
  bool skip_broken = false;  // samples that cannot be read are left out, and told in Task::notes()
  bool crop = false;         // of larger pictures than the model takes the middle is taken
  std::vector<data::Scaling> scalings = {};  // of arrays of `data`, and of `validation`
  std::filesystem::path tokenizer = {};  // that makes tokens of `data`, which are texts; empty: they are none
  // Above 0: of so many disjoint parts of the samples part `fold`, from 1 on, validates, and the others
  // train. Heeded by tasks whose parts are of groups (Task::heeds_folds); run/train/fold_task.h divides the
  // others.
  int folds = 0, fold = 0;
};

// What a model said about samples of a task, to be looked at in the task's own field.
struct Predictions {
  std::string model;                      // in words: "braggnn, bf16"
  std::span<const std::int64_t> indices;  // of the task's samples; at least one
  std::span<const Tensor> outputs;        // for them, as Task::quality() has them
  double seconds = 0;                     // that they took, data included
  // Standard deviations over passes with masks, as outputs are; empty of a model that was asked once.
  std::span<const Tensor> spread = {};
};

// What something other than the trained model reaches.
struct Reference {
  std::string method;  // in words: "ridge regression", "the noise of the measurements"
  double value = 0;
};

// On the same samples as the model, in its first metric. What a task does not have is left out.
struct References {
  std::optional<Reference> floor;         // a trivial predictor: whoever is worse has a mistake
  std::optional<Reference> conventional;  // the method that the model replaces
  std::optional<Reference> limit;         // the best there can be: the noise of the data
  std::optional<double> target;           // where it depends on the samples; else the workload's counts
};

// What others say of targets before they are known, as densities: means of log p over the samples, in nats
// and in the unit that the targets are filled in.
struct ForecastReferences {
  std::optional<Reference> floor, ceiling;  // a simple forecast; that of the process that made the data
  double log_unit = 0;  // the log of that unit in the data's own: log p there is less by so much
};

class Task {
 public:
  virtual ~Task() = default;

  // Samples are numbered; those below training_count() train, the others validate. A sample is a row of every
  // input: where a model takes many small things at once (molecules packed into one graph of a fixed size),
  // the pack is the sample.
  virtual std::int64_t size() const = 0;
  virtual std::int64_t training_count() const = 0;
  // Whether it heeds TaskSettings::validation; one that does not is not given it.
  virtual bool takes_validation() const { return false; }
  // Whether it heeds TaskSettings::scalings; one that does not is refused where there are such.
  virtual bool heeds_scalings() const { return false; }
  // Whether it heeds TaskSettings::folds, by what its samples are (molecules, trajectories).
  virtual bool heeds_folds() const { return false; }
  // Of one that does not: whether sample `index` and the one before it belong to one thing, which is not cut.
  virtual bool follows_on(std::int64_t /*index*/) const { return false; }
  // Why augmented batches are of the first training_count() samples alone; empty: they may be of any.
  virtual std::string augments_by() const { return {}; }

  // Fills a batch: the model's inputs, then its targets, one tensor each, in the order of the training
  // graph's inputs. `augment` draws the augmentation as a function of (seed, epoch, index) alone.
  // Thread-safe.
  virtual void fill(std::span<const std::int64_t> indices, std::uint64_t epoch, bool augment,
                    std::span<Tensor> tensors) const = 0;

  // Whether fill() reads from files: then several threads of their own call it while others compute.
  virtual bool reads_as_it_goes() const { return false; }
  virtual data::ForcedOrder forced_order() const { return {}; }

  // The model's inputs alone, not augmented, on all threads of the pool.
  virtual void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                           ThreadPool& pool) const = 0;

  // The quality of predictions: `outputs` are the model's outputs for the samples `indices`, [n, ...] each.
  // Names as in the house's JSON ("error_px_mean"), those of the workload's metrics, which say which way is
  // better; the first is the one that targets are set on.
  virtual std::vector<Metric> quality(std::span<const std::int64_t> indices,
                                      std::span<const Tensor> outputs) const = 0;

  // What the spread of many passes with masks is worth beside the errors of their mean (workload/spread.h):
  // both are outputs of the samples `indices`. Nothing of a task whose outputs are no numbers with a truth
  // each.
  virtual std::vector<Metric> spread_quality(std::span<const std::int64_t>, std::span<const Tensor> /*mean*/,
                                             std::span<const Tensor> /*spread*/) const {
    return {};
  }

  // What others reach on the samples `indices`, in the first metric of quality(): learnt, where something is
  // to be learnt, on the training samples alone. Runs them, in about `reference_seconds`; what takes more
  // than a second is remembered by what describe() says. Nothing where the task knows none.
  virtual References references(std::span<const std::int64_t>, ThreadPool&) const { return {}; }
  virtual double reference_seconds() const { return 0; }

  // The same of densities, for models that say how sure they are; nothing where the task knows none.
  virtual ForecastReferences forecast_references(std::span<const std::int64_t>) const { return {}; }

  // Adds to the page what predictions look like in the task's own field, beside the truth, the worst cases
  // too. Returns what of it a terminal can show. Needs labels.
  virtual std::string present(const Predictions&, ThreadPool&, page::Page&) const { return {}; }

  // The same task on `samples` that no training has seen; null where it has no others than its own.
  virtual std::unique_ptr<Task> fresh(std::int64_t /*samples*/, std::uint64_t /*seed*/, ThreadPool&) const {
    return nullptr;
  }

  // Writes what a model said of all samples as a table with a row for each thing that users count, such as
  // each molecule of packs. Tasks whose samples are those things have none: arrays of the outputs say it all.
  virtual bool has_table() const { return false; }
  // Whether a file of this name is such a table; others hold the outputs as arrays.
  virtual bool writes_table(const std::filesystem::path& path) const {
    return has_table() && (path.extension() == ".csv" || path.extension() == ".tsv");
  }
  virtual void write_table(const std::filesystem::path&, std::span<const Tensor> /*outputs*/) const {}

  // Which of these samples lie outside of what `training`, the task that a model learnt from, holds: a line
  // in words each, with where it was read. Asked where knows_domain() says that the task can tell.
  virtual bool knows_domain() const { return false; }
  virtual std::vector<std::string> outside(const Task& /*training*/) const { return {}; }

  // Of a sample that is a sequence with padding behind it: its tokens before the padding; else more than any
  // sequence has.
  virtual std::int64_t used_length(std::int64_t /*index*/) const {
    return std::numeric_limits<std::int64_t>::max();
  }

  virtual bool has_labels() const { return true; }

  // What is to be told of its data, a line each: what was left out and why.
  virtual std::vector<std::string> notes() const { return {}; }

  // For the run's configuration: where the samples come from ("source": the file or folder, where there is
  // one), how many there are, how they are split. Equal words of one workload mean equal samples.
  virtual nlohmann::json describe() const = 0;
};

// Opens the data of a workload; throws Error naming the file and data set, or when the workload has no data.
std::unique_ptr<Task> open_task(const Workload& workload, const TaskSettings& settings);

}  // namespace superstep::workload
