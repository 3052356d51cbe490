// Ranks over MPI.
// The C interface alone: MPI has no C++ one since version 3.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <vector>

#include "superstep/run/ranks/alone.h"

namespace superstep::run {
namespace {

// Elements that are exchanged at a time: a bucket of 4 MB keeps the pieces within a second-level cache or two
// and the room that they take small.
constexpr std::size_t bucket = std::size_t{1} << 20;

class World : public Communicator {
 public:
  World() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~World() override {
    // A rank that leaves because of an error must not wait for the others to say goodbye.
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized) MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

  void sum(std::span<float> values, SumOrder order) override {
    for (std::size_t at = 0; at < values.size(); at += bucket) {
      const auto part = values.subspan(at, std::min(bucket, values.size() - at));
      if (order == SumOrder::library)
        MPI_Allreduce(MPI_IN_PLACE, part.data(), static_cast<int>(part.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      else
        sum_by_rank(part);
    }
  }

  double maximum(double value) override {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
  }

  bool any(bool flag) override {
    int value = flag ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return value != 0;
  }

  [[noreturn]] void abort(int code) override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  // Each rank adds up one piece of the bucket, in the order of ranks, and gives it to all: as many bytes over
  // the wire as any all-reduce needs, 2 (n - 1) / n of the bucket a rank.
  void sum_by_rank(std::span<float> values) {
    const auto ranks = static_cast<std::size_t>(size_);
    std::vector<int> counts(ranks), offsets(ranks), own_counts(ranks), own_offsets(ranks);
    for (std::size_t r = 0; r < ranks; ++r) {
      offsets[r] = static_cast<int>(r * values.size() / ranks);
      counts[r] = static_cast<int>((r + 1) * values.size() / ranks) - offsets[r];
    }
    const auto mine = static_cast<std::size_t>(counts[static_cast<std::size_t>(rank_)]);
    for (std::size_t r = 0; r < ranks; ++r) {
      own_counts[r] = static_cast<int>(mine);
      own_offsets[r] = static_cast<int>(r * mine);
    }
    pieces_.resize(std::max<std::size_t>(1, ranks * mine));
    MPI_Alltoallv(values.data(), counts.data(), offsets.data(), MPI_FLOAT, pieces_.data(), own_counts.data(),
                  own_offsets.data(), MPI_FLOAT, MPI_COMM_WORLD);
    for (std::size_t r = 1; r < ranks; ++r)
      for (std::size_t i = 0; i < mine; ++i) pieces_[i] += pieces_[r * mine + i];
    MPI_Allgatherv(pieces_.data(), static_cast<int>(mine), MPI_FLOAT, values.data(), counts.data(), offsets.data(),
                   MPI_FLOAT, MPI_COMM_WORLD);
  }

  int rank_ = 0, size_ = 1;
  std::vector<float> pieces_;
};

}  // namespace

bool has_ranks() { return true; }

std::unique_ptr<Communicator> make_communicator() {
  if (launched_size() > 1) return std::make_unique<World>();
  return std::make_unique<Alone>();
}

}  // namespace superstep::run
