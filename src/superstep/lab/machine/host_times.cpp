#include "superstep/lab/machine/host_times.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <cstring>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/statistics.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/thread_pool.h"
#include "superstep/base/threads/run_together.h"
#include "superstep/lab/measure/clock.h"

namespace superstep::lab {
namespace {

// A sample is the mean of so many calls, each of which is near what a clock can tell.
constexpr int samples_taken = 30, calls_a_sample = 200;
constexpr std::size_t block = std::size_t{4} << 20;

template <class F>
std::vector<double> times_of(F&& call, int samples, int calls) {
  Clock& clock = steady_clock();
  std::vector<double> times;
  for (int i = 0; i < samples; ++i) {
    const double begun = clock.seconds();
    for (int k = 0; k < calls; ++k) call();
    times.push_back((clock.seconds() - begun) / calls);
  }
  return times;
}

// A file that is gone when we are.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& folder)
      : path_((folder / "superstep-measure-XXXXXX").string()), descriptor_(mkstemp(path_.data())) {
    if (descriptor_ < 0) fail("cannot make a file to measure with");
    unlink(path_.c_str());
  }
  ~TemporaryFile() { close(descriptor_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  double write_rate(std::size_t bytes) {
    const std::vector<char> data(block, 'x');
    return rate(
        bytes, [&] { return ::write(descriptor_, data.data(), block); }, true);
  }
  double read_rate(std::size_t bytes) {
    std::vector<char> data(block);
    return rate(
        bytes, [&] { return ::read(descriptor_, data.data(), block); }, false);
  }
  bool forget_cache() {
    return fsync(descriptor_) == 0 && posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED) == 0;
  }

 private:
  template <class F>
  double rate(std::size_t bytes, F&& transfer, bool flush) {
    if (lseek(descriptor_, 0, SEEK_SET) != 0) fail("cannot go to the beginning of the file");
    const double begun = steady_clock().seconds();
    for (std::size_t done = 0; done < bytes;) {
      if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while measuring");
      const ssize_t moved = transfer();
      if (moved < 0 && errno == EINTR) continue;
      if (moved <= 0) fail("cannot read or write the file");
      done += static_cast<std::size_t>(moved);
    }
    if (flush && fdatasync(descriptor_) != 0) fail("cannot flush the file");
    return static_cast<double>(bytes) / (steady_clock().seconds() - begun);
  }
  [[noreturn]] void fail(const char* what) const {
    throw Error(ErrorCode::io, fmt::format("{}: {}", what, std::strerror(errno)), path_,
                "name another folder with --folder");
  }

  std::string path_;
  int descriptor_;
};

}  // namespace

HostQuantity time_of(std::string name, const std::vector<double>& seconds, std::string note) {
  const double best = std::ranges::min(seconds);
  return {std::move(name), "s", best, best, quantile(seconds, 0.5), std::move(note)};
}

HostQuantity rate_of(std::string name, std::string unit, const std::vector<double>& rates, std::string note) {
  const double best = std::ranges::max(rates);
  return {std::move(name), std::move(unit), best, quantile(rates, 0.5), best, std::move(note)};
}

HostQuantity barrier_time(int wanted) {
  std::optional<std::barrier<>> barrier;
  std::vector<double> times;
  int threads = 0;
  const auto prepare = [&](int count) {
    threads = count;
    barrier.emplace(count);
  };
  run_together(wanted, prepare, [&](int index) {
    const auto own = times_of([&] { barrier->arrive_and_wait(); }, samples_taken, calls_a_sample);
    if (index == 0) times = own;
  });
  return time_of(fmt::format("barrier_{}", threads), times,
                 fmt::format("std::barrier of {} thread{}", threads, threads == 1 ? "" : "s"));
}

HostQuantity fork_join_time(int threads) {
  ThreadPool pool(threads);
  const auto nothing = [](std::int64_t, int) {};
  return time_of(fmt::format("fork_join_{}", threads),
                 times_of([&] { pool.parallel_for(threads, nothing); }, samples_taken, calls_a_sample),
                 fmt::format("an empty parallel_for over {} thread{}", threads, threads == 1 ? "" : "s"));
}

HostQuantity allocation_time() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  constexpr std::size_t pages = 4096;  // 16 MB: a mean over many faults
  const auto once = [&] {
    void* memory = mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw Error(ErrorCode::out_of_memory, "no memory to measure allocation with");
    for (std::size_t i = 0; i < pages; ++i) static_cast<volatile char*>(memory)[i * page] = 1;
    munmap(memory, pages * page);
  };
  std::vector<double> times = times_of(once, samples_taken, 1);
  for (double& time : times) time /= pages;
  return time_of("page_allocation", times,
                 fmt::format("a page of {} B from the system, touched and given back", page));
}

std::vector<HostQuantity> file_rates(const std::filesystem::path& folder, std::size_t bytes) {
  constexpr int repeats = 3;
  TemporaryFile file(folder);
  std::vector<double> writes, cold, warm;
  bool forgotten = true;
  for (int i = 0; i < repeats; ++i) {
    writes.push_back(file.write_rate(bytes));
    forgotten = file.forget_cache() && forgotten;
    cold.push_back(file.read_rate(bytes));
    warm.push_back(file.read_rate(bytes));
  }
  return {rate_of("file_write", "B/s", writes, "sequential, flushed to the device"),
          rate_of("file_read", "B/s", cold,
                  forgotten ? "sequential, the page cache was asked to let go of the file"
                            : "sequential, partly from the page cache"),
          rate_of("file_read_cached", "B/s", warm, "sequential, from the page cache")};
}

}  // namespace superstep::lab
