#include "superstep/edge/learn/learner.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/file.h"
#include "superstep/base/statistics.h"
#include "superstep/base/system/stops_when.h"
#include "superstep/base/threads/own_threads.h"
#include "superstep/edge/learn/child.h"
#include "superstep/edge/learn/judge.h"
#include "superstep/run/serve/infer.h"

namespace superstep::edge {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr double worse_on_regression = 1.02;

}  // namespace

Learner::Learner(LearnSettings settings, ModelService& service)
    : settings_(std::move(settings)),
      service_(service),
      versions_(settings_.folder),
      first_run_(service.source().what),
      present_run_(first_run_),
      replay_(settings_.folder / "scans", settings_.buffer_bytes, settings_.seed) {
  if (!fs::is_regular_file(fs::path(present_run_) / "config.json"))
    throw Error(ErrorCode::unsupported, "learning begins with a run's folder", present_run_,
                "superstep train ptychonn-128 --out run makes one");
  const run::Weights weights = run::load_weights(present_run_);
  workload_ = weights.settings.workload;
  options_ = weights.settings.model_options;
  lesson_ = lesson_for(workload_, options_,
                       {.threads = settings_.threads,
                        .passes = settings_.passes,
                        .crop = settings_.crop,
                        .pixel = settings_.pixel,
                        .niceness = settings_.niceness,
                        .program = settings_.program});
  make_folder(settings_.folder / "versions");
  make_folder(settings_.folder / "scans");
  present_ = compiled(present_run_);
  constexpr std::int64_t most_of_regression = 2000;
  if (!settings_.regression.empty())
    regression_ = lesson_->read_labelled(settings_.regression, most_of_regression);
  replay_.read(*lesson_);
  worker_ = start_thread([this] { work(); });
}

Learner::~Learner() { stop(); }

void Learner::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  shadow_.stop();
  if (worker_.joinable()) worker_.join();
}

std::shared_ptr<Version> Learner::compiled(const std::string& run) const {
  const target::Target& target = target::find_target(service_.settings().target);
  const Blueprint blueprint = read_blueprint({.what = run}, target);
  auto version = std::make_shared<Version>(blueprint, target,
                                           VersionSettings{.max_batch = service_.settings().batcher.max_batch,
                                                           .workers = 1,
                                                           .threads = 1,
                                                           .row_by_row = service_.settings().row_by_row});
  version->widen(blueprint, target);
  return version;
}

// --- what the stream tells

// A frame may be several patterns.
void Learner::take(const Frame& frame, std::span<const float> pixels, LearnScan& into) const {
  const auto values = static_cast<std::size_t>(into.window * into.window);
  for (; pixels.size() >= values; pixels = pixels.subspan(values)) {
    into.numbers.push_back(frame.number);
    into.patterns.insert(into.patterns.end(), pixels.begin(),
                         pixels.begin() + static_cast<std::ptrdiff_t>(values));
    if (lesson_->needs_positions()) into.positions.push_back(*frame.position);
  }
}

void Learner::on_frame(const Frame& frame, std::span<const float> pixels) {
  const std::int64_t window = frame.extents.back();
  shadow_.see(frame.number, pixels.first(std::min(pixels.size(), static_cast<std::size_t>(window * window))));
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<LearnScan>& scan = open_[frame.series];
  if (!scan) scan = std::make_shared<LearnScan>(LearnScan{.name = frame.series, .window = window});
  const bool has_place = frame.position || !lesson_->needs_positions();
  if (has_place && scan->bytes() < settings_.buffer_bytes / 4) take(frame, pixels, *scan);
}

void Learner::on_end(const std::string& series) {
  {
    const std::scoped_lock lock(mutex_);
    const auto found = open_.find(series);
    if (found == open_.end()) return;
    ended_.push_back(found->second);
    open_.erase(found);
    while (ended_.size() > 2) ended_.pop_front();  // the newest matter
  }
  wake_.notify_all();
}

void Learner::request() {
  const std::scoped_lock lock(mutex_);
  asked_ = true;
}

bool Learner::stopping() const {
  const std::scoped_lock lock(mutex_);
  return stopping_;
}

bool Learner::is_busy() const {
  const Batcher& batcher = service_.batcher();
  return batcher.account().waiting.rows > static_cast<std::uint64_t>(batcher.settings().queue_rows) / 4;
}

Learner::State Learner::state() const {
  const std::scoped_lock lock(mutex_);
  return state_;
}

std::vector<json> Learner::events() const {
  const std::scoped_lock lock(mutex_);
  return events_;
}

bool Learner::wait_until_idle(double seconds) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, std::chrono::duration<double>(seconds),
                        [&] { return !working_ && ended_.empty(); });
}

void Learner::now(const char* doing) {
  const std::scoped_lock lock(mutex_);
  state_.doing = doing;
}

