#include "superstep/lab/machine/rates.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/base/threads/run_together.h"
#include "superstep/lab/machine/peak_kernels.h"
#include "superstep/record/environment.h"

namespace superstep::lab {
namespace {

constexpr double trial_seconds = 5e-3;  // short enough that one of several is not interrupted

std::int64_t calibrated(const Work& work) {
  std::int64_t repeats = 1;
  for (;;) {
    const Stopwatch watch;
    work(repeats);
    const double seconds = watch.seconds();
    if (seconds >= trial_seconds / 2)
      return std::max<std::int64_t>(
          1, static_cast<std::int64_t>(static_cast<double>(repeats) * trial_seconds / seconds));
    repeats *= 2;
  }
}

void pin_to(int index) {
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && seen++ == index) CPU_SET(cpu, &one);
  if (CPU_COUNT(&one) > 0) sched_setaffinity(0, sizeof one, &one);
}

std::atomic<float> sink_of_all = 0;  // results end here, so that no loop is dropped

Work with_sink(double (*run)(std::int64_t, float&)) {
  float sink = 0;
  if (run(1, sink) == 0) return {};
  return [run](std::int64_t repeats) {
    float result = 0;
    const double amount = run(1000 * repeats, result);  // rounds of a loop
    sink_of_all.store(result, std::memory_order_relaxed);
    return amount;
  };
}

// Buffers that were let go of while a KeptBuffers lives, with the processor whose memory they are in.
struct Spare {
  std::byte* memory;
  std::size_t bytes;
  int processor;
};
std::mutex spares_mutex;
std::vector<Spare> spares;
int keepers = 0;

void let_go(Spare buffer) {
  const std::lock_guard lock(spares_mutex);
  keepers > 0 ? spares.push_back(buffer) : std::free(buffer.memory);
}

std::byte* spare_buffer(std::size_t bytes, int processor) {
  const std::lock_guard lock(spares_mutex);
  const auto found = std::ranges::find_if(
      spares, [&](const Spare& spare) { return spare.bytes == bytes && spare.processor == processor; });
  if (found == spares.end()) return nullptr;
  std::byte* const memory = found->memory;
  spares.erase(found);
  return memory;
}

std::byte* new_buffer(std::size_t bytes) {
  constexpr std::size_t large_page = std::size_t{2} << 20,
                        small_page = 4096;  // bytes, as Linux has them on x86-64
  const std::size_t page = bytes < large_page ? small_page : large_page;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(page, (bytes + page - 1) / page * page));
  if (!memory)
    throw Error(ErrorCode::out_of_memory,
                "no memory for a buffer of " + format_bytes(static_cast<double>(bytes)));
  madvise(memory, bytes, MADV_HUGEPAGE);  // what is measured is the memory, not the page tables
  std::fill_n(memory, bytes, std::byte{1});
  return memory;
}

std::shared_ptr<std::byte> make_buffer(std::size_t bytes) {
  const int processor = ::sched_getcpu();  // threads that measure are pinned
  std::byte* memory = spare_buffer(bytes, processor);
  if (!memory) memory = new_buffer(bytes);
  return {memory, [bytes, processor](std::byte* p) { let_go({p, bytes, processor}); }};
}

double pass(std::byte* data, std::size_t bytes, Access access, float& sink) {
  // A third in whole KiB, and so in whole vectors of any width.
  const std::size_t half = bytes / 2, third = bytes / 3 / 1024 * 1024;
  switch (access) {
    case Access::read: return read_pass(data, bytes, sink);
    case Access::write: return write_pass(data, bytes);
    case Access::copy: return copy_pass(data, data + half, half);
    case Access::triad: return triad_pass(data, data + third, data + 2 * third, third);
  }
  return 0;
}

}  // namespace

namespace {

// What every thread works on and what it took; sized when it is known how many there are.
struct Trials {
  std::vector<Work> works;
  std::vector<std::exception_ptr> failures;
  std::vector<double> seconds, amounts;
  std::optional<std::barrier<>> barrier;
  std::atomic<bool> stopping = false;  // what the first thread says counts: all leave at the same barrier
  std::vector<double> rates;

