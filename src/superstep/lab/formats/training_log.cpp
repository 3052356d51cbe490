#include "superstep/lab/formats/training_log.h"

#include <chrono>
#include <cmath>

#include "superstep/base/file.h"
#include "superstep/lab/compare/compare.h"
#include "superstep/record/environment.h"

namespace superstep::lab {
namespace {

using Json = MlLog::Json;

std::int64_t now() {
  using std::chrono::system_clock;
  return duration_cast<std::chrono::milliseconds>(system_clock::now().time_since_epoch()).count();
}

std::string platform() {
  const auto environment = record::environment_record(1);
  const auto& processor = environment["host"]["processor"];
  return processor.is_string() ? processor.get<std::string>() : "not known";
}

Json at_epoch(std::int64_t epoch) { return {{"epoch_num", epoch}}; }

}  // namespace

TrainingLog::TrainingLog(std::filesystem::path file, const std::string& workload, int ranks)
    : file_(std::move(file)) {
  write_file_atomically(file_, "");
  log_.point(now(), "cache_clear", false, {{"note", "the page cache is left as it was found"}});
  log_.start(now(), "init_start");
  log_.point(now(), "submission_benchmark", workload);
  log_.point(now(), "submission_org", "none: not submitted");
  log_.point(now(), "submission_division", "open");
  log_.point(now(), "submission_status", "research");
  log_.point(now(), "submission_platform", platform());
  log_.point(now(), "number_of_nodes", ranks);
  log_.point(now(), "accelerators_per_node", 0);
  write();
}

TrainingLog::~TrainingLog() {
  try {
    if (running_) stop("aborted");
  } catch (const Error&) {  // the file cannot be written: what went before has been reported
  }
}

void TrainingLog::data_touched(const run::TrainSettings& settings, const run::Schedule& schedule) {
  log_.point(now(), "seed", settings.seed);
  log_.point(now(), "global_batch_size", settings.batch);
  log_.point(now(), "opt_name", settings.optimizer.substr(0, settings.optimizer.find(':')));
  log_.point(now(), "opt_base_learning_rate", schedule.peak);
  log_.end(now(), "init_stop");
  log_.start(now(), "run_start");
  running_ = true;
  write();
}

void TrainingLog::begun(const run::TrainBeginning& beginning) {
  log_.point(now(), "train_samples", beginning.training_samples);
  log_.point(now(), "eval_samples", beginning.validation_samples);
  log_.point(now(), "gradient_accumulation_steps", beginning.micro_batches);
  log_.point(now(), "opt_learning_rate_warmup_steps", beginning.warm_up_steps);
  write();
}

void TrainingLog::epoch_begun(std::int64_t epoch) {
  log_.start(now(), "epoch_start", nullptr, at_epoch(epoch));
  write();
}

void TrainingLog::epoch_ended(std::int64_t epoch, double samples_a_second) {
  log_.end(now(), "epoch_stop", nullptr, at_epoch(epoch));
  log_.point(now(), "tracked_stats", {{"throughput", samples_a_second}}, at_epoch(epoch));
  write();
}

void TrainingLog::evaluation_begun(std::int64_t epoch) {
  log_.start(now(), "eval_start", nullptr, at_epoch(epoch));
  write();
}

// The rules know an accuracy, which grows, and an error, which falls; the metric's own name stands beside.
void TrainingLog::evaluation_ended(std::int64_t epoch, const std::vector<Metric>& metrics) {
  if (!metrics.empty()) {
    const Metric& metric = metrics.front();
    const char* key = higher_is_better(metric.name, metric.unit) ? "eval_accuracy" : "eval_error";
    const Json value = std::isfinite(metric.value) ? Json(metric.value) : Json(nullptr);
    log_.point(now(), key, value, {{"epoch_num", epoch}, {"metric", metric.name}, {"unit", metric.unit}});
  }
  log_.end(now(), "eval_stop", nullptr, at_epoch(epoch));
  write();
}

void TrainingLog::finished() { stop("success"); }

void TrainingLog::stop(const char* status) {
  running_ = false;
  log_.end(now(), "run_stop", nullptr, {{"status", status}});
  write();
}

void TrainingLog::write() {
  const std::string& text = log_.text();
  // Every line ends itself; the file's own line end is left to append_line.
  append_line(file_, std::string_view(text).substr(written_, text.size() - written_ - 1));
  written_ = text.size();
}

}  // namespace superstep::lab
