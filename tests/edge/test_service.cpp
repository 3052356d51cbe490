// Models that are served: what the model alone says, whatever else is in the batch and whatever is swapped
// meanwhile.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <future>
#include <thread>

#include "superstep/base/system/interrupt.h"
#include "superstep/base/system/stops_when.h"
#include "superstep/edge/service/model_service.h"
#include "superstep/edge/service/repository.h"
#include "superstep/run/train/train.h"
#include "superstep/run/user/arrays.h"
#include "tests/edge/models.h"
#include "tests/expect_error.h"
#include "tests/onnx/proto_builder.h"
#include "tests/scratch.h"

namespace superstep::edge {
namespace {

// The folder of a run of y = x A whose x, whole numbers from 0 to 47, were halved, and 3 taken away.
std::string write_scaled_run(const ScratchFolder& folder) {
  namespace on = onnx::testing;
  const on::GraphParts parts{.nodes = {on::node("MatMul", {"x", "A"}, {"y"})},
                             .inputs = {on::port("x", on::f32, {"N", "4"})},
                             .outputs = {on::port("y", on::f32, {"N", "2"})},
                             .initializers = {on::floats("A", {4, 2}, std::vector<float>(8, 0.01f))}};
  std::ofstream(folder / "model.onnx", std::ios::binary) << on::model_bytes(on::graph(parts));
  Tensor x(ElementType::u16, {60, 4}), target(ElementType::f32, {60, 2});
  for (std::int64_t i = 0; i < x.element_count(); ++i) x.set(i, static_cast<double>(i % 48));
  run::write_arrays(folder / "raw.npz", {{"x", x}, {"target", target}});
  run::train({.workload = (folder / "model.onnx").string(),
              .data = folder / "raw.npz",
              .scale = {"x=0.5"},
              .offset = {"x=-3"},
              .batch = 8,
              .steps = 3,
              .learning_rate = 1e-4},
             {.out = folder / "run"});
  return (folder / "run").string();
}

struct Answer {
  Outcome outcome = Outcome::served;
  std::string version, why;
  std::vector<float> values;  // of the first output
};

std::future<Answer> ask(ModelService& service, std::int64_t rows, std::uint64_t seed,
                        std::int64_t first = 0) {
  JobPointer job = make_job(service.current(), rows);
  fill_rows(*job, seed, first);
  auto promise = std::make_shared<std::promise<Answer>>();
  job->done = [promise](Job& done, Outcome outcome, const std::string& why) {
    const auto values = done.outputs[0].as<float>();
    promise->set_value({outcome, done.version->id(), why, {values.begin(), values.end()}});
  };
  std::future<Answer> answer = promise->get_future();
  if (!service.batcher().submit(job)) promise->set_value({.outcome = Outcome::refused});
  return answer;
}

// Of the model alone, one plan of so many rows.
std::vector<float> alone(const ModelSource& source, std::int64_t rows, std::uint64_t seed) {
  const target::Target& cpu = target::find_target("cpu");
  const Blueprint blueprint = read_blueprint(source, cpu);
  const auto executable = cpu.compile(blueprint.graph, {.batch = rows});
  const auto version = std::make_shared<Version>(blueprint, cpu, VersionSettings{.max_batch = 1});
  JobPointer job = make_job(version, rows);
  fill_rows(*job, seed);
  executable->run(job->inputs, job->outputs);
  const auto values = job->outputs[0].as<float>();
  return {values.begin(), values.end()};
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5 * (1 + std::abs(b[i]))) << i;
}

// Plans of one row are there at once, the others come while it answers.
TEST(Service, WidensWhileItAnswers) {
  const ModelSource source{.what = "braggnn"};
  ModelService service("m", source, small_service());
  const std::int64_t first = service.current()->sizes().front().rows;
  EXPECT_EQ(first, 1);
  const std::vector<float> early = ask(service, 7, 3).get().values;
  service.wait_until_wide();
  std::vector<std::int64_t> sizes;
  for (const TimedSize& size : service.current()->sizes()) sizes.push_back(size.rows);
  const Blueprint blueprint = read_blueprint(source, target::find_target("cpu"));
  EXPECT_EQ(sizes, plan_sizes(blueprint, {.max_batch = service.settings().batcher.max_batch}));
  EXPECT_GT(sizes.size(), 1U);
  expect_near(early, ask(service, 7, 3).get().values);
}

// A run whose data were scaled is asked with raw numbers: the same answers as of a model whose inputs are
// scaled by hand.
TEST(Version, ScalesRequestsAsTheTrainingDidItsData) {
  const ScratchFolder folder;
  const ModelSource source{.what = write_scaled_run(folder)};
  const target::Target& cpu = target::find_target("cpu");
  const Blueprint blueprint = read_blueprint(source, cpu);
  ASSERT_TRUE(blueprint.scalings.at(0));
  ASSERT_EQ(blueprint.ranges.size(), 1U);
  EXPECT_NEAR(blueprint.ranges[0].low, 0, 1e-3);  // of the raw numbers
  EXPECT_NEAR(blueprint.ranges[0].high, 47, 1e-3);
  Version version(blueprint, cpu, {.max_batch = 8});
  version.widen(blueprint, cpu);
  for (const bool scaled : {false, true}) {
    Tensor x(ElementType::f32, {5, 4});
    for (std::int64_t i = 0; i < 20; ++i)
      x.set(i, scaled ? 0.5 * static_cast<double>(i) - 3 : static_cast<double>(i));
    std::vector<Tensor> inputs{x}, outputs{Tensor(ElementType::f32, {5, 2})};
    const RowRange all{.inputs = inputs, .outputs = outputs, .first = 0, .count = 5, .scaled = scaled};
    version.run(0, std::span(&all, 1));
    static std::vector<float> first;
    const auto found = outputs[0].as<float>();
    if (!scaled) first.assign(found.begin(), found.end());
    EXPECT_TRUE(std::ranges::equal(found, first));
    EXPECT_EQ(x.at(1), scaled ? -2.5 : 1) << "a request is nobody's to change";
  }
}

// Plans that nobody waits for any more are left in the middle of a call; whoever wants them later has them.
TEST(Version, IsLeftWhileItWidensAndGoesOn) {
  const target::Target& cpu = target::find_target("cpu");
  const Blueprint blueprint = read_blueprint({.what = "braggnn"}, cpu);
  Version version(blueprint, cpu, {.max_batch = 16});
  int looks = 0;
  {
    const Uninterrupted by_others;
    const StopsWhen not_wanted([&] { return ++looks > 10; });
    expect_error(ErrorCode::interrupted, {}, [&] { version.widen(blueprint, cpu); });
  }
  EXPECT_EQ(looks, 11) << "the first yes is the last look";
  EXPECT_EQ(version.sizes().size(), 1U);
  version.widen(blueprint, cpu);
  EXPECT_EQ(version.sizes().back().rows, 16);
}

TEST(Service, AnswersWhatTheModelSays) {
  for (const char* what : {"mlp", "braggnn"}) {
    ModelService service("m", {.what = what}, small_service());
    for (const std::int64_t rows : {1, 2, 3, 7, 16, 17, 50}) {
      const Answer answer = ask(service, rows, 3).get();
      EXPECT_EQ(answer.outcome, Outcome::served) << answer.why;
      expect_near(answer.values, alone({.what = what}, rows, 3));
    }
  }
}

TEST(Service, AnswersARowAloneAsAmongOthers) {
  ModelService service("m", {.what = "mlp"}, small_service(2, 8));
  const std::vector<float> all = ask(service, 40, 5).get().values;
  std::vector<std::future<Answer>> answers;
  for (std::int64_t row = 0; row < 40; ++row) answers.push_back(ask(service, 1, 5, row));
  const std::size_t width = all.size() / 40;
  for (std::size_t row = 0; row < 40; ++row)
    expect_near(answers[row].get().values, {all.begin() + static_cast<std::ptrdiff_t>(row * width),
                                            all.begin() + static_cast<std::ptrdiff_t>((row + 1) * width)});
}

// Each row's answer is what the plan for one row says, to the last bit, whatever else was asked.
TEST(Service, RowByRowAnswersHaveTheSameBitsInAnyBatch) {
  for (const char* what : {"mlp", "braggnn", "ptychonn-64"}) {
    ServiceSettings settings = small_service(2, 16);
    settings.row_by_row = true;
    ModelService service("m", {.what = what}, settings);
    const std::vector<float> all = ask(service, 13, 5).get().values;
    EXPECT_EQ(ask(service, 13, 5).get().values, all);
    const std::size_t width = all.size() / 13;
    std::vector<std::future<Answer>> answers;
    for (std::int64_t row = 0; row < 13; ++row) answers.push_back(ask(service, 1, 5, row));
    for (std::size_t row = 0; row < 13; ++row)
      EXPECT_TRUE(std::ranges::equal(answers[row].get().values, std::span(all).subspan(row * width, width)))
          << what << " " << row;
  }
}

TEST(Service, NamesVersionsByTheirContent) {
  const ScratchFolder folder;
  const target::Target& cpu = target::find_target("cpu");
  write_model(folder / "a.onnx", 1);
  write_model(folder / "b.onnx", 2);
  std::filesystem::copy_file(folder / "a.onnx", folder / "c.onnx");
  const auto version = [&](const char* file) {
    return read_blueprint({.what = (folder / file).string()}, cpu).version;
  };
  EXPECT_EQ(version("a.onnx"), version("c.onnx"));
  EXPECT_NE(version("a.onnx"), version("b.onnx"));
  EXPECT_NE(read_blueprint({.what = "mlp"}, cpu).version,
            read_blueprint({.what = "mlp", .precision = "bf16"}, cpu).version);
}

TEST(Service, SwapsAndRollsBack) {
  const ScratchFolder folder;
  const std::string file = (folder / "m.onnx").string();
  write_model(file, 1);
  ModelService service("m", {.what = file}, small_service());
  const std::string first = service.current()->id();
  const std::vector<float> of_first = ask(service, 3, 9).get().values;
  EXPECT_FALSE(service.reload()) << "nothing has changed";
  expect_error(ErrorCode::invalid_argument, {"no former version"}, [&] { service.roll_back(); });
  write_model(file, 2);
  EXPECT_TRUE(service.reload());
  EXPECT_NE(service.current()->id(), first);
  EXPECT_EQ(service.former()->id(), first);
  EXPECT_NE(ask(service, 3, 9).get().values, of_first);
  service.roll_back();
  EXPECT_EQ(service.current()->id(), first);
  EXPECT_EQ(ask(service, 3, 9).get().values, of_first);
  service.unload();
  EXPECT_EQ(service.current(), nullptr);
  EXPECT_TRUE(service.reload());
}

TEST(Service, GoesOnWithWhatItHasWhereTheNextIsBroken) {
  const ScratchFolder folder;
  const std::string file = (folder / "m.onnx").string();
  write_model(file, 1);
  ModelService service("m", {.what = file}, small_service());
  const std::string first = service.current()->id();
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  EXPECT_THROW(service.reload(), Error);
  const run::Model other({.workload = "braggnn"});
  other.write_onnx(file, {});
  expect_error(ErrorCode::unsupported, {"other inputs or outputs"}, [&] { service.reload(); });
  EXPECT_EQ(service.current()->id(), first);
  EXPECT_EQ(service.swaps().failed, 2U);
  EXPECT_EQ(ask(service, 2, 1).get().outcome, Outcome::served);
}

// Swaps and rollbacks in the middle of it all: nothing is lost, and every answer is wholly of the version
// that it names.
void swap_under_load(int askers, int workers) {
  const ScratchFolder folder;
  const std::string file = (folder / "m.onnx").string();
  std::map<std::string, std::vector<float>> truth;
  for (const std::uint64_t seed : {2, 1}) {
    write_model(file, seed);
    const std::string id = read_blueprint({.what = file}, target::find_target("cpu")).version;
    truth[id] = alone({.what = file}, 40, 5);
  }
  ModelService service("m", {.what = file}, small_service(workers, 16));
  write_model(file, 2);
  std::atomic<bool> over = false;
  std::atomic<int> asked = 0;
  std::vector<std::thread> clients;
  for (int a = 0; a < askers; ++a)
    clients.emplace_back([&] {
      while (!over) {
        const Answer answer = ask(service, 40, 5).get();
        ++asked;
        if (answer.outcome == Outcome::refused) continue;  // the queue is bounded
        ASSERT_EQ(answer.outcome, Outcome::served) << answer.why;
        expect_near(answer.values, truth.at(answer.version));
      }
    });
  EXPECT_TRUE(service.reload());
  for (int i = 0; i < 200; ++i) {
    service.roll_back();
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  over = true;
  for (std::thread& client : clients) client.join();
  const Account account = service.batcher().account();
  EXPECT_EQ(account.received.requests, static_cast<std::uint64_t>(asked.load()));
  EXPECT_TRUE(account.balances());
  EXPECT_EQ(account.of(Outcome::failed), Tally{});
  EXPECT_EQ(service.swaps().rolled_back, 200U);
}

TEST(Service, LosesNothingWhereVersionsAreSwapped) {
  for (const auto& [askers, workers] : {std::pair(1, 1), std::pair(4, 2), std::pair(64, 8)})
    swap_under_load(askers, workers);
}

TEST(Service, TellsWhatWaitsWhenItEnds) {
  std::vector<std::future<Answer>> answers;
  {
    ModelService service("m", {.what = "mlp"}, small_service(1, 1));
    for (int i = 0; i < 500; ++i) answers.push_back(ask(service, 1, 1));
  }
  for (auto& answer : answers) {
    const Outcome outcome = answer.get().outcome;
    EXPECT_TRUE(outcome == Outcome::served || outcome == Outcome::closed) << name_of(outcome);
  }
}

TEST(Repository, DrainsBeforeItCloses) {
  Repository repository;
  repository.add(std::make_unique<ModelService>("m", ModelSource{.what = "mlp"}, small_service(1, 4)));
  ModelService& service = *repository.find("m");
  repository.open();
  std::vector<std::future<Answer>> answers;
  for (int i = 0; i < 300; ++i) answers.push_back(ask(service, 1, 1));
  EXPECT_TRUE(repository.drain(Clock::now() + std::chrono::seconds(30)));
  for (auto& answer : answers) EXPECT_EQ(answer.get().outcome, Outcome::served);
  EXPECT_EQ(ask(service, 1, 1).get().outcome, Outcome::refused);
  EXPECT_FALSE(repository.is_open());
}

// The plan of 64 rows of this model takes seconds to time: who ends does not wait for it.
TEST(Repository, DoesNotWaitForPlansWhenItCloses) {
  Repository repository;
  const ModelSource source{.what = "ptychonn-128"};
  repository.add(std::make_unique<ModelService>("m", source, small_service(1, 64)));
  const ModelService& service = *repository.find("m");
  EXPECT_TRUE(repository.drain(Clock::now() + std::chrono::seconds(30)));
  service.wait_until_wide();
  EXPECT_LT(service.current()->sizes().back().rows, 64);
}

TEST(Repository, RefusesNamesThatAreNoPath) {
  Repository repository;
  for (const char* name : {"", "a/b", "a b", "a?"})
    EXPECT_THROW(
        repository.add(std::make_unique<ModelService>(name, ModelSource{.what = "mlp"}, small_service(1, 1))),
        Error)
        << name;
  repository.add(std::make_unique<ModelService>("a", ModelSource{.what = "mlp"}, small_service(1, 1)));
  EXPECT_THROW(
      repository.add(std::make_unique<ModelService>("a", ModelSource{.what = "mlp"}, small_service(1, 1))),
      Error);
}

}  // namespace
}  // namespace superstep::edge
