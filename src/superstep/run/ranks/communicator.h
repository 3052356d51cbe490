// Ranks: the processes of one run, as the site's own launcher started them (mpirun, srun). A program that was
// started alone is one rank. The library that connects them is MPI, chosen at build time: ranks/mpi or, where
// there is none, ranks/none. Ranks of one host add up in shared memory (ranks/shared).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "superstep/run/ranks/range_means.h"

namespace superstep::run {

// How a sum over ranks is made. Floating-point sums depend on their order.
enum class SumOrder {
  by_rank,  // in the order of ranks, whatever library and number of processes a node: the same bits every
            // time
  library,  // as MPI_Allreduce likes
};

// Collective calls: every rank makes the same ones in the same order. Not thread-safe.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;
  // Each element becomes the sum over ranks, on every rank.
  virtual void sum(std::span<float> values, SumOrder order = SumOrder::by_rank) = 0;
  virtual double maximum(double value) = 0;
  virtual bool any(bool flag) = 0;
  // Means of ranges of an array of so many values, made beside other work. The ranges are the same on all
  // ranks.
  virtual std::unique_ptr<RangeMeans> range_means(std::size_t values, std::vector<target::ValueRange> ranges,
                                                  SumOrder order = SumOrder::by_rank) = 0;
  // Ranks [k size, (k + 1) size) as a world of their own; size divides the number of ranks.
  virtual std::unique_ptr<Communicator> group(int size) = 0;
  // How sums by rank travel, for people: "shared memory", "messages".
  virtual std::string road() const = 0;
  // Ends all ranks at once, without a word: for a rank that cannot go on while the others wait for it.
  [[noreturn]] virtual void abort(int code) = 0;
};

// All ranks of this run; started on the first call, ended with the program. Throws Error (unsupported) when a
// launcher started several processes of a program that was built without MPI, or that another MPI than the
// program's would have to connect: each would train by itself. With SUPERSTEP_SHARED_MEMORY=0
// in the environment ranks of one host send messages, as those of several hosts do. Where the others do not
// start within 60 s (SUPERSTEP_START_SECONDS) the program says so and ends with 1.
Communicator& communicator();

// What the launcher says, without starting anything: 0 and 1 for a program that was started alone.
int launched_rank();
int launched_size();
bool launched_by_pmix();      // which does not say how many there are
void leave_ranks();           // takes that out of the environment: who is started next is started alone
bool has_ranks();             // was the program built with MPI?
std::string ranks_library();  // "Open MPI v4.1.4"; empty: none. Starts nothing.

// The implementation that the build has chosen; internal.
std::unique_ptr<Communicator> make_communicator();

}  // namespace superstep::run