void Learner::note(json event) {
  event["seconds"] = since_start_.seconds();
  try {
    append_line(settings_.folder / "events.jsonl", event.dump());
  } catch (const Error&) {  // what happened is told all the same
  }
  const std::scoped_lock lock(mutex_);
  events_.push_back(std::move(event));
}

// --- the thread that learns

void Learner::work() {
  const StopsWhen not_wanted([this] { return stopping(); });
  for (;;) {
    std::shared_ptr<LearnScan> scan;
    {
      std::unique_lock lock(mutex_);
      working_ = false;
      if (state_.doing != "failed") state_.doing = "waits";
      idle_.notify_all();
      wake_.wait(lock, [&] { return stopping_ || !ended_.empty(); });
      if (stopping_) return;
      scan = ended_.front();
      ended_.pop_front();
      working_ = true;
      ++state_.counts.scans;
    }
    try {
      learn_from(scan);
    } catch (const std::exception& error) {
      note({{"event", "failed"},
            {"scan", scan->name},
            {"why", stopping() ? "the server ends" : error.what()}});
      const std::scoped_lock lock(mutex_);
      ++state_.counts.failed;
      state_.doing = "failed";
      state_.failure = error.what();
    }
    std::error_code ignored;
    fs::remove_all(settings_.folder / "work", ignored);
  }
}

void Learner::learn_from(const std::shared_ptr<LearnScan>& scan) {
  constexpr std::size_t fewest = 50;
  if (scan->size() < fewest) return note({{"event", "too few frames"}, {"scan", scan->name}});
  make_folder(settings_.folder / "work");
  ++cycle_;
  label(*scan);
  if (scan->size() < fewest) return note({{"event", "too few labels"}, {"scan", scan->name}});
  const std::vector<LearnSample> all = samples_of(*scan);
  std::vector<double> errors = errors_of(*present_, all);
  take_back_if_worse(*scan, all, errors);
  const bool wanted = should_learn(*scan, errors);
  std::optional<Candidate> candidate;
  if (wanted) candidate = train(*scan);
  if (candidate && passes_gate(*scan, *candidate))
    publish(*scan, *candidate, compare_on_live_frames(*candidate));
  replay_.add(scan, *lesson_, cycle_);
}

std::vector<double> Learner::errors_of(Version& version, std::span<const LearnSample> samples) const {
  return lesson_->errors(answers_to(version, samples, *lesson_), samples);
}

void Learner::label(LearnScan& scan) {
  now("labels");
  json facts = lesson_->label(scan, *present_,
                              {.work = settings_.folder / "work",
                               .should_pause = [this] { return is_busy(); },
                               .should_end = [this] { return stopping(); }});
  facts.update(
      {{"event", "labelled"}, {"scan", scan.name}, {"frames", scan.size()}, {"method", scan.method}});
  note(std::move(facts));
}

bool Learner::should_learn(const LearnScan& scan, std::span<const double> errors) {
  const DriftSigns::Seen seen = signs_.look(scan, errors, regression_ ? &*regression_ : nullptr);
  json event{{"event", "looked"},       {"scan", scan.name},         {"error", mean(errors)},
             {"unit", lesson_->unit()}, {"version", present_->id()}, {"inputs", seen.inputs},
             {"labels", seen.labels},   {"trend", seen.trend}};
  for (const auto& [name, value] : seen.values)
    if (name != "errors") event["probability"][name] = value;
  note(std::move(event));
  const std::scoped_lock lock(mutex_);
  state_.drift = seen.values;
  const bool asked = std::exchange(asked_, false);
  return settings_.each_scan || seen.labels || asked;
}

// The version before stays loaded until the next scan has shown which of the two is better.
void Learner::take_back_if_worse(const LearnScan& scan, std::span<const LearnSample> all,
                                 std::vector<double>& errors) {
  if (!former_) return;
  std::vector<double> before = errors_of(*former_, all);
  note({{"event", "compared"},
        {"scan", scan.name},
        {"error", mean(errors)},
        {"former_error", mean(before)},
        {"standard_error", standard_error_of_gain(errors, before)}});
  if (is_worse(errors, before)) {
    service_.roll_back();
    versions_.choose(former_->id());
    note({{"event", "rolled back"}, {"from", present_->id()}, {"to", former_->id()}});
    std::swap(present_, former_);
    errors = std::move(before);
    present_run_ = versions_.present().value_or(first_run_);
    const std::scoped_lock lock(mutex_);
    ++state_.counts.rolled_back;
  }
  former_ = nullptr;
}

