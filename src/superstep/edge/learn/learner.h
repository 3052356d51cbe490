// A model that learns while it serves. When a scan has ended, the conventional method labels it, the present
// weights are trained on it and on a share of what was before, in a process of its own; what comes out is
// served when it is better on points that nobody trained on, and taken back when it proves worse on the next
// scan.
//
// FOLDER/
//   versions/, current               what it made and which of it is served (versions.h)
//   scans/                           labelled scans, the newest within the bound of bytes
//   events.jsonl                     what happened, a line an event
//   work/                            of the cycle at hand
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "superstep/base/stopwatch.h"
#include "superstep/edge/learn/lesson.h"
#include "superstep/edge/learn/replay.h"
#include "superstep/edge/learn/shadow.h"
#include "superstep/edge/learn/signs.h"
#include "superstep/edge/learn/versions.h"
#include "superstep/edge/service/model_service.h"
#include "superstep/edge/stream/frame_listener.h"

namespace superstep::edge {

struct LearnSettings {
  std::filesystem::path folder;
  std::filesystem::path regression;  // labelled scan that a new version must not be worse on; empty: none
  bool each_scan = true;             // false: when errors against labels have risen, or somebody asks
  int epochs = 6, threads = 1, passes = 60;  // of training; of reconstruction
  std::int64_t batch = 16, crop = 12;
  double learning_rate = 1e-3, budget = 60;  // s of a training
  double pixel = 10e-9;                      // m
  std::size_t buffer_bytes = std::size_t{2} << 30;
  std::int64_t shadow_frames = 32;
  double shadow_seconds = 3;
  int niceness = 10;  // of processes that label and train: they give way to whoever serves
  std::uint64_t seed = 1;
  std::filesystem::path program = "/proc/self/exe";
};

class Learner : public FrameListener {
 public:
  // `service` serves a run's folder of a workload that lesson_for() knows, which is where learning begins.
  // Throws Error: unsupported, what reading the run and `regression` throws.
  Learner(LearnSettings settings, ModelService& service);
  ~Learner() override;
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;

  void on_frame(const Frame& frame, std::span<const float> pixels) override;
  void on_end(const std::string& series) override;
  void request();  // learn from the next scan, whatever the signs say

  struct Counts {
    std::uint64_t scans = 0, trained = 0, swapped = 0, rejected = 0, failed = 0, rolled_back = 0;
  };
  struct State {
    std::string doing = "waits";  // waits, labels, trains, judges, shadows, failed
    Counts counts;
    std::map<std::string, double> drift;  // of the last scan: probabilities, and the statistic of errors
    std::string failure;                  // of the last cycle that failed
  };
  State state() const;
  std::vector<nlohmann::json> events() const;
  bool wait_until_idle(double seconds);
  void stop();  // what is under way is given up

 private:
  struct Candidate {
    std::filesystem::path run;
    std::shared_ptr<Version> version;
    nlohmann::json gate;
  };
  void work();
  void take(const Frame& frame, std::span<const float> pixels, LearnScan& into) const;
  void learn_from(const std::shared_ptr<LearnScan>& scan);
  void label(LearnScan& scan);
  bool should_learn(const LearnScan& scan, std::span<const double> errors);
  // `errors` are of the version that answers from then on.
  void take_back_if_worse(const LearnScan& scan, std::span<const LearnSample> all,
                          std::vector<double>& errors);
  std::optional<Candidate> train(const LearnScan& scan);
  bool passes_gate(const LearnScan& scan, Candidate& candidate);
  nlohmann::json compare_on_live_frames(Candidate& candidate);
  void publish(const LearnScan& scan, Candidate& candidate, const nlohmann::json& shadow);
  std::vector<double> errors_of(Version& version, std::span<const LearnSample> samples) const;
  std::shared_ptr<Version> compiled(const std::string& run) const;
  bool stopping() const;
  bool is_busy() const;  // the queue of the model is more than a quarter full
  void note(nlohmann::json event);
  void now(const char* doing);

  const LearnSettings settings_;
  ModelService& service_;
  std::string workload_;
  std::vector<std::string> options_;
  std::unique_ptr<Lesson> lesson_;
  std::shared_ptr<Version> present_, former_;  // as judged: of one worker
  const VersionFolder versions_;
  const std::string first_run_;  // what learning began with
  std::string present_run_;
  std::optional<LearnScan> regression_;
  Replay replay_;
  DriftSigns signs_;
  Shadow shadow_;
  std::uint64_t cycle_ = 0;
  Stopwatch since_start_;

  mutable std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::map<std::string, std::shared_ptr<LearnScan>> open_;
  std::deque<std::shared_ptr<LearnScan>> ended_;
  bool working_ = false, stopping_ = false, asked_ = false;
  State state_;
  std::vector<nlohmann::json> events_;
  std::thread worker_;
};

}  // namespace superstep::edge
