#include "superstep/edge/protocol/metrics.h"

#include <fmt/format.h>

namespace superstep::edge {
namespace {

// One family of samples: its head once, then a line a sample.
class Family {
 public:
  Family(std::string& text, std::string name, const char* kind, const char* help)
      : text_(text), name_(std::move(name)) {
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name_, help, name_, kind);
  }
  template <class Value>
  void add(const std::string& labels, Value value, const char* ending = "") {
    text_ += fmt::format("{}{}{{{}}} {}\n", name_, ending, labels, value);
  }

 private:
  std::string& text_;
  std::string name_;
};

std::string of(const std::string& model) { return fmt::format("model=\"{}\"", model); }

void add_histogram(Family& family, const std::string& labels, const Durations& times) {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < Durations::edges; ++i) {
    below += times.in(i);
    family.add(fmt::format("{},le=\"{:.6g}\"", labels, Durations::edge(i)), below, "_bucket");
  }
  family.add(labels + ",le=\"+Inf\"", times.count(), "_bucket");
  family.add(labels, static_cast<double>(times.nanoseconds()) * 1e-9, "_sum");
  family.add(labels, times.count(), "_count");
}

void add_tallies(Family& family, const Repository& repository, std::uint64_t Tally::*member) {
  for (const auto& [name, model] : repository.models()) {
    const Account account = model->batcher().account();
    for (const Outcome outcome : all_outcomes)
      family.add(fmt::format("{},outcome=\"{}\"", of(name), name_of(outcome)), account.of(outcome).*member);
  }
}

void add_counts(std::string& text, const Repository& repository) {
  Family received(text, "superstep_received_total", "counter", "requests that came");
  for (const auto& [name, model] : repository.models())
    received.add(of(name), model->batcher().account().received.requests);
  Family requests(text, "superstep_requests_total", "counter", "requests by what became of them");
  add_tallies(requests, repository, &Tally::requests);
  Family rows(text, "superstep_rows_total", "counter", "rows of requests by what became of them");
  add_tallies(rows, repository, &Tally::rows);
  Family queue(text, "superstep_queue_requests", "gauge", "requests that wait or are computed");
  for (const auto& [name, model] : repository.models()) {
    const Account account = model->batcher().account();
    queue.add(of(name) + ",state=\"waiting\"", account.waiting.requests);
    queue.add(of(name) + ",state=\"running\"", account.running.requests);
  }
}

void add_times(std::string& text, const Repository& repository) {
  Family seconds(text, "superstep_seconds", "histogram",
                 "of a request in the queue and in all, and of computing a batch");
  for (const auto& [name, model] : repository.models()) {
    const ServiceTimes times = model->batcher().times();
    add_histogram(seconds, of(name) + ",stage=\"queue\"", times.queue);
    add_histogram(seconds, of(name) + ",stage=\"compute\"", times.compute);
    add_histogram(seconds, of(name) + ",stage=\"total\"", times.total);
  }
  Family batches(text, "superstep_batches_total", "counter", "batches by their rows");
  for (const auto& [name, model] : repository.models())
    for (const auto& [rows, times] : model->batcher().times().by_rows)
      batches.add(fmt::format("{},rows=\"{}\"", of(name), rows), times.count());
}

void add_versions(std::string& text, const Repository& repository) {
  Family info(text, "superstep_model_info", "gauge", "1 for the version that answers");
  for (const auto& [name, model] : repository.models())
    if (const auto version = model->current())
      info.add(fmt::format("{},version=\"{}\"", of(name), version->id()), 1);
  Family not_finite(text, "superstep_not_finite_rows_total", "counter",
                    "rows with outputs that are NaN or infinite, because their inputs are or not");
  for (const auto& [name, model] : repository.models()) {
    not_finite.add(of(name) + ",inputs=\"finite\"", model->not_finite().outputs);
    not_finite.add(of(name) + ",inputs=\"not_finite\"", model->not_finite().inputs);
  }
  Family outside(text, "superstep_outside_training_rows_total", "counter",
                 "rows with inputs outside of the range that the training had");
  for (const auto& [name, model] : repository.models()) outside.add(of(name), model->outside_of_training());
  Family swaps(text, "superstep_model_swaps_total", "counter", "changes of the version that answers");
  for (const auto& [name, model] : repository.models()) {
    const ModelService::Swaps counts = model->swaps();
    swaps.add(of(name) + ",result=\"done\"", counts.done);
    swaps.add(of(name) + ",result=\"rolled_back\"", counts.rolled_back);
    swaps.add(of(name) + ",result=\"failed\"", counts.failed);
  }
}

