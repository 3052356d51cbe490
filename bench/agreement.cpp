// Do other tools say the same of the same work? A primitive timed by Google Benchmark and by our protocol in
// turns, in one process; or, with --command, a whole command timed by our protocol, to be held against
// hyperfine (agreement.py). Prints the medians over the rounds and their ratio.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/statistics.h"
#include "superstep/base/text.h"
#include "superstep/lab/bench/primitive_run.h"
#include "superstep/lab/measure/protocol.h"

#ifdef SUPERSTEP_GOOGLE_BENCHMARK
#include <benchmark/benchmark.h>
#endif

extern char** environ;

namespace superstep {
namespace {

struct Arguments {
  std::vector<std::string> configs{"gemm:gemm_k1", "gemm:gemm_k2", "gemm:gemm_k3", "conv:conv_k2",
                                   "lstm:rnn_k3"};
  std::string command;
  int rounds = 7, threads = 1;
  double seconds = 0.5;
  bool processor_time = false;
};

// Of the calling thread, in which everything runs where there is one thread: a busy machine takes away wall
// time and not this. Google Benchmark tells it beside the wall time.
class ProcessorClock : public lab::Clock {
 public:
  double seconds() override {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
  void sleep_until(double) override {}
};

lab::Protocol protocol_of(const Arguments& arguments) {
  return {.warm_up_seconds = 0, .warm_up_limit = arguments.seconds, .budget_seconds = arguments.seconds};
}

#ifdef SUPERSTEP_GOOGLE_BENCHMARK

// Keeps what a run of Google Benchmark found and prints nothing.
class Keeper : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const double total = processor_time ? run.cpu_accumulated_time : run.real_accumulated_time;
      seconds = total / static_cast<double>(run.iterations);
    }
  }
  bool processor_time = false;
  double seconds = 0;
};

double time_with_google(lab::PrimitiveRun& run, const std::string& name, const Arguments& arguments) {
  benchmark::ClearRegisteredBenchmarks();
  benchmark::RegisterBenchmark(name.c_str(),
                               [&](benchmark::State& state) {
                                 for (auto _ : state) run.call();
                               })
      ->UseRealTime()
      ->MinTime(arguments.seconds);
  Keeper keeper;
  keeper.processor_time = arguments.processor_time;
  benchmark::RunSpecifiedBenchmarks(&keeper);
  return keeper.seconds;
}

lab::PrimitiveRun prepare(const std::string& config, int threads) {
  const std::vector<std::string> parts = split(config, ':');
  for (const auto kind : {lab::PrimitiveKind::gemm, lab::PrimitiveKind::conv, lab::PrimitiveKind::lstm})
    if (parts.size() == 2 && parts[0] == lab::name_of(kind)) {
      lab::Primitive primitive = lab::find_primitive(kind, parts[1]);
      // A convolution of the published batch takes seconds a call: neither tool would see many.
      if (kind == lab::PrimitiveKind::conv) primitive = lab::with_batch(primitive, 16);
      return {primitive, {}, "cpu", threads};
    }
  throw Error(ErrorCode::invalid_argument, "is not KIND:NAME", config, "for example gemm:gemm_k1");
}

void compare_with_google(const Arguments& arguments) {
  ProcessorClock processor;
  lab::Clock& clock = arguments.processor_time ? static_cast<lab::Clock&>(processor) : lab::steady_clock();
  TextTable table({"primitive", "Google Benchmark", "our protocol", "ours / Google's", "of the rounds",
                   "of the quietest rounds"});
  for (const std::string& config : arguments.configs) {
    lab::PrimitiveRun run = prepare(config, arguments.threads);
    std::vector<double> google, ours, ratios;
    for (int round = 0; round < arguments.rounds; ++round) {
      google.push_back(time_with_google(run, config, arguments));
      // Google Benchmark tells a mean: so does this side.
      ours.push_back(lab::measure({config, [&] { run.call(); }}, protocol_of(arguments), clock).summary.mean);
      ratios.push_back(ours.back() / google.back());
    }
    const auto [least, most] = std::ranges::minmax(ratios);
    // Of many short rounds a few of each tool have the machine to themselves, even where it is busy.
    const double quietest = std::ranges::min(ours) / std::ranges::min(google);
    table.add_row({config, format_seconds(quantile(google, 0.5)), format_seconds(quantile(ours, 0.5)),
                   fmt::format("{:.3f}", quantile(ratios, 0.5)), fmt::format("{:.3f} to {:.3f}", least, most),
                   fmt::format("{:.3f}", quietest)});
  }
  fmt::print("{}", table.to_string());
}

#else

void compare_with_google(const Arguments&) {
  throw Error(ErrorCode::unsupported, "this program was built without Google Benchmark", "agreement",
              "install it (Debian: libbenchmark-dev) and configure again");
}

#endif

void run_command(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0);
  pid_t child = 0;
  const int failure = posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (failure != 0 || waitpid(child, &status, 0) < 0 || status != 0)
    throw Error(ErrorCode::io, "cannot be run, or failed", words[0]);
}

// The median in s, alone on a line.
void time_command(const Arguments& arguments) {
  const std::vector<std::string> words = split(arguments.command, ' ');
  const lab::Measurement measured =
      lab::measure({arguments.command, [&] { run_command(words); }}, protocol_of(arguments));
  fmt::print("{:.9f}\n", measured.summary.median);
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App program("Our protocol beside Google Benchmark, or a whole command by our protocol.");
  program.add_option("--configs", arguments.configs, "KIND:NAME,...")->delimiter(',')->capture_default_str();
  program.add_option("--command", arguments.command, "time this, words separated by spaces");
  program.add_option("--rounds", arguments.rounds)->check(CLI::Range(1, 1000))->capture_default_str();
  program.add_option("--seconds", arguments.seconds, "of each tool a round")->capture_default_str();
  program.add_option("--threads", arguments.threads)->check(CLI::Range(1, 4096))->capture_default_str();
  program.add_flag("--processor-time", arguments.processor_time,
                   "of the calling thread, in place of wall time: for a busy machine, with one thread");
  CLI11_PARSE(program, argc, argv);
  arguments.command.empty() ? compare_with_google(arguments) : time_command(arguments);
  return 0;
}

}  // namespace
}  // namespace superstep

int main(int argc, char** argv) {
  try {
    return superstep::run(argc, argv);
  } catch (const superstep::Error& error) {
    fmt::print(stderr, "agreement: {}\n", error.what());
    return 1;
  }
}
