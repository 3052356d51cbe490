#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <span>

#include "superstep/base/encoding/sha256.h"
#include "superstep/base/file.h"
#include "superstep/record/member.h"
#include "superstep/run/trackers/tracker.h"

namespace superstep::run {
namespace {

// Words of MLflow's store: RunStatus of its service.proto, and SourceType LOCAL.
int status_of(RunStatus status) {
  return status == RunStatus::running    ? 1
         : status == RunStatus::finished ? 3
                                         : 5;  // RUNNING, FINISHED, KILLED
}
constexpr int local_source = 4;

std::int64_t milliseconds(double seconds) { return std::llround(seconds * 1000); }

// As YAML has a text whatever is in it: in single quotes, which are doubled.
std::string quoted(const std::string& text) {
  std::string inner;
  for (const char c : text) inner += c == '\'' ? std::string("''") : std::string(1, c == '\n' ? ' ' : c);
  return "'" + inner + "'";
}

// Names of files: MLflow allows letters, digits, _ - . and blanks.
std::string file_name(const std::string& name) {
  std::string kept = name;
  for (char& c : kept)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-' && c != '.') c = '_';
  return kept;
}

std::string digest_of(const std::string& text) {
  Sha256 digest;
  digest.add(std::as_bytes(std::span(text)));
  return digest.hexadecimal();
}

class MlFlow : public Tracker {
 public:
  explicit MlFlow(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void write(const RunStory& story) override {
    const std::filesystem::path experiment = experiment_of(story), run = experiment / run_id(story);
    if (!begun_) {
      for (const char* part : {"metrics", "params", "tags", "artifacts"}) make_folder(run / part);
      write_settings(story, run);
      begun_ = true;
    }
    write_metrics(story, run);
    write_run(story, run, experiment.filename().string());
  }

 private:
  // MLflow knows experiments by numbers: the same one for a workload, whichever run makes it.
  std::filesystem::path experiment_of(const RunStory& story) const {
    const std::string workload = record::text_member(story.config, "workload", "run");
    const std::string id = fmt::format("{}", 1 + std::stoull(digest_of(workload).substr(0, 12), nullptr, 16));
    const std::filesystem::path experiment = folder_ / id;
    if (std::filesystem::exists(experiment / "meta.yaml")) return experiment;
    make_folder(experiment);
    const std::int64_t now = milliseconds(story.began);
    write_file_atomically(experiment / "meta.yaml",
                          fmt::format("artifact_location: {}\ncreation_time: {}\nexperiment_id: '{}'\n"
                                      "last_update_time: {}\nlifecycle_stage: active\nname: {}\n",
                                      quoted(uri(experiment)), now, id, now, quoted(workload)));
    return experiment;
  }

  static std::string uri(const std::filesystem::path& path) {
    return "file://" + std::filesystem::absolute(path).lexically_normal().string();
  }

  static std::string run_id(const RunStory& story) {
    const std::filesystem::path parent =
        std::filesystem::absolute(story.folder / "config.json").parent_path();
    const std::string place = parent.lexically_normal().string();
    return digest_of(fmt::format("{} {:.0f}", place, story.began)).substr(0, 32);
  }

  static void write_settings(const RunStory& story, const std::filesystem::path& run) {
    for (const auto& [name, value] : story.config.items()) {
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      if (!text.empty() && text != "[]" && text != "null")
        write_file_atomically(run / "params" / file_name(name), text);
    }
    write_file_atomically(run / "tags" / "mlflow.runName", story.name);
    write_file_atomically(run / "tags" / "mlflow.source.name", std::string_view("superstep"));
  }

  static void write_metrics(const RunStory& story, const std::filesystem::path& run) {
    std::map<std::string, std::string> lines;
    for (const LoggedEpoch& epoch : story.epochs)
      for (const auto& [name, value] : epoch.values)
        lines[file_name(name)] +=
            fmt::format("{} {} {}\n", milliseconds(story.began + epoch.seconds), value, epoch.step);
    for (const auto& [name, text] : lines) write_file_atomically(run / "metrics" / name, text);
  }

  static void write_run(const RunStory& story, const std::filesystem::path& run,
                        const std::string& experiment) {
    const double last = story.epochs.empty() ? 0 : story.epochs.back().seconds;
    const std::string end =
        story.status == RunStatus::running ? "null" : fmt::format("{}", milliseconds(story.began + last));
    write_file_atomically(
        run / "meta.yaml",
        fmt::format(
            "artifact_uri: {}\nend_time: {}\nentry_point_name: ''\nexperiment_id: '{}'\n"
            "lifecycle_stage: active\nrun_id: {}\nrun_name: {}\nrun_uuid: {}\nsource_name: ''\n"
            "source_type: {}\nsource_version: ''\nstart_time: {}\nstatus: {}\ntags: []\nuser_id: ''\n",
            quoted(uri(run / "artifacts")), end, experiment, run_id(story), quoted(story.name), run_id(story),
            local_source, milliseconds(story.began), status_of(story.status)));
  }

  std::filesystem::path folder_;
  bool begun_ = false;
};

}  // namespace

std::unique_ptr<Tracker> mlflow_tracker(std::filesystem::path folder) {
  return std::make_unique<MlFlow>(std::move(folder));
}

}  // namespace superstep::run
