// Ranks over MPI.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "superstep/run/ranks/alone.h"
#include "superstep/run/ranks/mpi/library_means.h"
#include "superstep/run/ranks/mpi/message_means.h"
#include "superstep/run/ranks/mpi/mpi_c.h"
#include "superstep/run/ranks/mpi/patience.h"
#include "superstep/run/ranks/mpi/pieces.h"
#include "superstep/run/ranks/shared/adding.h"
#include "superstep/run/ranks/shared/shared_means.h"
#include "superstep/run/ranks/shared/staged_sum.h"

namespace superstep::run {
namespace {

// Elements that are exchanged at a time: 4 MB keeps the pieces within a second-level cache or two and the
// room that they take small.
constexpr std::size_t message_values = std::size_t{1} << 20;
constexpr std::size_t library_values = std::size_t{1} << 30;  // what a count of MPI holds

bool may_share_memory() {
  const char* const asked = std::getenv("SUPERSTEP_SHARED_MEMORY");
  return !asked || std::strcmp(asked, "0") != 0;
}

// "Open MPI v4.1.4", the first words of what the library calls itself.
std::string library_name() {
  char name[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(name, &length);
  const std::string_view text(name, static_cast<std::size_t>(length));
  return std::string(text.substr(0, text.find_first_of(",\n")));
}

class World : public Communicator {
 public:
  explicit World(MPI_Comm world) : world_(world) {
    MPI_Comm_rank(world_, &rank_);
    MPI_Comm_size(world_, &size_);
    if (on_one_host() && may_share_memory()) staged_ = StagedSum::open(meeting());
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override {
    if (staged_)
      staged_->meet();
    else
      MPI_Barrier(world_);
  }

  void sum(std::span<float> values, SumOrder order) override {
    if (order == SumOrder::by_rank && staged_) return staged_->sum(values);
    const std::size_t most = order == SumOrder::library ? library_values : message_values;
    for (std::size_t at = 0; at < values.size(); at += most) {
      const auto part = values.subspan(at, std::min(most, values.size() - at));
      if (order == SumOrder::library)
        MPI_Allreduce(MPI_IN_PLACE, part.data(), static_cast<int>(part.size()), MPI_FLOAT, MPI_SUM, world_);
      else
        sum_by_messages(part);
    }
  }

  double maximum(double value) override {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, world_);
    return value;
  }

  bool any(bool flag) override {
    float value = flag ? 1 : 0;
    sum({&value, 1}, SumOrder::by_rank);
    return value > 0;
  }

  std::unique_ptr<RangeMeans> range_means(std::size_t values, std::vector<target::ValueRange> ranges,
                                          SumOrder order) override {
    if (order == SumOrder::library) return make_library_means(world_, values, std::move(ranges));
    if (staged_)
      if (auto means = open_shared_means(meeting(), values, ranges)) return means;
    return make_message_means(world_, values, std::move(ranges));
  }

  std::unique_ptr<Communicator> group(int size) override {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(world_, rank_ / size, rank_, &part);
    return std::make_unique<World>(part);
  }

  std::string road() const override { return staged_ ? "shared memory" : "messages"; }

  [[noreturn]] void abort(int code) override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  Meeting meeting() {
    return {.rank = rank_,
            .size = size_,
            .gather =
                [this](const Meeting::Words& words) {
                  std::vector<Meeting::Words> found(static_cast<std::size_t>(size_));
                  MPI_Allgather(words.data(), sizeof words, MPI_BYTE, found.data(), sizeof words, MPI_BYTE,
                                world_);
                  return found;
                },
            .all =
                [this](bool mine) {
                  int value = mine ? 1 : 0;
                  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MIN, world_);
                  return value != 0;
                }};
  }

  bool on_one_host() const {
    MPI_Comm host = MPI_COMM_NULL;
    MPI_Comm_split_type(world_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host);
    int together = 0;
    MPI_Comm_size(host, &together);
    MPI_Comm_free(&host);
    return together == size_;
  }

  // Each rank adds up one piece, in the order of ranks, and gives it to all.
  void sum_by_messages(std::span<float> values) {
    const Pieces p(values.size(), static_cast<std::size_t>(size_), static_cast<std::size_t>(rank_));
    const auto ranks = static_cast<std::size_t>(size_);
    received_.resize(std::max<std::size_t>(1, ranks * p.mine));
    MPI_Alltoallv(values.data(), p.counts.data(), p.offsets.data(), MPI_FLOAT, received_.data(),
                  p.own_counts.data(), p.own_offsets.data(), MPI_FLOAT, world_);
    std::vector<const float*> terms;
    for (std::size_t r = 0; r < ranks; ++r) terms.push_back(received_.data() + r * p.mine);
    add_in_order(received_.data(), terms, p.mine);
    MPI_Allgatherv(received_.data(), static_cast<int>(p.mine), MPI_FLOAT, values.data(), p.counts.data(),
                   p.offsets.data(), MPI_FLOAT, world_);
  }

  MPI_Comm world_;
  int rank_ = 0, size_ = 1;
  std::unique_ptr<StagedSum> staged_;  // where all ranks are on one host
  std::vector<float> received_;
};

// The library waits for all ranks without an end; one may never come.
std::chrono::seconds start_limit() {
  const char* const asked = std::getenv("SUPERSTEP_START_SECONDS");
  const int seconds = asked ? std::atoi(asked) : 0;
  return std::chrono::seconds(seconds > 0 ? seconds : 60);
}

[[noreturn]] void give_up_start() {
  fmt::print(
      stderr,
      "superstep: error: rank {} of {}: the others did not all start within {} s (did one die, or wait for "
      "a host? SUPERSTEP_START_SECONDS sets another limit)\n",
      launched_rank(), launched_size(), start_limit().count());
  std::_Exit(1);
}

// Starts the library with the program and ends it with it.
class Library {
 public:
  Library() {
    int provided = 0;
    const Patience patience(start_limit(), give_up_start);
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  }
  ~Library() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized) MPI_Finalize();
  }
};

}  // namespace

bool has_ranks() { return true; }
std::string ranks_library() { return library_name(); }

namespace {

// A launcher of another MPI starts processes that do not find each other. Where it does not say how many
// there are (PMIx), each but the first finds out by its number.
void require_all(int found, int launched, int own) {
  const bool alone = launched == 1 && own >= found;
  if (!alone && (launched == 1 || found == launched)) return;
  throw Error(
      ErrorCode::unsupported,
      fmt::format("the launcher started {} processes, and the MPI library of this program ({}) connects {}",
                  alone ? "several" : fmt::format("{}", launched), library_name(),
                  found == 1 ? "none of them" : fmt::format("{}", found)),
      "ranks",
      "start it with the mpirun of that library, or with srun --mpi=pmix; processes that are to work "
      "each by itself are started with srun -n 1 or without a launcher");
}

}  // namespace

std::unique_ptr<Communicator> make_communicator() {
  // Before the library starts: alone it says in the environment that it is the first of one.
  const int launched = launched_size(), own = launched_rank();
  if (launched == 1 && !launched_by_pmix()) return std::make_unique<Alone>();
  static const Library library;
  auto world = std::make_unique<World>(MPI_COMM_WORLD);
  require_all(world->size(), launched, own);
  return world;
}

}  // namespace superstep::run
