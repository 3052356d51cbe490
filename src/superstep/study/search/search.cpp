#include "superstep/study/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/folder_lock.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/study/search/training.h"

namespace superstep::study {
namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "search.db";

// What a search is. How many trials it has, and how long a call takes, may change from call to call.
SearchIdentity identity_of(const SearchSettings& settings) {
  std::vector<std::string> ranges;
  for (const Parameter& parameter : settings.parameters)
    ranges.push_back(parameter.name + "=" + range_words(parameter));
  const std::string until =
      settings.until ? fmt::format("{}={}", settings.until->metric, settings.until->value) : "";
  return {.name = settings.workload,
          .what = {{"what is trained", settings.workload},
                   {"options", join(settings.base, " ")},
                   {"--set", join(ranges, "; ")},
                   {"--metric", settings.metric},
                   {"--until", until},
                   {"--epochs", fmt::format("{}", settings.epochs)},
                   {"epochs of the rungs", fmt::format("{}", fmt::join(settings.halving.epochs, ", "))},
                   {"--keep-one-in", fmt::format("{}", settings.halving.keep_one_in)},
                   {"--seed", fmt::format("{}", settings.seed)}},
          .higher_is_better = settings.higher_is_better,
          .parameters = settings.parameters.size(),
          .rungs = settings.halving.epochs.size()};
}

void claim(const fs::path& folder) {
  require_writable_folder(folder);
  make_folder(folder);
  if (fs::exists(folder / file_name)) return;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(file_name) && name != "trials")
      throw Error(ErrorCode::invalid_argument, "holds other things than a search", folder.string(),
                  "give --out a folder of its own");
  }
}

// The lock of a trial's folder; null where another process has it.
std::unique_ptr<FolderLock> lock_of(const fs::path& folder) {
  make_folder(folder);
  try {
    return std::make_unique<FolderLock>(folder);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::io && error.message().starts_with("is being written to")) return nullptr;
    throw;
  }
}

