// Windows that slide over a series: each is sampled from where the chains of the last one were.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/progress.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/run/ranks/communicator.h"
#include "superstep/run/sample/chains.h"
#include "superstep/run/sample/sample.h"
#include "superstep/sampling/warm_up.h"

namespace superstep::run {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t enough_for_variances = 100;  // draws of a chain; chosen: they know them to 15 %

// Position and step of a chain, and the variances of what it drew: of all but the same posterior, they are
// known better than a short warm-up could learn them.
sampling::ChainState start_behind(const ChainRecord& record) {
  const sampling::ChainState& state = record.state;
  sampling::ChainState start{
      .position = state.position, .step = state.step, .inverse_mass = state.inverse_mass};
  const std::size_t size = state.position.size(), draws = size == 0 ? 0 : record.positions.size() / size;
  if (draws < enough_for_variances) return start;
  sampling::RunningVariance drawn(size);
  std::vector<double> values(size);
  for (std::size_t draw = 0; draw < draws; ++draw) {
    std::copy_n(record.positions.begin() + static_cast<std::ptrdiff_t>(draw * size), size, values.begin());
    drawn.add(values);
  }
  start.inverse_mass = drawn.regularised();
  return start;
}

const std::vector<std::string>& columns() {
  static const std::vector<std::string> all = {"first",           "log_likelihood", "floor",
                                               "ceiling",         "acceptance",     "worst_r_hat",
                                               "least_effective", "divergent",      "seconds"};
  return all;
}

// What is on record of finished windows, one after another; a half-written last line is none.
std::vector<WindowResult> read_windows(const std::filesystem::path& path) {
  std::vector<WindowResult> windows;
  if (!std::filesystem::exists(path)) return windows;
  for (const std::string& line : split(read_text_file(path), '\n')) {
    const nlohmann::json row = parse_json(line);
    if (!row.is_object() || !row.contains("seconds")) continue;
    const auto number = [&](const char* name) {
      return row.contains(name) && row[name].is_number() ? row[name].get<double>() : nothing;
    };
    windows.push_back({.first = static_cast<std::int64_t>(number("first")),
                       .log_likelihood = number("log_likelihood"),
                       .floor = number("floor"),
                       .ceiling = number("ceiling"),
                       .acceptance = number("acceptance"),
                       .worst_r_hat = number("worst_r_hat"),
                       .least_effective = number("least_effective"),
                       .seconds = number("seconds"),
                       .divergent = static_cast<std::int64_t>(number("divergent"))});
  }
  return windows;
}

std::string line_of(const WindowResult& w) {
  nlohmann::json row;
  const double values[] = {static_cast<double>(w.first),
                           w.log_likelihood,
                           w.floor,
                           w.ceiling,
                           w.acceptance,
                           w.worst_r_hat,
                           w.least_effective,
                           static_cast<double>(w.divergent),
                           w.seconds};
  for (std::size_t k = 0; k < columns().size(); ++k)
    if (std::isfinite(values[k])) row[columns()[k]] = values[k];
  return row.dump();
}

// One run over all windows.
class Sliding {
 public:
  Sliding(const SampleSettings& settings, std::filesystem::path out, ThreadPool& pool, const Tell& tell)
      : settings_(settings), out_(std::move(out)), pool_(pool), tell_(tell) {}

  std::vector<WindowResult> run() {
    if (!out_.empty()) done_ = read_windows(record());
    if (done_.size() > static_cast<std::size_t>(settings_.windows.count))
      done_.resize(static_cast<std::size_t>(settings_.windows.count));
    Progress progress("windows", static_cast<double>(settings_.windows.count), "windows",
                      static_cast<double>(done_.size()));
    const Stopwatch watch;
    const std::size_t before = done_.size();
    while (static_cast<std::int64_t>(done_.size()) < settings_.windows.count) {
      sample_next();
      progress.update(static_cast<double>(done_.size()),
                      fmt::format("{:.4f} nat", done_.back().log_likelihood));
      const std::size_t made = done_.size() - before;
      if (made == 2 && tell_)  // the first has the long warm-up
        tell_(fmt::format("a window takes {}: {} more about {}", format_seconds(done_.back().seconds),
                          settings_.windows.count - static_cast<std::int64_t>(done_.size()),
                          format_seconds(done_.back().seconds *
                                         static_cast<double>(settings_.windows.count -
                                                             static_cast<std::int64_t>(done_.size())))));
    }
    return done_;
  }

