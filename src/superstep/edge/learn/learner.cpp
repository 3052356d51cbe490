#include "superstep/edge/learn/learner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/file.h"
#include "superstep/base/random.h"
#include "superstep/base/statistics.h"
#include "superstep/base/system/own_threads.h"
#include "superstep/edge/learn/child.h"
#include "superstep/run/serve/infer.h"

namespace superstep::edge {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr double level_of_drift = 0.001;
constexpr double worse_on_regression = 1.02;
constexpr std::size_t most_reference = 2000;
constexpr std::uint64_t every_shadowed = 20;  // 5 % of live frames
constexpr double patience_for_labels = 600;   // s

std::vector<LearnSample> samples_of(const LearnScan& scan, std::optional<bool> held_out = std::nullopt) {
  std::vector<LearnSample> samples;
  for (std::size_t i = 0; i < scan.size(); ++i)
    if (!held_out || scan.is_held_out(i) == *held_out) samples.push_back({&scan, i});
  return samples;
}

void shuffle(std::vector<LearnSample>& samples, RandomStream& random) {
  for (std::size_t i = samples.size(); i > 1; --i) std::swap(samples[i - 1], samples[random.below(i)]);
}

std::vector<FrameFeatures> features_of_scan(const LearnScan& scan) {
  std::vector<FrameFeatures> features;
  const std::size_t every = std::max<std::size_t>(1, scan.size() / most_reference);
  for (std::size_t i = 0; i < scan.size(); i += every)
    features.push_back(features_of(scan.pattern(i), scan.window));
  return features;
}

bool is_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

}  // namespace

Learner::Learner(LearnSettings settings, ModelService& service)
    : settings_(std::move(settings)),
      service_(service),
      versions_(settings_.folder),
      first_run_(service.source().what),
      present_run_(first_run_) {
  if (!fs::is_regular_file(fs::path(present_run_) / "config.json"))
    throw Error(ErrorCode::unsupported, "learning begins with a run's folder", present_run_,
                "superstep train ptychonn-128 --out run makes one");
  const run::Weights weights = run::load_weights(present_run_);
  workload_ = weights.settings.workload;
  options_ = weights.settings.model_options;
  const bool plain = std::ranges::find(options_, "counts=plain") != options_.end();
  if (workload_ != "ptychonn-128" || plain)
    throw Error(ErrorCode::unsupported, "labels are made for ptychonn-128 with counts=log alone", workload_);
  make_folder(settings_.folder / "versions");
  make_folder(settings_.folder / "scans");
  present_ = compiled(present_run_);
  if (!settings_.regression.empty()) regression_ = read_labelled(settings_.regression, 2000);
  worker_ = start_thread([this] { work(); });
}

Learner::~Learner() { stop(); }

void Learner::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (worker_.joinable()) worker_.join();
}

std::shared_ptr<Version> Learner::compiled(const std::string& run) const {
  const target::Target& target = target::find_target(service_.settings().target);
  return std::make_shared<Version>(
      read_blueprint({.what = run}, target), target,
      VersionSettings{.max_batch = service_.settings().batcher.max_batch, .workers = 1, .threads = 1});
}

// --- what the stream tells

void Learner::on_frame(const Frame& frame, std::span<const float> pixels) {
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<LearnScan>& scan = open_[frame.series];
  if (!scan)
    scan = std::make_shared<LearnScan>(LearnScan{.name = frame.series, .window = frame.extents.back()});
  const auto take = [&](LearnScan& into) {
    into.numbers.push_back(frame.number);
    into.patterns.insert(into.patterns.end(), pixels.begin(), pixels.end());
    into.positions.push_back(frame.position.value_or(std::pair(0.0, 0.0)));
  };
  if (shadowed_ && ++passed_ % every_shadowed == 0 &&
      shadowed_->size() < static_cast<std::size_t>(settings_.shadow_frames)) {
    take(*shadowed_);
    wake_.notify_all();
  }
  // Without a position a pattern is no part of a reconstruction.
  if (frame.position && scan->bytes() < settings_.buffer_bytes / 4) take(*scan);
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
      note({{"event", "failed"}, {"scan", scan->name}, {"why", error.what()}});
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
  if (!label(*scan)) return;
  const std::vector<LearnSample> all = samples_of(*scan);
  const std::vector<double> errors = phase_errors(answers_to(*present_, all), all, settings_.crop);
  take_back_if_worse(*scan, all, errors);
  const bool wanted = should_learn(*scan, errors);
  std::optional<Candidate> candidate;
  if (wanted) candidate = train(*scan);
  if (candidate && passes_gate(*scan, *candidate)) publish(*scan, *candidate, shadow(*candidate));
  remember(scan);
}

