#include "superstep/run/ranks/mpi/library_means.h"

#include <atomic>

#include "superstep/run/ranks/aligned_values.h"
#include "superstep/run/ranks/shared/waiting.h"

namespace superstep::run {
namespace {

class LibraryMeans : public RangeMeans {
 public:
  LibraryMeans(MPI_Comm world, std::size_t values, std::vector<target::ValueRange> ranges)
      : values_(values), ranges_(std::move(ranges)), ready_(ranges_.size()), requests_(ranges_.size()) {
    int size = 1;
    MPI_Comm_size(world, &size);
    MPI_Comm_dup(world, &world_);
    share_ = 1.0f / static_cast<float>(size);
  }

  std::span<float> values() override { return values_.all(); }

  void begin() override {
    for (auto& flag : ready_) flag.store(false, std::memory_order_relaxed);
    begun_ = done_ = 0;
  }

  void ready(std::size_t range) override { ready_[range].store(true, std::memory_order_release); }

  bool progress() override {
    const std::size_t before = begun_ + done_;
    for (; begun_ < ranges_.size() && ready_[begun_].load(std::memory_order_acquire); ++begun_)
      MPI_Iallreduce(MPI_IN_PLACE, values_.data() + ranges_[begun_].begin,
                     static_cast<int>(ranges_[begun_].count), MPI_FLOAT, MPI_SUM, world_, &requests_[begun_]);
    for (; done_ < begun_ && is_done(requests_[done_]); ++done_)
      for (float& value : values().subspan(ranges_[done_].begin, ranges_[done_].count)) value *= share_;
    return begun_ + done_ > before;
  }

  void finish() override {
    wait_until([&] {
      progress();
      return done_ == ranges_.size();
    });
  }

  double seconds_waited() const override { return 0; }

 private:
  static bool is_done(MPI_Request& request) {
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  }

  AlignedValues values_;
  std::vector<target::ValueRange> ranges_;
  std::vector<std::atomic<bool>> ready_;
  std::vector<MPI_Request> requests_;
  MPI_Comm world_ = MPI_COMM_NULL;
  float share_ = 1;
  std::size_t begun_ = 0, done_ = 0;
};

}  // namespace

std::unique_ptr<RangeMeans> make_library_means(MPI_Comm world, std::size_t values,
                                               std::vector<target::ValueRange> ranges) {
  return std::make_unique<LibraryMeans>(world, values, std::move(ranges));
}

}  // namespace superstep::run