void add_stream(std::string& text, const StreamAccount& account) {
  text +=
      "# HELP superstep_frames_received_total frames of the stream\n# TYPE superstep_frames_received_total "
      "counter\n";
  text += fmt::format("superstep_frames_received_total {}\n", account.received);
  Family frames(text, "superstep_frames_total", "counter", "frames by what became of them");
  for (const Outcome outcome : all_outcomes)
    if (outcome != Outcome::invalid)
      frames.add(fmt::format("outcome=\"{}\"", name_of(outcome)), account.of(outcome));
  frames.add("outcome=\"corrupt\"", account.corrupt);
  frames.add("outcome=\"unread\"", account.unread);
  frames.add("outcome=\"duplicate\"", account.duplicate);
  frames.add("outcome=\"unfitting\"", account.unfitting);
  frames.add("outcome=\"late\"", account.late);
  text += "# HELP superstep_frames_waiting frames not yet answered\n# TYPE superstep_frames_waiting gauge\n";
  text += fmt::format("superstep_frames_waiting {}\n", account.waiting);
  text +=
      "# HELP superstep_frames_missing_total of ended series\n# TYPE superstep_frames_missing_total "
      "counter\n";
  text += fmt::format("superstep_frames_missing_total {}\n", account.missing);
  text +=
      "# HELP superstep_unwritten_bytes of answers whose file finds no room\n# TYPE "
      "superstep_unwritten_bytes "
      "gauge\n";
  text += fmt::format("superstep_unwritten_bytes {}\n", account.unwritten_bytes);
  Family(text, "superstep_stream_connections_refused_total", "counter",
         "connections of streams without a key that is known")
      .add("", account.refused_connections);
}

void add_learning(std::string& text, const Learner::State& state) {
  Family doing(text, "superstep_learn_state", "gauge", "1 for what the learner does");
  for (const char* one : {"waits", "labels", "trains", "judges", "shadows", "failed"})
    doing.add(fmt::format("state=\"{}\"", one), state.doing == one ? 1 : 0);
  Family cycles(text, "superstep_learn_total", "counter", "scans, and what came of learning from them");
  const Learner::Counts& counts = state.counts;
  for (const auto& [name, count] : {std::pair("scans", counts.scans),
                                    {"trained", counts.trained},
                                    {"swapped", counts.swapped},
                                    {"rejected", counts.rejected},
                                    {"failed", counts.failed},
                                    {"rolled_back", counts.rolled_back}})
    cycles.add(fmt::format("result=\"{}\"", name), count);
  Family drift(
      text, "superstep_drift", "gauge",
      "of the last scan: probability that a feature is as it was; errors: how far their mean has risen");
  for (const auto& [name, value] : state.drift) drift.add(fmt::format("detector=\"{}\"", name), value);
}

// What came to the doors, and how each ended.
void add_doors(std::string& text, const Door& door) {
  const std::array doors{std::pair("http", door.http.account()), std::pair("grpc", door.grpc.account())};
  const auto of_door = [](const char* name) { return fmt::format("door=\"{}\"", name); };
  Family came(text, "superstep_door_total", "counter", "connections and requests that came");
  for (const auto& [name, account] : doors) {
    came.add(of_door(name) + ",what=\"connections\"", account.connections);
    came.add(of_door(name) + ",what=\"requests\"", account.requests);
  }
  Family open(text, "superstep_door_open", "gauge", "connections that are open, requests under way");
  for (const auto& [name, account] : doors) {
    open.add(of_door(name) + ",what=\"connections\"", account.open);
    open.add(of_door(name) + ",what=\"requests\"", account.under_way);
  }
  Family connections(text, "superstep_connections_total", "counter", "connections by how they ended");
  for (const auto& [name, account] : doors)
    for (const ConnectionEnd end : all_connection_ends)
      connections.add(fmt::format("{},end=\"{}\"", of_door(name), name_of(end)), account.of(end));
  Family requests(text, "superstep_door_requests_total", "counter",
                  "requests by how they ended and the status of their answer, 0: none");
  for (const auto& [name, account] : doors)
    for (const auto& [key, count] : account.request_ends)
      requests.add(fmt::format("{},end=\"{}\",status=\"{}\"", of_door(name), name_of(key.first), key.second),
                   count);
  Family lines(text, "superstep_log_lines_total", "counter", "lines of the logs that are not in them");
  lines.add("log=\"access\",why=\"rate\"", door.access.left_out());
  lines.add("log=\"access\",why=\"disk\"", door.access.lost());
  lines.add("log=\"audit\",why=\"disk\"", door.audit.lost());
}

}  // namespace

std::string metrics_text(const Repository& repository, const std::optional<StreamAccount>& stream,
                         const Learner* learner, const Door* door) {
  std::string text;
  Family ready(text, "superstep_ready", "gauge", "1 while requests are taken");
  text += fmt::format("superstep_ready {}\n", repository.is_ready() ? 1 : 0);
  add_counts(text, repository);
  add_times(text, repository);
  add_versions(text, repository);
  if (stream) add_stream(text, *stream);
  if (learner) add_learning(text, learner->state());
  if (door) add_doors(text, *door);
  return text;
}

}  // namespace superstep::edge
