// Whole cycles of learning with a whole server: what it learns from one scan is served, a share of the frames
// that come meanwhile goes through both versions, and on a scan that shows it to be worse it is taken back.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "superstep/base/file.h"
#include "superstep/base/threads/own_threads.h"
#include "superstep/edge/learn/child.h"
#include "superstep/edge/learn/peaks.h"
#include "superstep/edge/serve.h"
#include "superstep/edge/stream/detector.h"
#include "superstep/physics/generator.h"
#include "superstep/physics/xray/bragg_generator.h"
#include "superstep/run/user/arrays.h"
#include "tests/edge/models.h"
#include "tests/scratch.h"

namespace superstep::edge {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int size = 11;

// Patches in counts.
Tensor peaks(std::uint64_t first, std::int64_t count) {
  ThreadPool pool(1);
  data::BraggPatchSettings settings;
  settings.patch_size = size;
  return data::generate_in_memory(data::BraggPatchGenerator(settings), 7, first,
                                  static_cast<std::uint64_t>(count), pool)[0];
}

// A pixel that glows: fits find it, and nothing else.
Tensor with_a_hot_pixel(Tensor patches) {
  const std::span<float> values = patches.as<float>();
  for (std::size_t first = 0; first < values.size(); first += size * size) {
    const std::span<float> patch = values.subspan(first, size * size);
    const float most = *std::ranges::max_element(patch);
    patch[2 * size + 2] = 10 * most + 100;
  }
  return patches;
}

void train_first(const fs::path& folder) {
  const ChildOutcome outcome = run_child(
      {SUPERSTEP_PROGRAM, "train", "braggnn", "--samples", "3000", "--epochs", "3", "--batch", "64", "--out",
       (folder / "run").string(), "--threads", "2", "--quiet"},
      folder / "train.log", {.seconds = 200, .niceness = 0}, [] { return false; }, [] { return false; });
  ASSERT_TRUE(outcome.done) << outcome.why;
}

// A server in a thread of its own.
class Service {
 public:
  explicit Service(const fs::path& folder) : folder_(folder) {
    ServeSettings settings;
    settings.models = {named_source("peaks=" + (folder / "run").string())};
    settings.service = small_service(1);
    settings.service.batcher.when_full = QueueFull::wait;
    settings.server.port = 0;
    settings.stream = {
        .pull = endpoint_, .folder = folder / "answers", .meaning = Pixels::unit, .part_bytes = 1 << 20};
    settings.learn = LearnSettings{.folder = folder / "learnt",
                                   .each_scan = false,
                                   .epochs = 12,
                                   .batch = 32,
                                   .budget = 200,
                                   .shadow_frames = 12,
                                   .shadow_seconds = 30,
                                   .niceness = 0,  // other tests run beside it
                                   .program = SUPERSTEP_PROGRAM};
    settings.should_stop = [this](Learner* learner) {
      learner_ = learner;
      return over_.load();
    };
    thread_ = start_thread([this, settings] {
      report_ = serve(settings, [](const std::vector<ServedModel>&, const ServePlaces&) {});
    });
    while (!learner_.load()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ~Service() { end(); }

  void send(const std::string& series, const Tensor& patches, std::uint64_t frames, double rate) const {
    send_series(
        patches,
        {.to = endpoint_, .format = WireFormat::raw, .series = series, .frames = frames, .rate = rate});
  }
  Learner& learner() { return *learner_.load(); }
  const ServeReport& end() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
    return report_;
  }
  void wait_for_answers(const std::string& series) const {
    while (!fs::exists(folder_ / "answers" / (series + ".json")))
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }

 private:
  const fs::path folder_;
  const std::string endpoint_ = Socket(SocketKind::push, "tcp://127.0.0.1:*", {}).endpoint();
  std::atomic<Learner*> learner_ = nullptr;
  std::atomic<bool> over_ = false;
  ServeReport report_;
  std::thread thread_;
};

std::vector<json> events_of(Learner& learner, const std::string& name) {
  std::vector<json> found;
  for (const json& event : learner.events())
    if (event["event"] == name) found.push_back(event);
  return found;
}

std::set<std::string> versions_in(const fs::path& folder, const std::string& series) {
  std::set<std::string> versions;
  const json summary = json::parse(read_text_file(folder / (series + ".json")));
  for (const auto& file : summary.at("files")) {
    const run::NamedTensors arrays = run::read_arrays(folder / file.get<std::string>());
    for (const std::uint64_t version : arrays.at("version").as<std::uint64_t>())
      versions.insert(fmt::format("{:016x}", version));
  }
  return versions;
}

TEST(Learner, LearnsInTheShadowOfTheOldAndIsTakenBackWhenItIsWorse) {
  const ScratchFolder folder;
  train_first(folder / "");
  if (HasFatalFailure()) return;
  Service service(folder / "");
  Learner& learner = service.learner();
  learner.request();
  service.send("hot", with_a_hot_pixel(peaks(0, 640)), 640, 0);
  service.wait_for_answers("hot");
  // Frames go on to come while it learns.
  std::uint64_t meanwhile = 0;
  while (!learner.wait_until_idle(0)) {
    service.send("meanwhile-" + std::to_string(meanwhile), peaks(5000, 40), 40, 400);
    ++meanwhile;
  }
  ASSERT_EQ(events_of(learner, "failed"), std::vector<json>{});
  const std::vector<json> swaps = events_of(learner, "swapped");
  ASSERT_EQ(swaps.size(), 1U) << json(learner.events()).dump(1);
  const std::string first = swaps[0]["from"], second = swaps[0]["to"];
  EXPECT_EQ(swaps[0]["shadow"]["frames"], 12);
  EXPECT_GT(swaps[0]["shadow"]["apart"], 0);
  const VersionFolder versions(folder / "learnt");
  EXPECT_TRUE(versions.present()->ends_with(second + "/run"));
  // What the shadow saw was answered by the version that was served, as every frame before the swap.
  service.wait_for_answers("hot");
  EXPECT_EQ(versions_in(folder / "answers", "hot"), std::set<std::string>{first});
  std::set<std::string> answered;
  for (std::uint64_t i = 0; i < meanwhile; ++i) {
    service.wait_for_answers("meanwhile-" + std::to_string(i));
    for (const std::string& version : versions_in(folder / "answers", "meanwhile-" + std::to_string(i)))
      answered.insert(version);
  }
  answered.erase(second);
  EXPECT_EQ(answered, std::set<std::string>{first});

  service.send("clean", peaks(9000, 640), 640, 0);
  service.wait_for_answers("clean");
  while (events_of(learner, "compared").empty() || !learner.wait_until_idle(1))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const std::vector<json> back = events_of(learner, "rolled back");
  ASSERT_EQ(back.size(), 1U) << json(learner.events()).dump(1);
  EXPECT_EQ(back[0]["from"], second);
  EXPECT_EQ(back[0]["to"], first);
  EXPECT_FALSE(versions.present().has_value()) << "what learning began with is none of its own";
  service.send("after", peaks(12000, 64), 64, 0);
  service.wait_for_answers("after");
  EXPECT_EQ(versions_in(folder / "answers", "clean"), std::set<std::string>{second});
  EXPECT_EQ(versions_in(folder / "answers", "after"), std::set<std::string>{first});
  const ServeReport& report = service.end();
  EXPECT_TRUE(report.stream.balances());
  EXPECT_EQ(report.stream.of(Outcome::served), 640 + 40 * meanwhile + 640 + 64);
  EXPECT_EQ(report.stream.missing, 0U);
}

// Labels are the fits: of noiseless symmetric peaks their true centres; what cannot be fitted has none.
TEST(PeakLesson, LabelsByFitsAndLeavesOutWhatHasNone) {
  const ScratchFolder folder;
  PeakLesson lesson({.program = SUPERSTEP_PROGRAM});
  LearnScan scan{.name = "s", .window = size};
  for (std::uint64_t i = 0; i < 60; ++i) {
    const double row = 4.2 + 0.025 * static_cast<double>(i), column = 6.1 - 0.02 * static_cast<double>(i);
    for (int y = 0; y < size; ++y)
      for (int x = 0; x < size; ++x) {
        const double away = std::hypot(y - row, x - column);
        scan.patterns.push_back(
            i == 30 ? 0.0F : static_cast<float>(5 + 1000 * std::exp(-away * away / (2 * 1.4 * 1.4))));
      }
    scan.numbers.push_back(i);
  }
  const target::Target& cpu = target::find_target("cpu");
  Version present(read_blueprint({.what = "braggnn"}, cpu), cpu, {.max_batch = 8});
  const json facts = lesson.label(
      scan, present,
      {.work = folder / "", .should_pause = [] { return false; }, .should_end = [] { return false; }});
  EXPECT_EQ(facts["left_out"].get<std::size_t>() + scan.size(), 60U);
  ASSERT_GE(scan.size(), 59U);
  std::vector<float> truth;
  for (const std::uint64_t i : scan.numbers) {
    truth.push_back(static_cast<float>((6.1 - 0.02 * static_cast<double>(i)) / size));
    truth.push_back(static_cast<float>((4.2 + 0.025 * static_cast<double>(i)) / size));
  }
  const std::vector<double> errors = lesson.errors(truth, samples_of(scan));
  for (std::size_t i = 0; i < scan.size(); ++i)
    EXPECT_TRUE(scan.numbers[i] == 30 || errors[i] < 1e-3) << i << " " << errors[i];
  // Files keep what was kept aside.
  lesson.write_labelled(folder / "kept.h5", scan);
  const LearnScan read = lesson.read_labelled(folder / "kept.h5", 1000);
  EXPECT_EQ(read.numbers, scan.numbers);
  EXPECT_EQ(read.labels, scan.labels);
  EXPECT_EQ(samples_of(read, true).size(), samples_of(scan, true).size());
}

TEST(Replay, StaysWithinItsBytesAndIsThereAgain) {
  const ScratchFolder folder;
  const PeakLesson lesson({});
  fs::create_directories(folder / "scans");
  const auto scan = [&](const std::string& name, std::uint64_t first) {
    auto made = std::make_shared<LearnScan>(LearnScan{.name = name, .window = size, .method = "by hand"});
    const Tensor patches = peaks(first, 200);
    made->patterns.assign(patches.as<float>().begin(), patches.as<float>().end());
    for (std::uint64_t i = 0; i < 200; ++i) made->numbers.push_back(i);
    made->labels.assign(400, 0.5F);
    return made;
  };
  const std::size_t one = scan("x", 0)->bytes();
  Replay replay(folder / "scans", 3 * one, 1);
  for (int i = 0; i < 6; ++i)
    replay.add(scan("scan-" + std::to_string(i), 1000U * static_cast<unsigned>(i)), lesson,
               static_cast<std::uint64_t>(i));
  EXPECT_EQ(replay.size(), 3U);
  EXPECT_TRUE(fs::exists(folder / "scans/scan-5.h5")) << "the newest stays";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "scans"), fs::directory_iterator()), 3);
  const auto newest = scan("now", 9000);
  const std::vector<LearnSample> samples = replay.training_samples(*newest, nullptr, 3);
  std::map<const LearnScan*, std::size_t> counts;
  for (const LearnSample& sample : samples) {
    EXPECT_FALSE(sample.scan->is_held_out(sample.index));
    ++counts[sample.scan];
  }
  ASSERT_EQ(counts.size(), 4U);
  const std::size_t own = counts[newest.get()];
  for (const auto& [which, count] : counts)
    EXPECT_EQ(count, which == newest.get() ? own : own / 3) << which->name;
  Replay again(folder / "scans", 3 * one, 1);
  write_file_atomically(folder / "scans/broken.h5", "nothing of the kind");
  again.read(lesson);
  EXPECT_EQ(again.size(), 3U);
  EXPECT_EQ(again.held_out().size(), replay.held_out().size());
}

}  // namespace
}  // namespace superstep::edge
