// superstep sample WORKLOAD: draws of the posterior of a model's parameters.
#include "superstep/run/sample/sample.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/file/source/paths.h"
#include "superstep/run/ranks/communicator.h"

namespace superstep::cli {
namespace {

struct Arguments {
  run::SampleSettings settings;
  std::vector<std::string> data;
  std::string out, methods = "nuts", prior = "1";
  double noise = 0;
};

constexpr const char* words =
    "What a training gives is one set of weights; this gives many, drawn with the probability that they "
    "have\n"
    "given the data: a prior (normal, mean 0) times the likelihood that the loss says (mse: normal noise, "
    "whose\n"
    "size is sampled too; l1: Laplace noise; cross_entropy: classes). Gradients come from the compiled "
    "model, "
    "over\n"
    "all training samples.\n\n"
    "Examples:\n"
    "  superstep sample mcmc --out posterior/                  four chains of 1,000 draws by NUTS\n"
    "  superstep sample mcmc --method nuts,metropolis,laplace --noise 0.95 --out methods/     others beside "
    "it\n"
    "  superstep sample mcmc --method hmc --leapfrog 1000 --draws 1600 --jitter 0     static HMC\n"
    "  superstep sample mcmc --prior fan-in --chains 8 --threads 8\n"
    "  superstep sample mcmc --windows 200 --warm-up 500 --draws 400 --out windows/     a sliding window\n"
    "  superstep sample model.onnx --loss mse --data pairs.h5 --out mine/     a model of your own\n"
    "With --out every chain is kept twice a minute: after Ctrl-C, a crash or a power cut the same command "
    "goes on\n"
    "and gives the same draws; a larger --draws goes further. No draw depends on the number of threads.";

// --- what is printed

std::string number(double value, int digits = 3) {
  return std::isfinite(value) ? fmt::format("{:.{}g}", value, digits) : "";
}

void print_methods(const run::SampleReport& report) {
  TextTable table({"method", "acceptance", "gradients a draw", "divergent", "r-hat < 1.01", "effective draws",
                   "a second", "warm-up", "draws"});
  for (const run::MethodSummary& m : report.methods) {
    const run::Agreement& judged = m.predictions.empty() ? m.of_parameters : m.of_predictions;
    table.add_row({m.method, number(m.acceptance), number(m.evaluations), fmt::format("{}", m.divergent),
                   fmt::format("{} of {}", judged.agreed, judged.numbers),
                   fmt::format("{:.0f}", judged.least_bulk), number(m.effective_a_second),
                   format_seconds(m.warm_up_seconds), format_seconds(m.draw_seconds)});
  }
  fmt::print("{}", table.to_string());
}

void print_forecasts(const run::SampleReport& report) {
  if (report.held_out == 0) return;
  TextTable table({"forecast of held-out samples", "log-likelihood, nat a sample"});
  const auto add = [&](const std::string& name, double value) {
    table.add_row({name, fmt::format("{:.4f}", value - report.references.log_unit)});
  };
  if (report.constant) add("floor: " + report.constant->method, report.constant->value);
  if (report.references.floor)
    add("floor: " + report.references.floor->method, report.references.floor->value);
  for (const run::MethodSummary& m : report.methods) add(m.method, m.log_likelihood);
  if (report.references.ceiling)
    add("ceiling: " + report.references.ceiling->method, report.references.ceiling->value);
  fmt::print("{}", table.to_string());
}

void print_scales(const run::MethodSummary& method) {
  for (const run::NumberSummary& scale : method.scales)
    fmt::print("{} {:.3g}, 90 % from {:.3g} to {:.3g}, r-hat {}\n", scale.name, scale.mean, scale.low,
               scale.high, number(scale.convergence.r_hat, 4));
}

void print_whole(const Arguments& arguments, const run::SampleReport& report) {
  const run::SampleSettings& settings = arguments.settings;
  fmt::print("{}: {} numbers given {} samples, prior {}, {} chains of {} draws\n", settings.model.workload,
             format_count(static_cast<double>(report.parameters)),
             format_count(static_cast<double>(report.training)), to_string(settings.prior), settings.chains,
             format_count(static_cast<double>(settings.draws)));
  print_methods(report);
  print_scales(report.methods.front());
  print_forecasts(report);
  for (const run::MethodSummary& m : report.methods) {
    if (!m.told.empty()) fmt::print("{}: {}\n", m.method, m.told);
    for (const std::string& line : m.warnings()) say("superstep: warning: {}: {}\n", m.method, line);
  }
  if (!arguments.out.empty()) fmt::print("written to {}: the page is sample.html\n", arguments.out);
}

// Means over the windows.
struct WindowMeans {
  double own = 0, floor = 0, ceiling = 0, acceptance = 0, effective = 0, seconds = 0;
  std::int64_t divergent = 0;
  double worst_r_hat = 0;
};
WindowMeans means_of(const std::vector<run::WindowResult>& windows) {
  WindowMeans means;
  const auto count = static_cast<double>(windows.size());
  for (const run::WindowResult& w : windows) {
    means.own += w.log_likelihood / count, means.floor += w.floor / count, means.ceiling += w.ceiling / count;
    means.acceptance += w.acceptance / count, means.seconds += w.seconds / count;
    means.effective += w.least_effective / count, means.divergent += w.divergent;
    means.worst_r_hat = std::max(means.worst_r_hat, w.worst_r_hat);
  }
  return means;
}

void print_windows(const Arguments& arguments, const run::SampleReport& report) {
  const WindowMeans means = means_of(report.windows);
  fmt::print("{}: {} windows, {} chains of {} draws each, {} a window\n", arguments.settings.model.workload,
             report.windows.size(), arguments.settings.chains, arguments.settings.draws,
             format_seconds(means.seconds));
  fmt::print("acceptance {:.3g}, {} divergent, worst r-hat {}, {:.0f} effective draws\n", means.acceptance,
             means.divergent, number(means.worst_r_hat, 4), means.effective);
  TextTable table({"forecast of the rows behind the windows", "log-likelihood, nat a row"});
  if (std::isfinite(means.floor)) table.add_row({"floor", fmt::format("{:.4f}", means.floor)});
  table.add_row({arguments.settings.methods[0], fmt::format("{:.4f}", means.own)});
  if (std::isfinite(means.ceiling)) table.add_row({"ceiling", fmt::format("{:.4f}", means.ceiling)});
  fmt::print("{}", table.to_string());
}

// --- the result

void add(std::vector<Metric>& metrics, const std::string& name, double value, const char* unit = "") {
  if (std::isfinite(value)) metrics.push_back({.name = name, .value = value, .unit = unit});
}

std::vector<Metric> metrics_of(const run::SampleReport& report) {
  std::vector<Metric> metrics;
  const double unit = report.references.log_unit;
  for (const run::MethodSummary& m : report.methods) {
    const std::string prefix = report.methods.size() > 1 ? m.method + "_" : "";
    add(metrics, prefix + "log_likelihood", m.log_likelihood - unit, "nat");
    add(metrics, prefix + "acceptance", m.acceptance);
    add(metrics, prefix + "effective_draws_a_second", m.effective_a_second, "1/s");
    add(metrics, prefix + "worst_r_hat_of_predictions", m.of_predictions.worst_r_hat);
    add(metrics, prefix + "divergent", static_cast<double>(m.divergent));
    add(metrics, prefix + "gradients_a_draw", m.evaluations);
    add(metrics, prefix + "draw_time", m.draw_seconds, "s");
  }
  if (report.references.floor)
    add(metrics, "floor_log_likelihood", report.references.floor->value - unit, "nat");
  if (report.references.ceiling)
    add(metrics, "ceiling_log_likelihood", report.references.ceiling->value - unit, "nat");
  if (report.windows.empty()) return metrics;
  const WindowMeans means = means_of(report.windows);
  add(metrics, "log_likelihood", means.own, "nat");
  add(metrics, "floor_log_likelihood", means.floor, "nat");
  add(metrics, "ceiling_log_likelihood", means.ceiling, "nat");
  add(metrics, "acceptance", means.acceptance);
  add(metrics, "window_time", means.seconds, "s");
  return metrics;
}

void sample(Arguments arguments) {
  run::SampleSettings& settings = arguments.settings;
  if (!arguments.data.empty()) settings.model.data = data::joined_names(arguments.data);
  settings.methods = split(arguments.methods, ',');
  settings.prior = run::prior_from_text(arguments.prior);
  if (arguments.noise > 0) settings.noise = arguments.noise;
  settings.threads = thread_count();
  const run::SampleReport report = run::sample(settings, arguments.out, [](const std::string& line) {
    if (!common().quiet && run::launched_rank() == 0) say("superstep: {}\n", line);
  });
  if (!common().quiet && run::launched_rank() == 0)
    report.windows.empty() ? print_whole(arguments, report) : print_windows(arguments, report);
  nlohmann::json config = run::to_json(settings);
  config["threads"] = settings.threads;
  record::Result result = command_result("sample", settings.model.workload, std::move(config),
                                         metrics_of(report), settings.model.target);
  result.folder = arguments.out;
  result.details = run::to_json(report);
  keep_and_write_result(std::move(result));
}

// --- options

void declare_chains(CLI::App& command, Arguments& arguments) {
  run::SampleSettings& settings = arguments.settings;
  command
      .add_option("--method", arguments.methods,
                  "nuts, hmc, metropolis or laplace; several with commas: the first, and others beside it")
      ->type_name("NAME,...")
      ->capture_default_str();
  command.add_option("--chains", settings.chains, "chains, a thread each")
      ->type_name("N")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command.add_option("--draws", settings.draws, "draws of each chain, behind its warm-up")
      ->type_name("N")
      ->check(whole_number_from(1, 100'000'000))
      ->capture_default_str();
  command.add_option("--warm-up", settings.warm_up, "iterations in which step and variances are learnt")
      ->type_name("N")
      ->check(whole_number_from(0, 100'000'000))
      ->capture_default_str();
  command
      .add_option("--accept", settings.target_acceptance,
                  "acceptance that the step is learnt for (default: nuts 0.8, hmc 0.65)")
      ->type_name("X")
      ->check(number_from(0.05, 0.999));
  command.add_option("--doublings", settings.most_doublings, "nuts: paths of at most 2^N - 1 steps")
      ->type_name("N")
      ->check(CLI::Range(1, 20))
      ->capture_default_str();
  command.add_option("--leapfrog", settings.leapfrog_steps, "hmc: steps of a path")
      ->type_name("N")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  command
      .add_option("--jitter", settings.jitter,
                  "hmc: each path's step is multiplied by a number from 1 - X to 1 + X, against resonance")
      ->type_name("X")
      ->check(number_from(0, 0.999))
      ->capture_default_str();
}

void declare_density(CLI::App& command, Arguments& arguments) {
  command
      .add_option("--prior", arguments.prior,
                  "standard deviation of every parameter before the data, or fan-in:X for X / sqrt(inputs of "
                  "the layer)")
      ->type_name("X")
      ->capture_default_str();
  command
      .add_option("--noise", arguments.noise, "the size of the noise, where it is known (default: sampled)")
      ->type_name("X")
      ->check(positive());
  command.add_option("--held-out", arguments.settings.held_out, "samples that are forecast, at most")
      ->type_name("N")
      ->check(whole_number_from(0, 1'000'000))
      ->capture_default_str();
}

void declare_windows(CLI::App& command, run::Windows& windows) {
  command
      .add_option("--windows", windows.count,
                  "windows of a series, each begun where the last one's chains ended")
      ->type_name("N")
      ->check(whole_number_from(1, 1'000'000));
  command.add_option("--stride", windows.stride, "rows from one window to the next, which are forecast")
      ->type_name("N")
      ->check(whole_number_from(1, 1'000'000))
      ->capture_default_str();
  command
      .add_option("--window-warm-up", windows.warm_up, "iterations of warm-up of all windows but the first")
      ->type_name("N")
      ->check(whole_number_from(0, 100'000'000))
      ->capture_default_str();
}

void declare_model(CLI::App& command, Arguments& arguments) {
  run::TrainSettings& model = arguments.settings.model;
  add_data_option(command, "--data", arguments.data,
                  "files, folders, patterns, @LIST, NAME=PATH:ARRAY (docs/your-data.md); default: generated");
  add_skip_broken_option(command, model.skip_broken);
  add_crop_option(command, model.crop);
  add_scale_options(command, model.scale, model.offset);
  command.add_option("--samples", model.samples, "use so many samples")->type_name("N")->check(positive());
  command
      .add_option("--loss", model.loss,
                  "loss of a model file: mse, l1, cross_entropy; per output: mse:position,l1:width")
      ->type_name("LOSS");
  add_bound_option(command, model.bounds);
  add_operators_option(command);
  add_shape_option(command, model.shapes);
  add_freeze_option(command, model.freeze);
  add_set_option(command, model.model_options);
  command.add_option("--seed", model.seed, "seed of data, first weights and chains")
      ->type_name("N")
      ->check(whole_number_from(0))
      ->capture_default_str();
}

// Who heeds which option.
enum Method : unsigned { nuts = 1, hmc = 2, metropolis = 4, laplace = 8 };
constexpr std::string_view method_names[] = {"nuts", "hmc", "metropolis", "laplace"};
constexpr HeededOption heeded_options[] = {
    {"--accept", nuts | hmc | metropolis},
    {"--doublings", nuts},
    {"--leapfrog", hmc},
    {"--jitter", hmc},
    {"--stride", nuts | hmc | metropolis | laplace, "--windows"},
    {"--window-warm-up", nuts | hmc | metropolis | laplace, "--windows"},
    {"--checkpoint-seconds", nuts | hmc | metropolis | laplace, "--out"},
};

void refuse_ignored(const CLI::App& command, const Arguments& arguments) {
  unsigned asked = 0;
  for (const std::string& name : split(arguments.methods, ','))
    for (std::size_t i = 0; i < std::size(method_names); ++i)
      if (name == method_names[i]) asked |= 1u << i;
  if (asked > 0) refuse_unheeded(command, heeded_options, asked, method_names);  // wrong names are told later
}

}  // namespace

void declare_sample(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  command
      .add_option("workload", arguments->settings.model.workload,
                  "whose posterior: superstep list workloads, or a model file (.onnx)")
      ->required();
  declare_model(command, *arguments);
  declare_density(command, *arguments);
  declare_chains(command, *arguments);
  declare_windows(command, arguments->settings.windows);
  command.add_option("--out", arguments->out, "folder for draws, tables and the page; a run in it goes on")
      ->type_name("DIR");
  command
      .add_option("--checkpoint-seconds", arguments->settings.checkpoint_seconds,
                  "between two times that a chain is kept")
      ->type_name("S")
      ->check(not_negative())
      ->capture_default_str();
  command.footer(words);
  command.callback([arguments, &command] {
    refuse_ignored(command, *arguments);
    sample(*arguments);
  });
}

}  // namespace superstep::cli
