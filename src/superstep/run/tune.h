// The micro-batch and the number of threads by a short timed search, remembered from one run to the next.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/function_ref.h"
#include "superstep/run/remembered.h"
#include "superstep/target/target.h"

namespace superstep::run {

// A way to run the plan, and what it took.
struct TuneCandidate {
  std::int64_t micro_batch = 1;
  int threads = 1;
  double seconds = 0;  // of one run, the fastest of those timed
  friend bool operator==(const TuneCandidate&, const TuneCandidate&) = default;
};

struct Tuning {
  TuneCandidate chosen;
  std::vector<TuneCandidate> tried;  // in the order they were compiled; empty when `cached`
  bool cached = false;               // taken from the file
};
// "tuned: micro-batch 16, 2 threads, 3.1 ms (8, 2: 3.4 ms; 32, 2: 3.3 ms)".
std::string to_string(const Tuning& tuning);

// What a search depends on, as one key: the graph at the batch (operators, shapes, attributes; no weights),
// target, processor, and the plan that the target makes of it by itself: batch, micro-batch, threads and the
// kernel of every step. A program whose kernels are others searches anew; one that was only built anew does
// not.
std::string tuning_key(const graph::Graph& graph, std::string_view target, const target::PlanSummary& plan);

// Remembered searches, in one JSON file. A file that is broken or not ours counts as empty and is replaced.
class TuningCache {
 public:
  // `path` empty: tuning.json in the user's cache folder; without such a folder nothing is remembered.
  explicit TuningCache(std::filesystem::path path = {}) : entries_("tuning", std::move(path)) {}
  std::optional<TuneCandidate> find(const std::string& key) const;
  void add(const std::string& key, const TuneCandidate& chosen);  // throws Error (io)
  const std::filesystem::path& path() const { return entries_.path(); }

 private:
  Remembered entries_;
};

struct TuneOptions {
  double seconds = 1.5;  // of timed runs, all candidates together; compiling comes on top
  int fewest_rounds = 3;
};

// What to try around the micro-batch that the cost model chose, which comes first: divisors of the batch near
// a half, a quarter, twice and four times it, and fewer threads. `splits`: the batch can be split at all.
std::vector<TuneCandidate> tune_candidates(std::int64_t batch, std::int64_t chosen, int threads, bool splits);

// Compiles the candidates and times them in turn, a run each a round, on inputs that `fill` writes; the
// fastest run of each counts. Candidates more than half slower than the best after a round are dropped.
// `options.micro_batch` must be 0.
Tuning tune(const target::Target& target, const target::GraphAtBatch& model,
            const target::CompileOptions& options, FunctionRef<void(std::span<Tensor> inputs)> fill,
            TuningCache& cache, const TuneOptions& tune_options = {});

}  // namespace superstep::run