bool Learner::label(LearnScan& scan) {
  now("labels");
  const fs::path work = settings_.folder / "work";
  write_measurement(work / "scan.h5", scan, probe_);
  const ChildOutcome outcome = run_child(
      {settings_.program.string(), "baseline", workload_, "--input", (work / "scan.h5").string(), "--output",
       (work / "object.h5").string(), "--set", fmt::format("pixel={}", settings_.pixel * 1e9), "--set",
       fmt::format("passes={}", settings_.passes), "--threads", std::to_string(settings_.threads), "--quiet"},
      work / "label.log", patience_for_labels, [this] { return is_busy(); }, [this] { return stopping(); });
  if (!outcome.done) throw Error(ErrorCode::io, "labels: " + outcome.why);
  Reconstruction found = read_reconstruction(work / "object.h5", scan, settings_.pixel);
  scan.labels = std::move(found.labels);
  scan.method = fmt::format("rPIE, {} passes", settings_.passes);
  if (!is_finite(scan.labels)) throw Error(ErrorCode::bad_file, "labels: the reconstruction is not finite");
  probe_ = found.probe;
  const std::vector<LearnSample> all = samples_of(scan);
  turn(scan, turn_between(answers_to(*present_, all), scan, settings_.crop));
  note({{"event", "labelled"},
        {"scan", scan.name},
        {"frames", scan.size()},
        {"method", scan.method},
        {"fourier_error", found.error},
        {"took", outcome.seconds}});
  return true;
}

bool Learner::should_learn(const LearnScan& scan, std::span<const double> errors) {
  const std::vector<FrameFeatures> features = features_of_scan(scan);
  if (reference_.empty() && regression_) reference_ = features_of_scan(*regression_);
  if (reference_.empty()) reference_ = features;
  const InputDrift drift = input_drift(reference_, features, level_of_drift);
  bool by_labels = false;
  constexpr std::size_t window = 50;  // errors are means of so many
  for (std::size_t first = 0; first + window <= errors.size(); first += window)
    by_labels = error_trend_.add(mean(errors.subspan(first, window))) || by_labels;
  json event{{"event", "looked"},
             {"scan", scan.name},
             {"error", mean(errors)},
             {"version", present_->id()},
             {"inputs", drift.found},
             {"labels", by_labels},
             {"trend", error_trend_.statistic()}};
  std::map<std::string, double> signs{{"errors", error_trend_.statistic()}};
  for (std::size_t i = 0; i < frame_features; ++i)
    event["probability"][name_of_feature(i)] = signs[name_of_feature(i)] = drift.features[i].probability;
  note(std::move(event));
  const std::scoped_lock lock(mutex_);
  state_.drift = std::move(signs);
  const bool asked = std::exchange(asked_, false);
  return settings_.each_scan || by_labels || asked;
}

// The version before stays loaded until the next scan has shown which of the two is better.
void Learner::take_back_if_worse(const LearnScan& scan, std::span<const LearnSample> all,
                                 std::span<const double> errors) {
  if (!former_) return;
  const std::vector<double> before = phase_errors(answers_to(*former_, all), all, settings_.crop);
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
    present_run_ = versions_.present().value_or(first_run_);
    const std::scoped_lock lock(mutex_);
    ++state_.counts.rolled_back;
  }
  former_ = nullptr;
}

// Half of the newest scan's kind, half of everything before, drawn evenly by scan.
std::vector<LearnSample> Learner::training_samples(const LearnScan& scan) {
  std::vector<LearnSample> samples = samples_of(scan, false);
  RandomStream random(settings_.seed, cycle_);
  std::vector<std::vector<LearnSample>> others;
  for (const auto& one : earlier_) others.push_back(samples_of(*one, false));
  if (regression_) others.push_back(samples_of(*regression_, false));
  const std::size_t share = others.empty() ? 0 : samples.size() / others.size();
  for (std::vector<LearnSample>& other : others) {
    shuffle(other, random);
    samples.insert(samples.end(), other.begin(),
                   other.begin() + static_cast<std::ptrdiff_t>(std::min(share, other.size())));
  }
  shuffle(samples, random);
  return samples;
}

