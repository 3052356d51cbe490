// What a chain has come to, in memory and as a file that numpy reads.
//
// chain-1.npz, ...: every parameter by its name, [draws, extents...] f32; "noise" [draws], its standard
// deviation or scale; "predictions" [draws, samples, ...] of the held-out samples and "log_likelihood"
// [draws, samples]; "iteration/..." [iterations], the warm-up too; and "state/...", from which the chain goes
// on.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "superstep/run/sample/posterior.h"
#include "superstep/sampling/chain.h"

namespace superstep::run {

struct ChainRecord {
  sampling::ChainState state;
  std::vector<sampling::Iteration> iterations;
  std::vector<float> positions;         // [draws, size of a position], log s as it is
  std::vector<float> predictions;       // [draws, numbers a prediction], of the first term
  std::vector<double> log_likelihoods;  // [draws, held-out samples]
  double warm_up_seconds = 0, draw_seconds = 0;

  std::int64_t draws() const;
  std::int64_t warm_ups() const;
};

// Appends a draw at this position, with what the model says there.
void add_draw(ChainRecord& record, std::span<const double> position, std::span<const Tensor> predictions,
              std::span<const double> log_likelihoods);

std::filesystem::path chain_file(const std::filesystem::path& folder, int chain);  // chain from 0
// Atomically.
void write_chain(const std::filesystem::path& path, const Posterior& posterior, const PosteriorData& data,
                 const ChainRecord& record);
// Nothing where there is no such file. Throws Error (bad_file) on one of another posterior.
std::optional<ChainRecord> read_chain(const std::filesystem::path& path, const Posterior& posterior,
                                      const PosteriorData& data);
// Drops draws beyond the first so many: of a run that is asked for less than a chain has.
void keep_first(ChainRecord& record, std::int64_t draws, std::size_t size);

}  // namespace superstep::run
