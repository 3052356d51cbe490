// A version of a model, compiled: plans of several batch sizes for every worker, each with memory of its own.
// One row's are there at once; those of more rows, which take longer to compile and to time, as they come.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/edge/model/blueprint.h"
#include "superstep/edge/model/split.h"

namespace superstep::edge {

struct VersionSettings {
  std::int64_t max_batch = 64;
  int workers = 1;
  int threads = 1;  // of a worker's plans
  // Every row by the plan for one row: its answer has the same bits whatever else is in the batch, and
  // however fast plans were when they were timed.
  bool row_by_row = false;
};

// Rows of one request: `count` rows of its tensors from row `first` on.
struct RowRange {
  std::span<const Tensor> inputs;
  std::span<Tensor> outputs;
  std::int64_t first = 0, count = 0;
  bool scaled = false;  // already as the training had them
};

class Version {
 public:
  // Compiles the plans of one row. Throws what compilation throws.
  Version(const Blueprint& blueprint, const target::Target& target, const VersionSettings& settings);

  // Compiles the others, smallest first, and times each on zeros, while run() goes on with those that are
  // there. One thread at a time; what was stopped is gone on with by the next call. Throws what compilation
  // throws, and Error (interrupted), also in the middle of a timed call.
  void widen(const Blueprint& blueprint, const target::Target& target);

  const std::string& id() const { return id_; }
  const std::string& digest() const { return digest_; }  // SHA-256 of the content
  const ServedPorts& ports() const { return ports_; }
  const std::vector<run::InputRange>& ranges() const { return ranges_; }  // of inputs in the training
  bool trained() const { return trained_; }
  const std::string& scaled_before() const { return scaled_before_; }
  bool has_digest() const { return has_digest_; }  // of its weights, which was held against them
  std::int64_t max_batch() const { return max_batch_; }
  std::vector<TimedSize> sizes() const { return widths()->sizes; }  // those that are there, ascending
  std::size_t plan_bytes() const { return plan_bytes_; }            // of all workers

  // At most max_batch() rows in all. A worker is one thread at a time; several run side by side.
  void run(int worker, std::span<const RowRange> ranges);

 private:
  struct Plan {
    std::unique_ptr<target::Executable> executable;
    std::vector<Tensor> inputs, outputs;  // where rows are gathered, and where they are taken from
  };
  // What is known at one time; nobody changes it, but a worker the memory of its own plans.
  struct Widths {
    std::vector<TimedSize> sizes;
    std::vector<std::vector<std::int64_t>> splits;            // by rows
    std::vector<std::vector<std::shared_ptr<Plan>>> workers;  // plans in the order of `sizes`
  };

  std::shared_ptr<const Widths> widths() const;
  void add(const Blueprint& blueprint, const target::Target& target, std::int64_t rows);
  std::shared_ptr<Plan> compiled(const Blueprint& blueprint, const target::Target& target, std::int64_t rows);
  void copy_rows(std::span<const RowRange> ranges, std::int64_t first, std::int64_t count, Plan& plan,
                 bool in) const;
  void scale_rows(std::size_t port, std::byte* rows, std::int64_t count) const;

  std::string id_, digest_;
  ServedPorts ports_;
  std::vector<run::InputRange> ranges_;
  std::vector<std::optional<data::Scaling>> scalings_;  // of the inputs
  std::string scaled_before_;
  bool trained_, has_digest_;
  VersionSettings settings_;
  std::int64_t max_batch_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Widths> widths_;  // behind mutex_
  std::atomic<std::size_t> plan_bytes_ = 0;
};

// 1, 2, 4 ... and max_batch; of a model with many parameters 1, 4, 16 ..., since every plan has its own copy;
// row by row 1 alone.
std::vector<std::int64_t> plan_sizes(const Blueprint& blueprint, const VersionSettings& settings);

}  // namespace superstep::edge