// Asks the program to stop, as a user would, when the time of the call is over.
class Deadline {
 public:
  explicit Deadline(double minutes) {
    if (minutes <= 0) return;
    constexpr double seconds_a_minute = 60;
    thread_ = std::thread([this, end = std::chrono::steady_clock::now() +
                                       std::chrono::duration<double>(minutes * seconds_a_minute)] {
      std::unique_lock lock(mutex_);
      if (left_.wait_until(lock, end, [&] { return left_early_; })) return;
      over_ = true;
      request_interrupt();
    });
  }
  ~Deadline() {
    {
      const std::lock_guard lock(mutex_);
      left_early_ = true;
    }
    left_.notify_all();
    if (thread_.joinable()) thread_.join();
    if (over_) clear_interrupt();
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  bool over() {
    const std::lock_guard lock(mutex_);
    return over_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  std::thread thread_;
  bool left_early_ = false, over_ = false;
};

class Search {
 public:
  explicit Search(const SearchSettings& settings)
      : report_{.settings = settings, .trials = {}, .curves = {}, .best = {}},
        storage_((claim(settings.out), settings.out / file_name), identity_of(settings)) {}

  SearchReport run() {
    // What a call that is stopped has to leave in order is written by then.
    const HoldEnd until_it_is_written("the training saves its last step first");
    Deadline deadline(report_.settings.minutes);
    Progress progress("search", static_cast<double>(report_.settings.trials), "trials");
    try {
      while (step(progress)) {
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::interrupted || !deadline.over()) throw;
    }
    write();
    return report_;
  }

 private:
  enum class Left { work, others, nothing };

  // Does what is to be done next; false when nothing is.
  bool step(Progress& progress) {
    if (interrupted())
      throw Error(ErrorCode::interrupted, "between two trainings", report_.settings.out.string());
    Trial trial;
    const Left left = take(trial);
    count(progress);
    if (left == Left::nothing) return false;
    if (left == Left::others) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));  // chosen: a training takes longer
      return true;
    }
    train_to_rung(report_, trial);
    put_down(trial);
    lock_.reset();
    write();
    return true;
  }

  void count(Progress& progress) const {
    const auto begun = std::ranges::count_if(report_.trials, &Trial::over);
    progress.update(static_cast<double>(begun), best_words());
  }

  std::string best_words() const {
    const auto best = best_of(report_.trials);
    if (!best) return {};
    return fmt::format("best {} {:.4g}", report_.settings.metric, report_.trials[*best].qualities.back());
  }

  fs::path folder_of(std::int64_t number) const {
    return report_.run_of({.number = number, .values = {}, .qualities = {}, .words = {}}).parent_path();
  }

  bool claimed(std::int64_t number) {
    lock_ = lock_of(folder_of(number));
    return lock_ != nullptr;
  }

  // The next training, which is this process's from then on.
  Left take(Trial& trial) {
    record::Transaction alone = storage_.alone();
    report_.trials = storage_.trials();
    const Left left = chosen(trial);
    if (left == Left::work) storage_.update(trial, std::nullopt);
    alone.commit();
    return left;
  }

  Left chosen(Trial& trial) {
    const SearchSettings& settings = report_.settings;
    std::vector<Trial>& trials = report_.trials;
    for (Trial& each : trials)  // that a process was killed over
      if (each.state == TrialState::running && claimed(each.number)) return taken(trial, each);
    const bool running =
        std::ranges::any_of(trials, [](const Trial& each) { return each.state == TrialState::running; });
    if (reached()) return running ? Left::others : Left::nothing;
    refuse_if_all_fail();
    const std::vector<Standing> standings = standings_of(trials, settings.higher_is_better);
    if (const auto next = promoted(standings, settings.halving)) return promote(trial, *next);
    // What was queued is trained in any case: somebody asked for it.
    if (static_cast<std::int64_t>(trials.size()) < settings.trials || storage_.queued()) return begin(trial);
    if (running) return Left::others;
    if (const auto next = last_promoted(standings, settings.halving)) return promote(trial, *next);
    return Left::nothing;
  }

  static Left taken(Trial& trial, Trial& from) {
    from.state = TrialState::running;
    trial = from;
    return Left::work;
  }

  Left promote(Trial& trial, std::int64_t number) {
    Trial& next = *std::ranges::find(report_.trials, number, &Trial::number);
    if (!claimed(number)) return Left::others;
    ++next.rung;
    return taken(trial, next);
  }

  Left begin(Trial& trial) {
    trial = new_trial();
    report_.trials.push_back(trial);
    if (trial.over()) return Left::others;  // a queued one that was refused
    return claimed(trial.number) ? Left::work : Left::others;
  }

  std::string drawn_for(std::size_t parameter, std::int64_t number) const {
    return drawn(report_.settings.parameters[parameter], report_.settings.seed, number, parameter);
  }

  // What was queued first; a value that no trial could draw is refused.
  Trial new_trial() {
    const std::vector<Parameter>& parameters = report_.settings.parameters;
    const auto queued = storage_.queued();
    const std::int64_t number = queued ? queued->number : storage_.next_number();
    std::vector<std::string> values;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const bool fixed = queued && queued->values.contains(parameters[i].name);
      values.push_back(fixed ? queued->values.at(parameters[i].name) : drawn_for(i, number));
      if (fixed && !parameters[i].admits(values.back()))
        return refused(*queued, parameters[i].name + " " + values.back());
    }
    if (!queued) return storage_.add(parameters, std::move(values));
    for (const auto& [name, value] : queued->values)
      if (std::ranges::find(parameters, name, &Parameter::name) == parameters.end())
        return refused(*queued, name);
    return storage_.begin(*queued, parameters, std::move(values));
  }

  Trial refused(const SearchStorage::Queued& queued, const std::string& what) {
    const std::string words = fmt::format("was queued with {}, which is not searched", what);
    storage_.refuse(queued, report_.settings.parameters, words);
    return {
        .number = queued.number, .state = TrialState::failed, .values = {}, .qualities = {}, .words = words};
  }

  bool reached() const {
    return std::ranges::any_of(report_.trials,
                               [](const Trial& each) { return each.state == TrialState::reached; });
  }

  // What is wrong with the call as a whole would be wrong with all that follow.
  void refuse_if_all_fail() const {
    constexpr std::ptrdiff_t enough = 3;  // chosen: values that a model cannot have are not drawn so often
    const auto failed = [](const Trial& each) { return each.state == TrialState::failed; };
    if (std::ranges::count_if(report_.trials, failed) < enough ||
        !std::ranges::all_of(report_.trials, failed))
      return;
    throw Error(ErrorCode::io,
                fmt::format("the first {} trials failed, the first one so: {}", report_.trials.size(),
                            report_.trials.front().words),
                report_.settings.out.string(), "mend the call, and give --out a new folder");
  }

  void put_down(const Trial& trial) {
    const std::size_t rung = static_cast<std::size_t>(trial.rung);
    const bool said = trial.qualities.size() > rung;
    record::Transaction alone = storage_.alone();
    storage_.update(trial, said ? std::optional(report_.settings.halving.epochs[rung]) : std::nullopt);
    alone.commit();
  }

  // Of trials trained to the end the best, else the best of the highest rung.
  std::optional<std::size_t> best_of(const std::vector<Trial>& trials) const {
    std::optional<std::size_t> best;
    const auto rank = [&](const Trial& trial) {
      const bool whole = trial.state == TrialState::done || trial.state == TrialState::reached;
      const double quality = trial.qualities.back();
      return std::tuple(whole, whole ? 0 : trial.qualities.size(),
                        report_.settings.higher_is_better ? quality : -quality);
    };
    for (std::size_t i = 0; i < trials.size(); ++i) {
      if (trials[i].qualities.empty() || !std::isfinite(trials[i].qualities.back())) continue;
      if (!best || rank(trials[i]) > rank(trials[*best])) best = i;
    }
    return best;
  }

  // One process at a time, so that the last that is written is the newest.
  void write() {
    record::Transaction alone = storage_.alone();
    report_.trials = storage_.trials();
    report_.best = best_of(report_.trials);
    report_.over = is_over();
    report_.curves.clear();
    for (const Trial& trial : report_.trials)
      report_.curves.push_back(curve_of(report_.run_of(trial) / "metrics.jsonl", report_.settings.metric));
    const fs::path& out = report_.settings.out;
    if (report_.best) write_file_atomically(out / "best.toml", best_config());
    write_file_atomically(
        out / "results.json",
        json_of(report_).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    write_file_atomically(out / "index.html", page_of(report_));
    alone.commit();
  }

  bool is_over() {
    const std::vector<Trial>& trials = report_.trials;
    if (std::ranges::any_of(trials, [](const Trial& each) { return each.state == TrialState::running; }))
      return false;
    if (reached()) return true;
    const auto standings = standings_of(trials, report_.settings.higher_is_better);
    return static_cast<std::int64_t>(trials.size()) >= report_.settings.trials && !storage_.queued() &&
           !promoted(standings, report_.settings.halving) &&
           !last_promoted(standings, report_.settings.halving);
  }

  std::string best_config() const {
    const Trial& best = report_.trials[*report_.best];
    std::string text =
        fmt::format("# superstep train --config best.toml: trial {} of the search, {} {:.6g}\n", best.number,
                    report_.settings.metric, best.qualities.back());
    text += report_.settings.config_of(report_.words_of(best));
    return text + fmt::format("threads = {}\n", threads_of(report_, best));
  }

  SearchReport report_;
  SearchStorage storage_;
  std::unique_ptr<FolderLock> lock_;
};

}  // namespace

