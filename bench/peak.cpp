// What one core, and all of them at once, can do at most: f32 and bf16 operations, bandwidth of every level
// of the memory. Every number is the best of several short trials, so that a busy neighbour counts little.
#include "peak.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <barrier>
#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"

namespace superstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Does some work and says how much; `repeats` scales it.
using Work = std::function<double(std::int64_t repeats)>;

constexpr int trials = 12;

// Repeats that take about five milliseconds: short enough to fit between interruptions.
std::int64_t calibrated(const Work& work) {
  std::int64_t repeats = 1;
  for (;;) {
    const auto begin = Clock::now();
    work(repeats);
    const double seconds = seconds_since(begin);
    if (seconds >= 2.5e-3)
      return std::max<std::int64_t>(1,
                                    static_cast<std::int64_t>(static_cast<double>(repeats) * 5e-3 / seconds));
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

// Amount a second of all threads together: in every trial all start at once, and the slowest counts.
// `make` is called on each thread, so that its memory is near.
double best_rate(int threads, const std::function<Work()>& make) {
  std::vector<double> seconds(static_cast<std::size_t>(threads)), amounts(seconds.size());
  double best = 0;
  std::barrier barrier(threads);
  const auto main = [&](int index) {
    pin_to(index);
    const Work work = make();
    const auto me = static_cast<std::size_t>(index);
    const std::int64_t repeats = calibrated(work);
    for (int trial = 0; trial < trials; ++trial) {
      barrier.arrive_and_wait();
      const auto begin = Clock::now();
      amounts[me] = work(repeats);
      seconds[me] = seconds_since(begin);
      barrier.arrive_and_wait();
      if (index != 0) continue;
      double rate = 0;
      for (std::size_t i = 0; i < seconds.size(); ++i) rate += amounts[i] / seconds[i];
      best = std::max(best, rate);
    }
  };
  std::vector<std::jthread> pool;
  for (int i = 0; i < threads; ++i) pool.emplace_back(main, i);
  pool.clear();
  return best;
}

float sink_of_all = 0;  // results end here, so that no loop is dropped

Work with_sink(double (*run)(std::int64_t, float&)) {
  return [run](std::int64_t repeats) {
    float sink = 0;
    const double amount = run(1000 * repeats, sink);
    std::atomic_ref(sink_of_all).store(sink, std::memory_order_relaxed);
    return amount;
  };
}

// Additions that wait for each other take a cycle each.
Work dependent_additions() {
  return [](std::int64_t repeats) {
    std::uint64_t x = 0, y = 1;
    for (std::int64_t i = 0; i < 1000 * repeats; ++i)
      for (int k = 0; k < 8; ++k) {
        x += y;
        asm volatile("" : "+r"(x), "+r"(y));
      }
    return 8000.0 * static_cast<double>(repeats);
  };
}

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<std::byte, Free>;

Buffer make_buffer(std::size_t bytes) {
  constexpr std::size_t large_page = std::size_t{2} << 20, small_page = 4096;
  const std::size_t page = bytes < large_page ? small_page : large_page;
  Buffer buffer(static_cast<std::byte*>(std::aligned_alloc(page, (bytes + page - 1) / page * page)));
  if (!buffer)
    throw Error(ErrorCode::out_of_memory,
                "no memory for a buffer of " + format_bytes(static_cast<double>(bytes)));
  madvise(buffer.get(), bytes, MADV_HUGEPAGE);  // what is measured is the memory, not the page tables
  std::fill_n(buffer.get(), bytes, std::byte{1});
  return buffer;
}

enum class Access { read, write, copy };

Work memory_work(std::size_t bytes, Access access) {
  bytes = bytes / 2048 * 2048;
  const std::shared_ptr<std::byte> buffer(make_buffer(bytes).release(), Free());
  return [buffer, bytes, access](std::int64_t repeats) {
    float sink = 0;
    double moved = 0;
    for (std::int64_t i = 0; i < repeats; ++i) switch (access) {
        case Access::read: moved += read_pass(buffer.get(), bytes, sink); break;
        case Access::write: moved += write_pass(buffer.get(), bytes); break;
        case Access::copy: moved += copy_pass(buffer.get(), buffer.get() + bytes / 2, bytes / 2); break;
      }
    std::atomic_ref(sink_of_all).store(sink, std::memory_order_relaxed);
    return moved;
  };
}

struct Level {
  std::string name;
  std::size_t bytes;  // of the buffer, a thread
};

// Buffers of half a cache; of the last level, which others use too, four times the level before; for memory
// four times the last level.
std::vector<Level> levels(int threads) {
  const auto size = [](int name, long otherwise) {
    const long bytes = sysconf(name);
    return static_cast<std::size_t>(bytes > 0 ? bytes : otherwise);
  };
  const std::size_t l1 = size(_SC_LEVEL1_DCACHE_SIZE, 32 << 10), l2 = size(_SC_LEVEL2_CACHE_SIZE, 1 << 20);
  const std::size_t l3 = size(_SC_LEVEL3_CACHE_SIZE, 32 << 20), n = static_cast<std::size_t>(threads);
  return {{"L1", l1 / 2}, {"L2", l2 / 2}, {"L3", 4 * l2}, {"memory", 4 * l3 / n}};
}

struct Row {
  std::string name, unit;
  double value;
};

std::vector<Row> measure(int threads) {
  std::vector<Row> rows;
  rows.push_back({"clock", "Hz", best_rate(threads, dependent_additions) / threads});
  rows.push_back({"f32_fma", "FLOP/s", best_rate(threads, [] { return with_sink(run_f32_fma); })});
  float sink = 0;
  if (run_bf16_dot(1, sink) > 0)
    rows.push_back({"bf16_dot", "FLOP/s", best_rate(threads, [] { return with_sink(run_bf16_dot); })});
  for (const Level& level : levels(threads))
    for (const auto& [access, name] :
         {std::pair{Access::read, "read"}, {Access::write, "write"}, {Access::copy, "copy"}})
      rows.push_back({level.name + "_" + name, "B/s",
                      best_rate(threads, [&, a = access] { return memory_work(level.bytes, a); })});
  return rows;
}

void print(int threads, const std::vector<Row>& rows) {
  fmt::print("{} thread{}, vectors: {} ({} x f32)\n", threads, threads == 1 ? "" : "s", vector_target(),
             f32_lanes());
  TextTable table({"what", "best", "a core and cycle"});
  const double clock = rows[0].value;
  for (const Row& row : rows)
    table.add_row({row.name, format_si(row.value, row.unit),
                   row.name == "clock" ? ""
                                       : fmt::format("{:.1f} {}", row.value / threads / clock,
                                                     row.unit == "B/s" ? "B" : "FLOP")});
  fmt::print("{}\n", table.to_string());
}

nlohmann::json to_json(int threads, const std::vector<Row>& rows) {
  nlohmann::json metrics;
  for (const Row& row : rows)
    metrics[row.name] = {
        {"how", "measured"}, {"unit", row.unit}, {"value", row.value}, {"statistic", "best"}};
  return {{"schema", "superstep-result/1"},
          {"command", "peak"},
          {"config", {{"threads", threads}, {"vectors", vector_target()}}},
          {"metrics", metrics}};
}

void run(const std::vector<int>& thread_counts, const std::string& json) {
  nlohmann::json results = nlohmann::json::array();
  for (int threads : thread_counts) {
    const std::vector<Row> rows = measure(threads);
    print(threads, rows);
    results.push_back(to_json(threads, rows));
  }
  if (!json.empty()) write_file_atomically(json, results.dump(2) + "\n");
}

}  // namespace
}  // namespace superstep::bench

int main(int argc, char** argv) {
  std::vector<int> threads = {1};
  if (superstep::available_processors() > 1) threads.push_back(superstep::available_processors());
  std::string json;
  CLI::App program("Measures the peak of the cores and the bandwidth of the memory.");
  program.add_option("--threads", threads, "thread counts to measure")->check(CLI::Range(1, 4096));
  program.add_option("--json", json, "write the result to this file");
  CLI11_PARSE(program, argc, argv);
  try {
    superstep::bench::run(threads, json);
  } catch (const std::exception& error) {
    fmt::print(stderr, "peak: error: {}\n", error.what());
    return 1;
  }
}