std::optional<Learner::Candidate> Learner::train(const LearnScan& scan) {
  now("trains");
  const fs::path work = settings_.folder / "work", run = work / "run";
  const std::vector<LearnSample> samples =
      replay_.training_samples(scan, regression_ ? &*regression_ : nullptr, cycle_);
  lesson_->write_training(work / "train.h5", samples);
  std::vector<std::string> command{settings_.program.string(), "train", workload_};
  for (const std::string& option : options_) command.insert(command.end(), {"--set", option});
  command.insert(
      command.end(),
      {"--data", (work / "train.h5").string(), "--weights", present_run_, "--out", run.string(), "--epochs",
       std::to_string(settings_.epochs), "--batch", std::to_string(settings_.batch), "--learning-rate",
       fmt::format("{}", settings_.learning_rate), "--threads", std::to_string(settings_.threads), "--seed",
       std::to_string(settings_.seed + cycle_), "--quiet"});
  const ChildOutcome outcome = run_child(
      command, work / "train.log", {settings_.budget, settings_.niceness}, [this] { return is_busy(); },
      [this] { return stopping(); });
  if (!outcome.done) throw Error(ErrorCode::io, "training: " + outcome.why);
  Candidate candidate{.run = run, .version = compiled(run.string()), .gate = {}};
  note({{"event", "trained"},
        {"scan", scan.name},
        {"version", candidate.version->id()},
        {"samples", samples.size()},
        {"epochs", settings_.epochs},
        {"took", outcome.seconds},
        {"paused", outcome.paused}});
  const std::scoped_lock lock(mutex_);
  ++state_.counts.trained;
  return candidate;
}

bool Learner::passes_gate(const LearnScan& scan, Candidate& candidate) {
  now("judges");
  const std::vector<LearnSample> held_out = samples_of(scan, true);
  const std::vector<float> answers = answers_to(*candidate.version, held_out, *lesson_);
  const std::vector<double> before = errors_of(*present_, held_out),
                            after = lesson_->errors(answers, held_out);
  const double gain = lower_bound_of_gain(before, after, settings_.seed + cycle_);
  bool good = is_finite(answers) && gain > 0;
  candidate.gate = {{"held_out", held_out.size()}, {"gain_at_least", gain}};
  if (!held_out.empty())  // else nothing can be gained
    candidate.gate.update({{"error_before", mean(before)}, {"error_after", mean(after)}});
  std::vector<LearnSample> old = replay_.held_out();
  if (regression_)
    for (const LearnSample& sample : samples_of(*regression_, true)) old.push_back(sample);
  if (!old.empty()) {
    const double was = mean(errors_of(*present_, old)), is = mean(errors_of(*candidate.version, old));
    good = good && is <= worse_on_regression * was;
    candidate.gate["regression_before"] = was;
    candidate.gate["regression_after"] = is;
  }
  json event = candidate.gate;
  event["event"] = good ? "accepted" : "rejected";
  event["scan"] = scan.name;
  event["version"] = candidate.version->id();
  note(std::move(event));
  if (good) return true;
  const std::scoped_lock lock(mutex_);
  ++state_.counts.rejected;
  return false;
}

// A share of live frames through both, where frames come: how far the answers are apart is written down.
json Learner::compare_on_live_frames(Candidate& candidate) {
  now("shadows");
  const std::int64_t window = candidate.version->ports().inputs[0].shape.extents().back();
  LearnScan seen =
      shadow_.collect(window, static_cast<std::size_t>(settings_.shadow_frames), settings_.shadow_seconds);
  if (seen.size() == 0) return {{"frames", 0}};
  const std::vector<LearnSample> samples = samples_of(seen);
  seen.labels = answers_to(*present_, samples, *lesson_);
  const std::vector<float> answers = answers_to(*candidate.version, samples, *lesson_);
  if (!is_finite(answers)) throw Error(ErrorCode::bad_file, "the new version's answers are not finite");
  return {{"frames", seen.size()}, {"apart", mean(lesson_->errors(answers, samples))}};
}

void Learner::publish(const LearnScan& scan, Candidate& candidate, const json& shadow) {
  const std::string id = candidate.version->id();
  const std::string run = versions_.keep(id, candidate.run,
                                         {{"version", id},
                                          {"sha256", candidate.version->digest()},
                                          {"parent", present_->id()},
                                          {"scan", scan.name},
                                          {"labels", scan.method},
                                          {"frames", scan.size()},
                                          {"earlier_scans", replay_.size() + (regression_ ? 1 : 0)},
                                          {"epochs", settings_.epochs},
                                          {"batch", settings_.batch},
                                          {"learning_rate", settings_.learning_rate},
                                          {"seed", settings_.seed + cycle_},
                                          {"gate", candidate.gate},
                                          {"shadow", shadow}});
  if (!service_.replace({.what = run, .precision = service_.source().precision})) return;
  versions_.choose(id);
  note({{"event", "swapped"}, {"scan", scan.name}, {"from", present_->id()}, {"to", id}, {"shadow", shadow}});
  former_ = std::exchange(present_, candidate.version);
  present_run_ = run;
  signs_.begin_anew(scan);
  const std::scoped_lock lock(mutex_);
  ++state_.counts.swapped;
}

}  // namespace superstep::edge
