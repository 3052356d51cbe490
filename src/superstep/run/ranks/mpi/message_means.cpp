#include "superstep/run/ranks/mpi/message_means.h"

#include <array>
#include <atomic>

#include "superstep/run/ranks/aligned_values.h"
#include "superstep/run/ranks/mpi/pieces.h"
#include "superstep/run/ranks/shared/adding.h"
#include "superstep/run/ranks/shared/waiting.h"

namespace superstep::run {
namespace {

// Ranges on their way at a time: enough to keep the wire busy while one is added up.
constexpr std::size_t in_flight = 4;

// A range is sent (every rank gets its piece of all), added up, and gathered. Each of these goes from range
// to range in their order, on a communicator of its own: that is how MPI tells calls without an order apart.
class MessageMeans : public RangeMeans {
 public:
  MessageMeans(MPI_Comm world, std::size_t values, std::vector<target::ValueRange> ranges)
      : values_(values), ranges_(std::move(ranges)), ready_(ranges_.size()) {
    int rank = 0, size = 1;
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    MPI_Comm_dup(world, &sending_);
    MPI_Comm_dup(world, &gathering_);
    ranks_ = static_cast<std::size_t>(size);
    for (const target::ValueRange& range : ranges_)
      pieces_.emplace_back(range.count, ranks_, static_cast<std::size_t>(rank));
  }
  // The communicators go with the program: to free them all ranks would have to meet, and one may be gone.

  std::span<float> values() override { return values_.all(); }

  void begin() override {
    for (auto& flag : ready_) flag.store(false, std::memory_order_relaxed);
    sent_ = added_ = gathered_ = 0;
  }

  void ready(std::size_t range) override { ready_[range].store(true, std::memory_order_release); }

  bool progress() override {
    const std::size_t before = sent_ + added_ + gathered_;
    while (sent_ < ranges_.size() && sent_ < gathered_ + in_flight &&
           ready_[sent_].load(std::memory_order_acquire))
      send();
    while (added_ < sent_ && is_done(slots_[added_ % in_flight].sending)) add_and_gather();
    while (gathered_ < added_ && is_done(slots_[gathered_ % in_flight].gathering)) ++gathered_;
    return sent_ + added_ + gathered_ > before;
  }

  void finish() override {
    wait_until([&] {
      progress();
      return gathered_ == ranges_.size();
    });
  }

  double seconds_waited() const override { return 0; }

 private:
  struct Slot {
    MPI_Request sending = MPI_REQUEST_NULL, gathering = MPI_REQUEST_NULL;
    std::vector<float> received;  // this rank's piece as it comes from every rank
  };

  static bool is_done(MPI_Request& request) {
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  }

  void send() {
    Slot& slot = slots_[sent_ % in_flight];
    const Pieces& p = pieces_[sent_];
    slot.received.resize(std::max<std::size_t>(1, ranks_ * p.mine));
    MPI_Ialltoallv(values_.data() + ranges_[sent_].begin, p.counts.data(), p.offsets.data(), MPI_FLOAT,
                   slot.received.data(), p.own_counts.data(), p.own_offsets.data(), MPI_FLOAT, sending_,
                   &slot.sending);
    ++sent_;
  }

  void add_and_gather() {
    Slot& slot = slots_[added_ % in_flight];
    const Pieces& p = pieces_[added_];
    std::vector<const float*> terms;
    for (std::size_t r = 0; r < ranks_; ++r) terms.push_back(slot.received.data() + r * p.mine);
    add_in_order(slot.received.data(), terms, p.mine, 1.0f / static_cast<float>(ranks_));
    MPI_Iallgatherv(slot.received.data(), static_cast<int>(p.mine), MPI_FLOAT,
                    values_.data() + ranges_[added_].begin, p.counts.data(), p.offsets.data(), MPI_FLOAT,
                    gathering_, &slot.gathering);
    ++added_;
  }

  AlignedValues values_;
  std::vector<target::ValueRange> ranges_;
  std::vector<std::atomic<bool>> ready_;
  MPI_Comm sending_ = MPI_COMM_NULL, gathering_ = MPI_COMM_NULL;
  std::size_t ranks_ = 1;
  std::vector<Pieces> pieces_;
  std::array<Slot, in_flight> slots_;
  std::size_t sent_ = 0, added_ = 0, gathered_ = 0;  // ranges that have come so far in this round
};

}  // namespace

std::unique_ptr<RangeMeans> make_message_means(MPI_Comm world, std::size_t values,
                                               std::vector<target::ValueRange> ranges) {
  return std::make_unique<MessageMeans>(world, values, std::move(ranges));
}

}  // namespace superstep::run