fs::path SearchReport::run_of(const Trial& trial) const {
  return settings.out / "trials" / fmt::format("{:04}", trial.number) / "run";
}

void SearchReport::require_best() const {
  if (!over || best || trials.empty()) return;
  throw Error(ErrorCode::io,
              fmt::format("no trial of {} came to a quality; trial {} {}: {}", trials.size(),
                          trials.front().number, name_of(trials.front().state), trials.front().words),
              settings.out.string(), "mend the call, and give --out a new folder");
}

std::vector<std::string> SearchReport::words_of(const Trial& trial) const {
  std::vector<std::string> words{"train", settings.workload};
  words.insert(words.end(), settings.base.begin(), settings.base.end());
  words.push_back(fmt::format("--epochs={:g}", settings.epochs));
  if (settings.until)
    words.push_back(fmt::format("--until={}={}", settings.until->metric, settings.until->value));
  for (std::size_t i = 0; i < settings.parameters.size(); ++i) {
    const Parameter& parameter = settings.parameters[i];
    words.push_back(parameter.of_model ? fmt::format("--set={}={}", parameter.name, trial.values[i])
                                       : fmt::format("--{}={}", parameter.name, trial.values[i]));
  }
  return words;
}

SearchReport search(const SearchSettings& settings) { return Search(settings).run(); }

}  // namespace superstep::study