  void prepare(int threads) {
    const auto count = static_cast<std::size_t>(threads);
    works.resize(count);
    failures.resize(count);
    seconds.resize(count);
    amounts.resize(count);
    barrier.emplace(threads);
  }
  double rate() const {
    double sum = 0;
    for (std::size_t i = 0; i < seconds.size(); ++i) sum += amounts[i] / seconds[i];
    return sum;
  }
};

void run_trials(Trials& trials, int index, const MakeWork& make, int count) {
  pin_to(index);
  const auto me = static_cast<std::size_t>(index);
  try {
    trials.works[me] = make();
  } catch (...) {
    trials.failures[me] = std::current_exception();
  }
  trials.barrier->arrive_and_wait();
  if (std::ranges::any_of(trials.failures, [](const auto& failure) { return failure != nullptr; })) return;
  const std::int64_t repeats = calibrated(trials.works[me]);
  for (int trial = 0; trial < count; ++trial) {
    if (index == 0) trials.stopping = interrupted();
    trials.barrier->arrive_and_wait();
    if (trials.stopping) return;
    const Stopwatch watch;
    trials.amounts[me] = trials.works[me](repeats);
    trials.seconds[me] = watch.seconds();
    trials.barrier->arrive_and_wait();
    if (index == 0) trials.rates.push_back(trials.rate());
  }
}

}  // namespace

KeptBuffers::KeptBuffers() {
  const std::lock_guard lock(spares_mutex);
  ++keepers;
}

KeptBuffers::~KeptBuffers() {
  const std::lock_guard lock(spares_mutex);
  if (--keepers > 0) return;
  for (const Spare& spare : spares) std::free(spare.memory);
  spares.clear();
}

int measuring_threads(int wanted) { return std::clamp(wanted, 1, available_processors()); }

std::vector<double> measure_rates(int wanted, const MakeWork& make, int trials) {
  Trials all;
  run_together(
      measuring_threads(wanted), [&](int threads) { all.prepare(threads); },
      [&](int index) { run_trials(all, index, make, trials); });
  for (const std::exception_ptr& failure : all.failures)
    if (failure) std::rethrow_exception(failure);
  if (all.stopping) throw Error(ErrorCode::interrupted, "while measuring the machine");
  return all.rates;
}

double best(const std::vector<double>& rates) { return rates.empty() ? 0 : std::ranges::max(rates); }

Work f32_fma_work() { return with_sink(run_f32_fma); }
Work bf16_dot_work() { return with_sink(run_bf16_dot); }
Work int8_dot_work() { return with_sink(run_int8_dot); }

Work dependent_addition_work() {
  return [](std::int64_t repeats) {
    std::uint64_t x = 0, y = 1;
    // 8,000 additions, each of which waits for the one before.
    for (std::int64_t i = 0; i < 1000 * repeats; ++i)
      for (int k = 0; k < 8; ++k) {
        x += y;
        asm volatile("" : "+r"(x), "+r"(y));
      }
    return 8000.0 * static_cast<double>(repeats);  // as above
  };
}

const char* name_of(Access access) {
  switch (access) {
    case Access::read: return "read";
    case Access::write: return "write";
    case Access::copy: return "copy";
    case Access::triad: return "triad";
  }
  return "";
}

Work memory_work(std::size_t bytes, Access access) {
  constexpr std::size_t grain = 6144;  // bytes: its half and its third are whole KiB
  bytes = std::max(grain, bytes / grain * grain);
  return [buffer = make_buffer(bytes), bytes, access](std::int64_t repeats) {
    float sink = 0;
    double moved = 0;
    for (std::int64_t i = 0; i < repeats; ++i) moved += pass(buffer.get(), bytes, access, sink);
    sink_of_all.store(sink, std::memory_order_relaxed);
    return moved;
  };
}

double peak_flops(int threads, const std::string& precision) {
  const auto make = precision == "bf16" ? bf16_dot_work : precision == "int8" ? int8_dot_work : f32_fma_work;
  constexpr int many = 60;  // what is a peak is seen in a quiet moment alone
  return make() ? best(measure_rates(threads, make, many)) : 0;
}

// Buffers of half a cache; of the last level, which others use too, four times the level before; for memory
// four times the last level.
std::vector<MemoryLevel> memory_levels(int threads) {
  const record::CacheSizes sizes = record::cache_sizes();
  const std::size_t l1 = sizes.level1 ? sizes.level1 : 32 << 10, l2 = sizes.level2 ? sizes.level2 : 1 << 20;
  const std::size_t l3 = sizes.level3 ? sizes.level3 : 32 << 20;
  threads = std::clamp(threads, 1, available_processors());
  std::vector<MemoryLevel> levels{{"L1", l1 / 2}, {"L2", l2 / 2}};
  if (sizes.level3) levels.push_back({"L3", std::min(4 * l2, l3 / 2)});
  levels.push_back({"memory", 4 * l3 / static_cast<std::size_t>(threads)});
  return levels;
}

}  // namespace superstep::lab
