// A version of a model, compiled: plans of several batch sizes for every worker, each with memory of its own.
#pragma once

#include <memory>
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
};

class Version {
 public:
  // Compiles, and times every plan on zeros. Throws what compilation throws.
  Version(const Blueprint& blueprint, const target::Target& target, const VersionSettings& settings);

  const std::string& id() const { return id_; }
  const std::string& digest() const { return digest_; }  // SHA-256 of the content
  const ServedPorts& ports() const { return ports_; }
  bool trained() const { return trained_; }
  std::int64_t max_batch() const { return max_batch_; }
  std::span<const TimedSize> sizes() const { return sizes_; }  // ascending
  std::size_t plan_bytes() const { return plan_bytes_; }       // of all workers

  // At most max_batch() rows in all. A worker is one thread at a time; several run side by side.
  void run(int worker, std::span<const RowRange> ranges);

 private:
  struct Plan {
    std::unique_ptr<target::Executable> executable;
    std::vector<Tensor> inputs, outputs;  // where rows are gathered, and where they are taken from
  };
  using Plans = std::vector<Plan>;  // in the order of sizes_

  Plan compiled(const Blueprint& blueprint, const target::Target& target, std::int64_t rows, int threads);
  double timed(Plan& plan) const;
  void copy_rows(std::span<const RowRange> ranges, std::int64_t first, std::int64_t count, Plan& plan,
                 bool in) const;

  std::string id_, digest_;
  ServedPorts ports_;
  bool trained_;
  std::int64_t max_batch_;
  std::vector<TimedSize> sizes_;
  std::vector<std::vector<std::int64_t>> splits_;  // by rows
  std::vector<Plans> workers_;
  std::size_t plan_bytes_ = 0;
};

// 1, 2, 4 ... and max_batch; of a model with many parameters 1, 4, 16 ..., since every plan has its own copy;
// row by row 1 alone.
std::vector<std::int64_t> plan_sizes(const Blueprint& blueprint, const VersionSettings& settings);

}  // namespace superstep::edge
