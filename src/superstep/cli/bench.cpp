// superstep bench: primitives and workloads, timed by one protocol.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/data/bench_data.h"
#include "superstep/cli/shared/bench_run.h"
#include "superstep/cli/shared/bench_serve.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/cli/wing.h"
#include "superstep/file/source/paths.h"
#include "superstep/lab/bench/baseline.h"
#include "superstep/lab/bench/configurations.h"
#include "superstep/lab/bench/self_check.h"
#include "superstep/lab/ranks/collective_bench.h"
#include "superstep/lab/ranks/launch.h"
#include "superstep/lab/ranks/overlap_bench.h"
#include "superstep/record/host_load.h"
#include "superstep/run/ranks/communicator.h"
#include "superstep/run/user/user_model.h"
#include "superstep/target/target.h"
#include "superstep/workload/workload.h"

namespace superstep::cli {
namespace {

struct Arguments : BenchArguments {
  ServeBenchArguments serve;
  DataBenchArguments data;
};
using record::Result;

constexpr const char* examples =
    "Examples:\n"
    "  superstep bench gemm --config gemm_k4 --precision f32,bf16\n"
    "  superstep bench gemm,conv,relu,lstm --mode infer --json primitives.json\n"
    "  superstep bench gemm --sweep                                  sizes until memory ends\n"
    "  superstep bench braggnn --mode train,infer --batch 64,512\n"
    "  superstep bench braggnn --mode infer --batch 1 --load single,offline,poisson --rate 5000\n"
    "  superstep bench model.onnx --peers                            a file beside ONNX Runtime and "
    "OpenVINO\n"
    "  superstep bench all-reduce --ranks 2 --sizes 4K..256M         or: mpirun -n 2 superstep bench "
    "all-reduce\n"
    "  superstep bench gradients --ranks 2 --sizes 1M..64M           what their exchange adds to a step\n"
    "  superstep bench serve http://127.0.0.1:8000 --request-rate 500,1000,2000    a server under load\n"
    "  superstep bench serve grpc://127.0.0.1:8001/peaks --concurrency 1,8         the same over gRPC\n"
    "  superstep bench data photos --against dataloader              samples out of files\n"
    "  superstep bench gemm,lstm --processes 5                       repeats in fresh processes\n"
    "  superstep bench gemm --self-check                             do two runs agree?\n"
    "Times are medians of all samples after a warm-up; [low, high] holds the median with 95 %.";

// A wrong result fails the command, after everything else was measured and kept.
void fail_if_wrong(const std::vector<Result>& results) {
  std::vector<std::string> wrong;
  for (const Result& result : results)
    if (result.config.contains("wrong")) wrong.push_back(result.id);
  if (!wrong.empty())
    throw Error(ErrorCode::internal, "a primitive does not compute what it should", join(wrong, ", "),
                "its time is not reported; the table says which element is wrong");
}

std::vector<run::SumOrder> orders_of(const std::string& name) {
  if (name == "ranks") return {run::SumOrder::by_rank};
  if (name == "library") return {run::SumOrder::library};
  if (name == "both") return {run::SumOrder::by_rank, run::SumOrder::library};
  throw Error(ErrorCode::invalid_argument, "there is no such order of sums", name,
              "there are ranks, library and both");
}

OutputChoice output_of(const Arguments& arguments) {
  return {arguments.format, arguments.out, !arguments.no_record};
}

// Between the ranks that a launcher started, or between those that this process starts to be replaced by.
void bench_all_reduce(const Arguments& arguments) {
  const std::vector<std::int64_t> sizes = lab::parse_sizes(arguments.sizes);
  const std::vector<run::SumOrder> orders = orders_of(arguments.order);
  if (arguments.ranks > 1 && run::launched_size() == 1)
    lab::replace_by_ranks(arguments.ranks, arguments.launcher);
  const record::HostLoad load;
  std::vector<Result> results = lab::bench_all_reduce(
      run::communicator(), {.sizes = sizes, .orders = orders, .iterations = arguments.iterations});
  for (Result& result : results) result.config["arguments"] = lab::own_arguments();
  finish_results(results, load, output_of(arguments));
  if (run::launched_rank() == 0 && !common().quiet && arguments.format == "text")
    fmt::print("{}", lab::contenders_table(results));
}

// What the exchange of gradients adds to a step, beside the pass that makes them and after it.
void bench_gradients(const Arguments& arguments) {
  const std::vector<std::int64_t> sizes = lab::parse_sizes(arguments.sizes);
  if (arguments.ranks > 1 && run::launched_size() == 1)
    lab::replace_by_ranks(arguments.ranks, arguments.launcher);
  if (run::launched_size() == 1)
    throw Error(ErrorCode::invalid_argument, "one rank has nobody to exchange with", "gradients",
                "give --ranks, or start it under mpirun");
  const record::HostLoad load;
  std::vector<Result> results =
      lab::bench_overlap(run::communicator(), {.sizes = sizes, .iterations = arguments.iterations});
  if (arguments.format != "text" || !arguments.out.empty())
    return finish_results(results, load, output_of(arguments));
  if (!arguments.no_record) keep_results(results, load);
  if (run::launched_rank() > 0 || common().quiet) return;
  fmt::print("{}in brackets: the fastest of {} steps\n", lab::overlap_table(results),
             results.front().quantities.front().samples.size());
  if (const std::string warning = load.warning(); !warning.empty()) tell(fmt::format("note: {}\n", warning));
}

// A line a file and peer: its time and how often ours goes into it, or why there is none.
std::string peers_text(const std::vector<Result>& results) {
  std::string text;
  for (const Result& result : results) {
    if (!result.config.contains("peers")) continue;
    for (const auto& [engine, said] : result.config["peers"].items()) {
      const record::Quantity *time = result.find("time_" + engine), *ratio = result.find("ratio_" + engine);
      text += fmt::format("{}: {}", result.id, said.get<std::string>());
      if (time && ratio)
        text += fmt::format(": {}, {:.2f} of our time", format_seconds(time->value), ratio->value);
      text += "\n";
    }
  }
  return text;
}

// What is measured, and who heeds which option.
enum Kind : unsigned {
  primitive = 1,
  workload = 2,
  file = 4,
  all_reduce = 8,
  gradients = 16,
  server = 32,
  samples = 64
};
constexpr std::string_view names_of_kinds[] = {"primitives", "workloads", "model files", "all-reduce",
                                               "gradients",  "serve",     "data"};
constexpr unsigned measured = primitive | workload | file, modelled = workload | file,
                   ranked = all_reduce | gradients;
constexpr HeededOption heeded_options[] = {
    {"--config", primitive},
    {"--sweep", primitive},
    {"--precision", measured},
    {"--mode", measured},
    {"--gradient",
     measured},  // with a word of its own where there is a primitive (check_bench), as the next ones
    {"--batch", measured | samples},
    {"--micro-batch", measured},
    {"--set", measured},
    {"--on", measured},
    {"--bound", measured},
    {"--shape", measured},
    {"--loss", measured},
    {"--peers", measured},
    {"--python", file | samples},
    {"--seconds", measured | server | samples},
    {"--against", samples},
    {"--repeat", measured},
    {"--processes", measured},
    {"--energy", measured},
    {"--self-check", measured},
    {"--pause", measured, "--self-check"},
    {"--no-peak", measured},
    {"--load", measured},
    {"--rate", modelled, "--load"},
    {"--requests", modelled, "--load"},
    {"--sizes", ranked},
    {"--ranks", ranked},
    {"--iterations", ranked},
    {"--launcher", ranked},
    {"--order", all_reduce},
    {"--request-rate", server},
    {"--concurrency", server},
    {"--arrive", server, "--request-rate"},
    {"--connections", server, "--request-rate"},
    {"--rows", server},
    {"--tensors", server},
    {"--token-file", server},
    {"--tls-ca", server},
    {"--tls-cert", server},
    {"--tls-key", server},
};

// A name may be a primitive's and a workload's: options decide which (shared/bench_run.cpp).
unsigned kind_of(const std::string& what) {
  if (run::is_model_file(what)) return file;
  const bool is_primitive = std::ranges::any_of(
      lab::primitive_kinds(), [&](lab::PrimitiveKind kind) { return what == lab::name_of(kind); });
  const bool is_workload =
      std::ranges::any_of(workload::workloads(), [&](const auto& known) { return known.name == what; });
  return (is_primitive ? primitive : 0u) | (is_workload || !is_primitive ? workload : 0u);
}

unsigned kinds_of(const std::vector<std::string>& what) {
  if (what == std::vector<std::string>{"all-reduce"}) return all_reduce;
  if (what == std::vector<std::string>{"gradients"}) return gradients;
  if (what.front() == "serve") return server;
  if (what.front() == "data") return samples;
  unsigned kinds = 0;
  for (const std::string& each : what) kinds |= kind_of(each);
  return kinds;
}

void refuse_ignored(const CLI::App& command, const Arguments& a) {
  refuse_unheeded(command, heeded_options, kinds_of(a.what), names_of_kinds);
  if (command.count("--python") > 0 && !a.peers && a.data.against.empty())
    throw Error(ErrorCode::invalid_argument, "means nothing without --peers or --against", "--python",
                "give one of them, or leave --python away");
  if (a.sweep && command.count("--config") > 0)
    throw Error(ErrorCode::invalid_argument, "names sizes, and --sweep takes its own", "--config",
                "leave one of them away");
}

void bench_samples(const Arguments& a) {
  if (a.what.size() < 2)
    throw Error(ErrorCode::invalid_argument, "takes what --data takes", "data",
                "superstep bench data photos");
  if (a.batches.size() > 1)
    throw Error(ErrorCode::invalid_argument, "takes one number of samples", "--batch", "give one of them");
  constexpr std::int64_t usual_batch = 64;  // chosen
  const std::filesystem::path data = data::joined_names(std::span(a.what).subspan(1));
  bench_data(data.string(), a.data, a.batches.empty() ? usual_batch : a.batches[0], a.seconds, a.python,
             output_of(a));
}

void bench(const Arguments& arguments) {
  if (arguments.what == std::vector<std::string>{"all-reduce"}) return bench_all_reduce(arguments);
  if (arguments.what == std::vector<std::string>{"gradients"}) return bench_gradients(arguments);
  if (arguments.what.front() == "serve") {
    if (arguments.what.size() != 2)
      throw Error(ErrorCode::invalid_argument, "takes the address of a server", "serve",
                  "superstep bench serve http://127.0.0.1:8000");
    if (!this_wing().serve_bench) go_on_in("serve");
    return this_wing().serve_bench(arguments.what[1], arguments.serve, arguments.seconds,
                                   output_of(arguments));
  }
  if (arguments.what.front() == "data") return bench_samples(arguments);
  check_bench(arguments);
  const record::HostLoad load;
  std::vector<Result> results, second;
  std::optional<HoldEnd> until_kept;
  try {
    run_bench(arguments, results, until_kept);
    if (arguments.self_check) {
      lab::pause_for(arguments.pause);
      run_bench(arguments, second, until_kept);
    }
  } catch (const Error& error) {
    // What was measured before the user asked to stop is kept.
    if (error.code() == ErrorCode::interrupted && !results.empty())
      finish_results(results, load, output_of(arguments));
    throw;
  }
  finish_results(results, load, output_of(arguments));
  if (!common().quiet) tell(peers_text(results) + lab::baseline_text(results));
  if (arguments.self_check) fmt::print("{}", lab::compare_runs(results, second).text);
  fail_if_wrong(results);
}

void declare_what(CLI::App& command, Arguments& a) {
  command
      .add_option(
          "what", a.what,
          "gemm, conv, relu, lstm, gru, rnn; workloads, .onnx files; all-reduce; gradients; serve and a "
          "server's URL; or data and a file or folder")
      ->required()
      ->delimiter(',');
  command
      .add_option("--config", a.configs,
                  "published configurations, by name, or all; of gemm any size, gemm_64x1760x2560")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->capture_default_str();
  command.add_flag("--sweep", a.sweep, "doubling sizes until memory ends, in place of the published ones");
  command.add_option("--precision", a.precisions, "f32, bf16, f16, int8")
      ->type_name("TYPE,...")
      ->delimiter(',')
      ->capture_default_str();
  command
      .add_option(
          "--mode", a.modes,
          "train (forward and backward), infer (forward), backward (of gemm, conv); model files: infer")
      ->type_name("MODE,...")
      ->delimiter(',')
      ->capture_default_str();
  command
      .add_option(
          "--gradient", a.gradients,
          "gradient of training steps: reverse, forward:K or mixed:LAYER,... as for 'train'; may be repeated")
      ->type_name("MODE")
      ->allow_extra_args(false)
      ->capture_default_str();
  command
      .add_option("--batch", a.batches,
                  "samples per call (primitives take the first; default: published ones; model files: their "
                  "own, or 1)")
      ->type_name("N,...")
      ->delimiter(',')
      ->check(positive());
  command.add_option("--micro-batch", a.micro_batch, "micro-batch of workloads; default: the target chooses")
      ->type_name("N")
      ->check(positive());
  command
      .add_option("--set", a.model_options,
                  "name=value of an option of the workload's model; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command.add_option("--on", a.target, "where to run: superstep list targets")
      ->type_name("TARGET")
      ->capture_default_str();
}

void declare_files(CLI::App& command, Arguments& a) {
  add_bound_option(command, a.bounds);
  add_operators_option(command);
  add_shape_option(command, a.shapes);
  command.add_option("--loss", a.loss, "loss by which a model file is trained (default: mse)")
      ->type_name("LOSS");
  command.add_flag(
      "--peers", a.peers,
      "also time a model file in ONNX Runtime and OpenVINO, if Python has them; rounds take turns");
  command.add_option("--python", a.python, "the interpreter of --peers and --against")
      ->type_name("PROGRAM")
      ->capture_default_str();
}

void declare_protocol(CLI::App& command, Arguments& a) {
  command.add_option("--seconds", a.seconds, "most seconds of timed work per row and round")
      ->type_name("S")
      ->check(positive())
      ->capture_default_str();
  command.add_option("--repeat", a.repeat, "rounds over everything; their samples are joined")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      .add_option(
          "--processes", a.processes,
          "do it all in so many fresh processes, one after the other: the interval holds their spread")
      ->type_name("N")
      ->check(CLI::Range(1, 1000));
  command.add_flag("--energy", a.energy,
                   "joules per sample: ten more seconds per row, where the host counts energy");
  command.add_flag("--self-check", a.self_check,
                   "run everything twice: do the intervals of the two runs meet?");
  command.add_option("--pause", a.pause, "between the two runs of --self-check")
      ->type_name("S")
      ->check(number_from(0, 3600))
      ->capture_default_str();
  command.add_flag("--no-peak", a.no_peak,
                   "do not measure first what this machine can do at most, which takes seconds: rows have no "
                   "share of it");
  command.add_flag("--no-record", a.no_record, "do not keep the results in the records");
}

void declare_load(CLI::App& command, Arguments& a) {
  command.add_option("--load", a.loads, "latency of serving under load: single, offline, poisson")
      ->type_name("PATTERN,...")
      ->delimiter(',');
  command
      .add_option("--rate", a.rate,
                  "rate of Poisson arrivals (default: half of what a single stream reaches)")
      ->type_name("REQUESTS/S")
      ->check(positive());
  command.add_option("--requests", a.requests, "requests per load")
      ->type_name("N")
      ->check(CLI::Range(1, 10000000))
      ->capture_default_str();
}

void declare_collectives(CLI::App& command, Arguments& a) {
  command.add_option("--sizes", a.sizes, "sizes in bytes for all-reduce and gradients: 4K..256M, or a list")
      ->type_name("SIZES")
      ->capture_default_str();
  command
      .add_option("--ranks", a.ranks, "start all-reduce and gradients on so many ranks under the launcher")
      ->type_name("N")
      ->check(CLI::Range(2, 4096));
  command.add_option("--iterations", a.iterations, "timed iterations per size, for all-reduce and gradients")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command
      .add_option("--order", a.order,
                  "order of all-reduce's sums: ranks (always the same bits), library, or both in turn")
      ->type_name("ORDER")
      ->capture_default_str();
  command.add_option("--launcher", a.launcher, "the program that starts ranks")
      ->type_name("PROGRAM")
      ->capture_default_str();
}

}  // namespace

void declare_bench(CLI::App& command) {
  const auto a = std::make_shared<Arguments>();
  declare_what(command, *a);
  declare_files(command, *a);
  declare_protocol(command, *a);
  declare_load(command, *a);
  declare_collectives(command, *a);
  declare_serve_bench(command, a->serve);
  declare_data_bench(command, a->data);
  command
      .add_option("--format", a->format, "text, json, google, csv, deepbench, nccl, nccl-json, mllog, trace")
      ->type_name("FORMAT")
      ->capture_default_str();
  command.add_option("--out", a->out, "file for it (default: standard output)")->type_name("FILE");
  command.footer(examples);
  command.callback([a, &command] {
    a->modes_given = command.count("--mode") > 0;
    refuse_ignored(command, *a);
    bench(*a);
  });
}

}  // namespace superstep::cli
