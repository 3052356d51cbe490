#include "superstep/run/sample/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/progress.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/folder_lock.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/system/partial_files.h"
#include "superstep/run/ranks/communicator.h"
#include "superstep/run/ranks/end_all.h"
#include "superstep/run/sample/chains.h"

namespace superstep::run {
namespace {

using nlohmann::json;

json read_config(const std::filesystem::path& path) {
  json config = parse_json(read_text_file(path));
  if (config.is_object() && config.value("schema", "") == "superstep-sample/1") return config;
  throw Error(ErrorCode::bad_file, "is not the configuration of a sampling run", path.string(),
              "choose another --out");
}

// The folder, locked; the configuration of a run that it holds agrees with what is asked for.
std::unique_ptr<FolderLock> open_folder(const std::filesystem::path& out, const SampleSettings& settings) {
  if (out.empty()) return nullptr;
  require_writable_folder(out);
  make_folder(out);
  auto lock = std::make_unique<FolderLock>(out);
  sweep_partial_files(out, std::chrono::seconds(0));
  if (const std::filesystem::path config = out / "config.json"; std::filesystem::exists(config))
    refuse_other_draws(read_config(config), to_json(settings), out.string());
  return lock;
}

std::string how_to_go_on(const std::filesystem::path& out) {
  return out.empty() ? "nothing was kept: --out FOLDER keeps every chain"
                     : fmt::format("every chain is kept in {}: the same command goes on", out.string());
}

std::filesystem::path folder_of(const std::filesystem::path& out, const std::string& method) {
  if (out.empty()) return {};
  const std::filesystem::path folder = out / method;
  make_folder(folder);
  if (communicator().size() == 1) sweep_partial_files(folder, std::chrono::seconds(0));
  return folder;
}

// Sampling of the whole, by one method after another.
SampleReport sample_whole(const SampleSettings& settings, const std::filesystem::path& out, ThreadPool& pool,
                          const Tell& tell) {
  const Model model(settings.model);
  const Posterior posterior(model, settings.prior, settings.noise);
  TaskSettings samples = task_settings_of(settings.model, pool);
  samples.model_options = model.settings().model_options;
  const auto task = model.open_task(samples);
  const auto data = posterior.data(*task, settings.held_out);
  SampleReport report{.training = static_cast<std::int64_t>(data->training_indices.size()),
                      .held_out = static_cast<std::int64_t>(data->held_out_indices.size()),
                      .parameters = posterior.size(),
                      .task = task->describe()};
  report.references = task->forecast_references(data->held_out_indices);
  report.constant = constant_forecast(posterior, *data);
  keep_config(out, settings);
  std::vector<std::vector<ChainRecord>> records;
  const bool first = communicator().rank() == 0;  // which writes for all
  for (const std::string& method : settings.methods) {
    const bool laplace = method == laplace_method;
    const sampling::ChainSettings chains =
        laplace ? sampling::ChainSettings{.warm_up = 0, .seed = settings.model.seed}
                : chain_settings(settings, method);
    const std::filesystem::path folder = folder_of(out, method);
    const ChainJob job{.posterior = posterior,
                       .data = data,
                       .task = *task,
                       .settings = chains,
                       .chains = settings.chains,
                       .draws = settings.draws,
                       .folder = folder,
                       .checkpoint_seconds = settings.checkpoint_seconds,
                       .starts = {},
                       .label = method,
                       .tell = tell};
    std::string told;
    records.push_back(laplace ? sample_by_laplace(job, told) : sample_chains(job, pool));
    if (laplace && first && !folder.empty())
      for (int c = 0; c < settings.chains; ++c)
        write_chain(chain_file(folder, c), posterior, *data, records.back()[static_cast<std::size_t>(c)]);
    const Progress phase = Progress::phase("judging the draws");
    report.methods.push_back(summarise(method, chains, posterior, *data, records.back(), pool));
    report.methods.back().told = told;
    if (first && !folder.empty()) write_table(folder / "summary.csv", report.methods.back());
  }
  if (first && !out.empty()) write_page(out / "sample.html", settings, report, *data, records);
  return report;
}

}  // namespace

void keep_config(const std::filesystem::path& out, const SampleSettings& settings) {
  if (out.empty() || communicator().rank() > 0) return;
  write_file_atomically(out / "config.json",
                        to_json(settings).dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

std::optional<workload::Reference> constant_forecast(const Posterior& posterior, const PosteriorData& data) {
  if (data.held_out_targets.empty()) return std::nullopt;
  const std::size_t inputs = data.held_out.size();
  const Tensor &known = data.training[inputs], &asked = data.held_out_targets[0];
  const auto samples = static_cast<double>(data.held_out_indices.size());
  double sum = 0;
  if (posterior.likelihoods()[0].kind == Likelihood::Kind::categorical) {
    std::map<double, double> counts;  // one more than there are, so that what was never seen has a chance
    for (std::int64_t i = 0; i < known.element_count(); ++i) ++counts[known.at(i)];
    const double all = static_cast<double>(known.element_count() + static_cast<std::int64_t>(counts.size()));
    for (std::int64_t i = 0; i < asked.element_count(); ++i)
      sum += std::log((counts.contains(asked.at(i)) ? counts.at(asked.at(i)) + 1 : 1) / all);
    return workload::Reference{"how often each class was in training", sum / samples};
  }
  double mean = 0, squares = 0;
  const auto count = static_cast<double>(known.element_count());
  for (std::int64_t i = 0; i < known.element_count(); ++i) mean += known.at(i) / count;
  for (std::int64_t i = 0; i < known.element_count(); ++i) squares += std::pow(known.at(i) - mean, 2) / count;
  const double log_deviation = std::log(std::max(squares, 1e-300)) / 2;
  for (std::int64_t i = 0; i < asked.element_count(); ++i)
    sum += evaluate(Likelihood::Kind::normal, 1, std::pow(asked.at(i) - mean, 2), log_deviation).log;
  return workload::Reference{"mean and deviation of the training targets", sum / samples};
}

json to_json(const SampleReport& report) {
  json object{{"training_samples", report.training},
              {"held_out_samples", report.held_out},
              {"parameters", report.parameters},
              {"seconds", report.seconds},
              {"task", report.task},
              {"methods", json::array()},
              {"windows", json::array()}};
  const auto reference = [&](const char* name, const std::optional<workload::Reference>& value) {
    object[name] = value ? json{{"method", value->method}, {"log_likelihood", value->value}} : json();
  };
  reference("constant", report.constant);
  reference("floor", report.references.floor);
  reference("ceiling", report.references.ceiling);
  object["log_unit"] = report.references.log_unit;
  for (const MethodSummary& method : report.methods) object["methods"].push_back(to_json(method));
  for (const WindowResult& window : report.windows)
    object["windows"].push_back({{"first", window.first},
                                 {"log_likelihood", window.log_likelihood},
                                 {"floor", window.floor},
                                 {"ceiling", window.ceiling},
                                 {"acceptance", window.acceptance},
                                 {"worst_r_hat", window.worst_r_hat},
                                 {"least_effective", window.least_effective},
                                 {"divergent", window.divergent},
                                 {"seconds", window.seconds}});
  return object;
}

namespace {

// With more parameters than samples a model can meet them all, and the noise be as small as its prior lets
// it.
void refuse_what_has_no_mode(const SampleSettings& settings, const Posterior& posterior) {
  if (std::ranges::find(settings.methods, laplace_method) != settings.methods.end() &&
      !posterior.names_of_scales().empty())
    throw Error(
        ErrorCode::invalid_argument,
        "parameters and noise together are likeliest where the noise vanishes: nothing lies around that",
        "--method laplace", "give the noise by --noise, as the mean that nuts finds");
}

// What cannot be sampled is refused before a folder is made.
SampleReport sample_on_this_rank(const SampleSettings& settings, const std::filesystem::path& out,
                                 Communicator& world, const Tell& tell) {
  const Stopwatch watch;
  const Model model(settings.model);
  refuse_what_has_no_mode(settings, Posterior(model, settings.prior, settings.noise));
  if (world.size() > 1 && out.empty())
    throw Error(ErrorCode::invalid_argument, "several ranks hand each other their chains in a folder",
                "--out", "give one that all of them see");
  std::unique_ptr<FolderLock> lock;
  if (world.rank() == 0) lock = open_folder(out, settings);
  world.barrier();
  const StopNote note(how_to_go_on(out));
  ThreadPool pool(settings.threads);
  SampleReport report;
  try {
    if (settings.windows.count > 0)
      report.windows = sample_windows(settings, out, pool, tell);
    else
      report = sample_whole(settings, out, pool, tell);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::interrupted) throw;
    throw Error(ErrorCode::interrupted, error.message(), {}, how_to_go_on(out));
  }
  report.seconds = watch.seconds();
  if (!out.empty() && world.rank() == 0)
    write_file_atomically(out / "summary.json",
                          to_json(report).dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  return report;
}

}  // namespace

SampleReport sample(const SampleSettings& settings, const std::filesystem::path& out, const Tell& tell) {
  check(settings);
  Communicator& world = communicator();
  try {
    return sample_on_this_rank(settings, out, world, tell);
  } catch (const Error& error) {
    if (world.size() == 1 || error.code() == ErrorCode::interrupted) throw;
    end_all_ranks(world, error);
  }
}

}  // namespace superstep::run