 private:
  std::filesystem::path record() const { return out_ / "windows.jsonl"; }
  std::filesystem::path folder(std::size_t window) const {
    return out_.empty() ? out_ : out_ / fmt::format("window-{:04}", window);
  }

  Model model_of(std::size_t window) const {
    TrainSettings settings = settings_.model;
    settings.model_options.push_back(
        fmt::format("first={}", static_cast<std::int64_t>(window) * settings_.windows.stride));
    settings.model_options.push_back(fmt::format("ahead={}", settings_.windows.stride));
    return Model(settings);
  }

  void sample_next() {
    const std::size_t window = done_.size();
    const Stopwatch watch;
    const Model model = model_of(window);
    TaskSettings samples = task_settings_of(settings_.model, pool_);
    samples.model_options = model.settings().model_options;
    const auto task = model.open_task(samples);
    const Posterior posterior(model, settings_.prior, settings_.noise);
    const auto data = posterior.data(*task, settings_.windows.stride);
    keep_config(out_, settings_);
    const std::string method = settings_.methods[0];
    ChainJob job{.posterior = posterior,
                 .data = data,
                 .task = *task,
                 .settings = chain_settings(settings_, method),
                 .chains = settings_.chains,
                 .draws = settings_.draws,
                 .folder = folder(window),
                 .checkpoint_seconds = settings_.checkpoint_seconds,
                 .starts = {},
                 .label = {},
                 .tell = window == 0 ? tell_ : Tell()};
    // Streams of a window are its own.
    job.settings.seed += window << 20;
    if (window > 0) begin_where_the_last_ended(job, window);
    if (!job.folder.empty()) make_folder(job.folder);
    const std::vector<ChainRecord> records = sample_chains(job, pool_);
    const MethodSummary summary = summarise(method, job.settings, posterior, *data, records, pool_);
    keep(window, *task, *data, summary, watch.seconds());
    last_.clear();
    for (const ChainRecord& each : records) last_.push_back(start_behind(each));
  }

  // The warm-up begins anew, for the step alone: variances out of a few dozen iterations made one that the
  // handful left behind them could not learn.
  void begin_where_the_last_ended(ChainJob& job, std::size_t window) {
    if (last_.empty())
      for (int c = 0; c < settings_.chains; ++c) {
        const auto before = read_chain(chain_file(folder(window - 1), c), job.posterior, *job.data);
        if (!before)
          throw Error(ErrorCode::not_found, "the chains of the last window are not there",
                      folder(window - 1).string(), "begin anew in another --out");
        last_.push_back(start_behind(*before));
      }
    job.settings.warm_up = settings_.windows.warm_up;
    job.settings.learn_variances = false;
    job.starts = last_;
  }

  // The line last: what it says is there.
  void keep(std::size_t window, const Task& task, const PosteriorData& data, const MethodSummary& summary,
            double seconds) {
    const workload::ForecastReferences others = task.forecast_references(data.held_out_indices);
    done_.push_back({.first = static_cast<std::int64_t>(window) * settings_.windows.stride,
                     .log_likelihood = summary.log_likelihood - others.log_unit,
                     .floor = others.floor ? others.floor->value - others.log_unit : nothing,
                     .ceiling = others.ceiling ? others.ceiling->value - others.log_unit : nothing,
                     .acceptance = summary.acceptance,
                     .worst_r_hat = summary.of_predictions.worst_r_hat,
                     .least_effective = summary.of_predictions.least_bulk,
                     .seconds = seconds,
                     .divergent = summary.divergent});
    if (out_.empty() || communicator().rank() > 0) return;
    const HoldEnd until_it_is_written;
    append_line(record(), line_of(done_.back()));
    if (window > 0) std::filesystem::remove_all(folder(window - 1));  // draws of one window are kept
  }

  const SampleSettings& settings_;
  std::filesystem::path out_;
  ThreadPool& pool_;
  const Tell& tell_;
  std::vector<WindowResult> done_;
  std::vector<sampling::ChainState> last_;  // where the chains of the next window begin
};

}  // namespace

std::vector<WindowResult> sample_windows(const SampleSettings& settings, const std::filesystem::path& out,
                                         ThreadPool& pool, const Tell& tell) {
  const auto& options = Model(settings.model).workload().options;
  if (std::ranges::none_of(options, [](const OptionSpec& option) { return option.name == "first"; }))
    throw Error(ErrorCode::unsupported, "its samples are no series that a window slides over",
                settings.model.workload, "'mcmc' is one");
  return Sliding(settings, out, pool, tell).run();
}

}  // namespace superstep::run
