// One model that is served: its versions, its queue and its workers.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "superstep/edge/service/batcher.h"

namespace superstep::edge {

struct ServiceSettings {
  BatcherSettings batcher;
  int workers = 1;
  int threads = 1;          // of a worker
  bool row_by_row = false;  // answers have the same bits in any batch (model/version.h)
  std::string target = "cpu";
};

class ModelService {
 public:
  // Reads the model, compiles it for one row and starts the workers; plans of more rows follow while they
  // answer, or are there before where the model is a file that is read for them. Throws what read_blueprint()
  // and compilation throw.
  ModelService(std::string name, ModelSource source, const ServiceSettings& settings);
  ~ModelService();  // what waits is told that it will not be served
  ModelService(const ModelService&) = delete;
  ModelService& operator=(const ModelService&) = delete;

  const std::string& name() const { return name_; }
  const ServiceSettings& settings() const { return settings_; }
  ModelSource source() const;

  // The version that answers; null while the model is unloaded.
  std::shared_ptr<Version> current() const;
  std::shared_ptr<Version> former() const;  // null: there is none to go back to
  // Either of them by its name, "" the current one; null: there is no such version.
  std::shared_ptr<Version> find(std::string_view version) const;

  Batcher& batcher() { return batcher_; }
  const Batcher& batcher() const { return batcher_; }

  // Reads the source anew, compiles it aside and lets it answer from then on; requests that wait are answered
  // by the version they came for. False: it is what is served already. Throws as the constructor, and
  // (unsupported) where inputs or outputs would change: the present version goes on.
  bool reload();
  // The same of another source, which is the model's from then on.
  bool replace(const ModelSource& source);
  // The former version answers again, and the present one is kept in its place. Throws Error
  // (invalid_argument) where there is none.
  void roll_back();
  // Until the first version has all its plans, or gets no more: for what measures or compares.
  void wait_until_wide() const;
  // The server ends: no further plans are made, nor versions read. What is being made is left at once.
  void stop_widening();
  void unload();  // gives back the memory of both once nobody needs them

  struct Swaps {
    std::uint64_t done = 0, rolled_back = 0, failed = 0;
  };
  Swaps swaps() const;
  // Rows whose outputs are NaN or infinite: though their inputs are not, and because they are.
  struct NotFinite {
    std::uint64_t outputs = 0, inputs = 0;
  };
  NotFinite not_finite() const { return {outputs_not_finite_, inputs_not_finite_}; }
  // Rows with inputs outside of the range that the training had.
  std::uint64_t outside_of_training() const { return outside_of_training_; }
  std::int64_t executions() const { return executions_.load(std::memory_order_relaxed); }

 private:
  bool is_ending() const;
  void widen(const Blueprint& blueprint, Version& version);
  void work(int worker);
  void look_at(const Batch& batch);
  void look_at_inputs(const Piece& piece);
  void finish_workers();

  const std::string name_;
  const ServiceSettings settings_;
  ModelSource source_;  // behind mutex_
  Batcher batcher_;
  std::mutex change_;  // one change of versions at a time
  mutable std::mutex mutex_;
  std::shared_ptr<Version> current_, former_;
  Swaps swaps_;
  std::atomic<std::int64_t> executions_ = 0;
  std::atomic<std::uint64_t> outputs_not_finite_ = 0, inputs_not_finite_ = 0, outside_of_training_ = 0;
  std::atomic<bool> stopping_ = false, wide_ = false;
  std::thread widening_;
  std::vector<std::thread> workers_;
};

}  // namespace superstep::edge
