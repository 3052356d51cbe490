// The published products and convolutions by us and by the best libraries there are, in turns in one process.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "library_run.h"
#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/lab/measure/protocol.h"

namespace superstep::bench {

std::vector<Library> libraries() {
  std::vector<Library> all = blas_libraries();
  for (Library& library : onednn_libraries()) all.push_back(std::move(library));
  return all;
}

Tensor make_output(const lab::PrimitiveRun& ours) {
  const Tensor& y = ours.output("y");
  return Tensor(y.type(), y.shape());
}

namespace {

struct Arguments {
  std::vector<std::string> kinds{"gemm", "conv"}, modes{"infer", "train"}, precisions{"f32"};
  int threads = 1;
  double seconds = 1, flops = 4e9;
};

// Libraries that do not know a processor of another maker fall back to slow kernels, and threads that spin
// between calls slow the contender whose turn it is. Both are read when a library is loaded: begin again.
void set_up_libraries(char** argv) {
  if (std::getenv("SUPERSTEP_LIBRARIES_SET_UP")) return;
  setenv("SUPERSTEP_LIBRARIES_SET_UP", "1", 1);
  setenv("OMP_WAIT_POLICY", "passive", 0);
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
#endif
  execv("/proc/self/exe", argv);
}

lab::PrimitiveKind kind_of(const std::string& name) {
  for (const auto kind : {lab::PrimitiveKind::gemm, lab::PrimitiveKind::conv})
    if (lab::name_of(kind) == name) return kind;
  throw Error(ErrorCode::invalid_argument, "is neither gemm nor conv", name, "--kinds gemm,conv");
}

// Published convolutions take seconds a call: as many images as make a forward pass of so many operations.
lab::Primitive sized(const lab::Primitive& primitive, double flops) {
  if (primitive.kind == lab::PrimitiveKind::gemm) return primitive;
  const double one = lab::corrected_flops(lab::with_batch(primitive, 1));
  return lab::with_batch(primitive, std::max<std::int64_t>(4, std::llround(flops / one)));
}

// Two results of the same sums, each in an order of its own.
void expect_same(const Tensor& ours, const Tensor& theirs, const std::string& precision,
                 const std::string& who) {
  const std::int64_t step = std::max<std::int64_t>(1, ours.element_count() / 1000);
  double scale = 0, worst = 0;
  for (std::int64_t i = 0; i < ours.element_count(); i += step) {
    scale = std::max(scale, std::abs(ours.at(i)));
    worst = std::max(worst, std::abs(ours.at(i) - theirs.at(i)));
  }
  const double tolerance = precision == "f32" ? 1e-4 : precision == "bf16" ? 2e-2 : 0;
  if (worst > tolerance * scale)
    throw Error(ErrorCode::internal, fmt::format("differs from ours by {:.3g} of {:.3g}", worst, scale), who);
}

constexpr double hopeless = 10;

template <class Run>
double seconds_of(Run& run) {
  const double begun = lab::steady_clock().seconds();
  run.call();
  return lab::steady_clock().seconds() - begun;
}

struct Tally {
  int rows = 0;
  double log_sum = 0, least = INFINITY;
  void add(double ratio) {
    ++rows;
    log_sum += std::log(ratio);
    least = std::min(least, ratio);
  }
};

void compare(const lab::Primitive& primitive, const lab::PrimitiveOptions& options,
             const Arguments& arguments, TextTable& table, Tally& tally) {
  lab::PrimitiveRun ours(primitive, options, "cpu", arguments.threads);
  ours.call();
  const double own_first = seconds_of(ours);
  std::vector<std::unique_ptr<LibraryRun>> runs;
  std::vector<lab::Contender> contenders{{"ours", [&] { ours.call(); }}};
  std::string none = "none";  // and why: the last that was left out says it
  for (const Library& library : libraries()) {
    try {
      runs.push_back(library.make(ours, arguments.threads));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;
      if (library.name.starts_with("oneDNN")) none = "none: oneDNN " + error.message();
      continue;
    }
    const double first = seconds_of(*runs.back());
    expect_same(ours.output("y"), runs.back()->output(), options.precision, library.name);
    if (first > hopeless * own_first && seconds_of(*runs.back()) > hopeless * own_first) {
      none = fmt::format("none: {} takes more than {} times as long", library.name, hopeless);
      continue;
    }
    contenders.push_back({library.name, [run = runs.back().get()] { run->call(); }});
  }
  const auto measured = lab::measure_interleaved(
      contenders, {.warm_up_calls = 3, .warm_up_seconds = 0.1, .budget_seconds = arguments.seconds});
  const double own = measured[0].summary.median;
  const char* mode = lab::name_of(options.passes);
  const std::string batch = std::to_string(lab::batch_of(primitive));
  if (measured.size() == 1) {
    table.add_row({primitive.name, mode, options.precision, batch, format_seconds(own), none, "-", "-"});
    return;
  }
  const auto best = std::min_element(measured.begin() + 1, measured.end(), [](const auto& a, const auto& b) {
    return a.summary.median < b.summary.median;
  });
  const double ratio = best->summary.median / own;
  tally.add(ratio);
  table.add_row({primitive.name, mode, options.precision, batch, format_seconds(own), best->name,
                 format_seconds(best->summary.median), fmt::format("{:.2f}", ratio)});
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App program("Published products and convolutions by Superstep and by OpenBLAS and oneDNN, in turns.");
  program.add_option("--kinds", arguments.kinds)->delimiter(',')->capture_default_str();
  program.add_option("--modes", arguments.modes)
      ->check(CLI::IsMember({"infer", "train"}))
      ->delimiter(',')
      ->capture_default_str();
  program.add_option("--precisions", arguments.precisions, "f32, bf16, int8")
      ->delimiter(',')
      ->capture_default_str();
  program.add_option("--threads", arguments.threads)->check(CLI::Range(1, 4096))->capture_default_str();
  program.add_option("--seconds", arguments.seconds, "of each contender a row")->capture_default_str();
  program.add_option("--flops", arguments.flops, "of a convolution's forward pass: sets its batch")
      ->capture_default_str();
  CLI11_PARSE(program, argc, argv);
  set_up_libraries(argv);
  TextTable table(
      {"primitive", "mode", "precision", "batch", "ours", "best library", "its time", "its / ours"});
  Tally tally;
  for (const std::string& kind : arguments.kinds)
    for (const lab::Primitive& primitive : lab::published_primitives(kind_of(kind)))
      for (const std::string& mode : arguments.modes)
        for (const std::string& precision : arguments.precisions) {
          fmt::print(stderr, "{} {} {}\n", primitive.name, mode, precision);
          if (mode != "train" || precision != "int8")
            compare(sized(primitive, arguments.flops),
                    {.precision = precision, .passes = lab::passes_named(mode)}, arguments, table, tally);
        }
  fmt::print("{}", table.to_string());
  if (tally.rows > 0)
    fmt::print("geometric mean {:.2f}, least {:.2f}\n", std::exp(tally.log_sum / tally.rows), tally.least);
  return 0;
}

}  // namespace
}  // namespace superstep::bench

int main(int argc, char** argv) {
  try {
    return superstep::bench::run(argc, argv);
  } catch (const superstep::Error& error) {
    fmt::print(stderr, "libraries: {}\n", error.what());
    return 1;
  }
}