std::optional<Learner::Candidate> Learner::train(const LearnScan& scan) {
  now("trains");
  const fs::path work = settings_.folder / "work", run = work / "run";
  const std::vector<LearnSample> samples = training_samples(scan);
  write_training(work / "train.h5", samples);
  std::vector<std::string> command{settings_.program.string(), "train", workload_};
  for (const std::string& option : options_) command.insert(command.end(), {"--set", option});
  command.insert(
      command.end(),
      {"--data", (work / "train.h5").string(), "--weights", present_run_, "--out", run.string(), "--epochs",
       std::to_string(settings_.epochs), "--batch", std::to_string(settings_.batch), "--learning-rate",
       fmt::format("{}", settings_.learning_rate), "--threads", std::to_string(settings_.threads), "--seed",
       std::to_string(settings_.seed + cycle_), "--quiet"});
  const ChildOutcome outcome = run_child(
      command, work / "train.log", settings_.budget, [this] { return is_busy(); },
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
  const std::vector<float> answers = answers_to(*candidate.version, held_out);
  const std::vector<double> before = phase_errors(answers_to(*present_, held_out), held_out, settings_.crop),
                            after = phase_errors(answers, held_out, settings_.crop);
  const double gain = lower_bound_of_gain(before, after, settings_.seed + cycle_);
  bool good = is_finite(answers) && gain > 0;
  candidate.gate = {{"held_out", held_out.size()}, {"gain_at_least", gain}};
  if (!held_out.empty())  // else nothing can be gained
    candidate.gate.update({{"error_before", mean(before)}, {"error_after", mean(after)}});
  std::vector<LearnSample> old;
  for (const auto& one : earlier_)
    for (const LearnSample& sample : samples_of(*one, true)) old.push_back(sample);
  if (regression_)
    for (const LearnSample& sample : samples_of(*regression_, true)) old.push_back(sample);
  if (!old.empty()) {
    const double was = mean(phase_errors(answers_to(*present_, old), old, settings_.crop)),
                 is = mean(phase_errors(answers_to(*candidate.version, old), old, settings_.crop));
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
json Learner::shadow(Candidate& candidate) {
  now("shadows");
  LearnScan seen;
  {
    std::unique_lock lock(mutex_);
    shadowed_ = std::make_shared<LearnScan>();
    shadowed_->window =
        static_cast<std::int64_t>(candidate.version->ports().inputs[0].shape.extents().back());
    passed_ = 0;
    wake_.wait_for(lock, std::chrono::duration<double>(settings_.shadow_seconds), [&] {
      return stopping_ || shadowed_->size() >= static_cast<std::size_t>(settings_.shadow_frames);
    });
    seen = *std::exchange(shadowed_, nullptr);
  }
  if (seen.size() == 0) return {{"frames", 0}};
  const std::vector<LearnSample> samples = samples_of(seen);
  seen.labels = answers_to(*present_, samples);
  const std::vector<float> answers = answers_to(*candidate.version, samples);
  if (!is_finite(answers)) throw Error(ErrorCode::bad_file, "the new version's answers are not finite");
  return {{"frames", seen.size()}, {"apart", mean(phase_errors(answers, samples, settings_.crop))}};
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
                                          {"earlier_scans", earlier_.size() + (regression_ ? 1 : 0)},
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
  error_trend_.forget();
  reference_ = features_of_scan(scan);
  const std::scoped_lock lock(mutex_);
  ++state_.counts.swapped;
}

void Learner::remember(const std::shared_ptr<LearnScan>& scan) {
  write_labelled(settings_.folder / "scans" / (scan->name + ".h5"), *scan);
  earlier_.push_back(scan);
  std::size_t bytes = 0;
  for (const auto& one : earlier_) bytes += one->bytes();
  while (bytes > settings_.buffer_bytes && earlier_.size() > 1) {
    // Any but the newest: who stays is drawn.
    RandomStream random(settings_.seed, cycle_, 1);
    const auto gone = earlier_.begin() + static_cast<std::ptrdiff_t>(random.below(earlier_.size() - 1));
    bytes -= (*gone)->bytes();
    fs::remove(settings_.folder / "scans" / ((*gone)->name + ".h5"));
    earlier_.erase(gone);
  }
}

}  // namespace superstep::edge
