// Several ranks of the program, as a user starts them: the same training as one rank, the same bits every
// time, and an end in seconds when one is killed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/file/npz.h"
#include "superstep/lab/ranks/collective_bench.h"
#include "superstep/lab/ranks/scale.h"
#include "superstep/record/result.h"
#include "superstep/record/result_json.h"
#include "superstep/run/ranks/alone.h"
#include "superstep/run/ranks/communicator.h"
#include "superstep/run/ranks/gradient_exchange.h"
#include "superstep/run/train/checkpoint.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/keep_written.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;

// Whoever launched this process: what it starts next is no rank of that run.
TEST(Launchers, AreLeft) {
  const std::pair<const char*, const char*> said[] = {{"OMPI_COMM_WORLD_RANK", "1"},
                                                      {"OMPI_COMM_WORLD_SIZE", "4"},
                                                      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                                      {"MV2_COMM_WORLD_RANK", "1"},
                                                      {"MV2_COMM_WORLD_SIZE", "4"},
                                                      {"PMI_RANK", "1"},
                                                      {"PMI_SIZE", "4"},
                                                      {"PMIX_RANK", "1"},
                                                      {"PMIX_NAMESPACE", "job"},
                                                      {"SLURM_STEP_ID", "0"},
                                                      {"SLURM_STEP_NUM_TASKS", "4"}};
  std::vector<std::pair<const char*, std::string>> before;  // of whoever launched the test
  for (const auto& [name, value] : said) {
    if (const char* const kept = getenv(name)) before.emplace_back(name, kept);
    setenv(name, value, 1);
  }
  EXPECT_EQ(run::launched_rank(), 1);
  EXPECT_EQ(run::launched_size(), 4);
  EXPECT_TRUE(run::launched_by_pmix());
  run::leave_ranks();
  EXPECT_EQ(run::launched_rank(), 0);
  EXPECT_EQ(run::launched_size(), 1);
  EXPECT_FALSE(run::launched_by_pmix());
  for (const auto& [name, value] : said) EXPECT_EQ(getenv(name), nullptr) << name;
  for (const auto& [name, value] : before) setenv(name, value.c_str(), 1);
}

class Ranks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!run::has_ranks() || std::string(MPIRUN).empty())
      GTEST_SKIP() << "built without MPI, or mpirun is not installed";
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    folder_ = fs::temp_directory_path() / ("superstep_ranks_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override {
    if (folder_.empty()) return;
    keep_written(folder_, "Ranks");
    fs::remove_all(folder_);
  }
  static std::string mpirun(int ranks) {
    return std::string("timeout 120 ") + MPIRUN + " -n " + std::to_string(ranks) +
           " --oversubscribe --bind-to none";
  }
  Outcome on_ranks(int ranks, const std::string& arguments) {
    return run_program(folder_, arguments, mpirun(ranks));
  }
  std::map<std::string, Tensor> states_of(const std::string& run) {
    return run::read_newest_checkpoint(folder_ / run / "checkpoints")->states;
  }
  fs::path folder_;
};

// Each would train by itself, and all would write into one folder.
TEST_F(Ranks, OfAnotherLauncherAreRefused) {
  for (const char* set : {"PMI_RANK=0 PMI_SIZE=3", "SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=3"}) {
    const Outcome outcome =
        run_program(folder_, "train mlp --samples 400 --steps 2 --out apart", std::string("env ") + set);
    EXPECT_EQ(outcome.code, 1) << set;
    EXPECT_TRUE(contains(outcome.errors, "started 3 processes")) << outcome.errors;
    EXPECT_TRUE(contains(outcome.errors, "srun --mpi=pmix")) << outcome.errors;
    EXPECT_FALSE(fs::exists(folder_ / "apart")) << "nothing is made before";
  }
  // PMIx says which of them a process is, and not how many there are.
  const Outcome second = run_program(folder_, "train mlp --samples 400 --steps 2 --out apart",
                                     "env PMIX_RANK=1 PMIX_NAMESPACE=other");
  EXPECT_EQ(second.code, 1);
  EXPECT_TRUE(contains(second.errors, "connects none of them")) << second.errors;
  // A script of sbatch is one process, whatever the number of tasks.
  for (const char* set : {"SLURM_NTASKS=3 SLURM_PROCID=0", "SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1"})
    EXPECT_EQ(run_program(folder_, "train mlp --samples 400 --steps 2", std::string("env ") + set).code, 0)
        << set;
}

// At a rate at which sums in another order stay close: larger steps of Adam tell the signs of vanishing
// gradients apart.
constexpr const char* training =
    "train mlp --steps 40 --batch 64 --samples 640 --threads 1 --learning-rate 1e-3 --out ";

bool same_bits(const std::map<std::string, Tensor>& a, const std::map<std::string, Tensor>& b) {
  for (const auto& [name, tensor] : a)
    if (std::memcmp(tensor.bytes(), b.at(name).bytes(), tensor.byte_count()) != 0) return false;
  return true;
}

double largest_difference(const std::map<std::string, Tensor>& a, const std::map<std::string, Tensor>& b) {
  double largest = 0;
  for (const auto& [name, tensor] : a)
    for (std::int64_t i = 0; i < tensor.element_count(); ++i)
      largest = std::max(largest, std::abs(tensor.at(i) - b.at(name).at(i)));
  return largest;
}

TEST_F(Ranks, TrainWhatOneRankTrains) {
  ASSERT_EQ(on_ranks(1, std::string(training) + "one").code, 0);
  const Outcome two = on_ranks(2, std::string(training) + "two --json two.json");
  ASSERT_EQ(two.code, 0) << two.errors;
  const auto one = states_of("one"), both = states_of("two");
  EXPECT_LT(largest_difference(one, both), 2e-4);  // sums of gradients in another order
  EXPECT_FALSE(one.empty());
  const auto result = nlohmann::json::parse(content_of(folder_ / "two.json"));
  EXPECT_TRUE(result["metrics"].contains("communication_time"));
  // The first rank speaks for all: its table comes once.
  EXPECT_EQ(two.output.find("throughput_with_data"), two.output.rfind("throughput_with_data"));
}

TEST_F(Ranks, GiveTheSameBitsEveryTime) {
  for (const char* run : {"a", "b"})
    ASSERT_EQ(
        on_ranks(3, "train mlp --steps 25 --batch 96 --samples 960 --threads 1 --out " + std::string(run))
            .code,
        0);
  EXPECT_TRUE(same_bits(states_of("a"), states_of("b")));
}

// Chains are divided over the ranks, and each is what it is alone.
TEST_F(Ranks, SampleTheSameChains) {
  const std::string settings =
      "sample mcmc --set units=3 --set window=50 --set ahead=4 --chains 5 --warm-up 30 --draws 20 "
      "--doublings 4 --threads 2 --out ";
  ASSERT_EQ(run_program(folder_, settings + "alone").code, 0);
  const Outcome ranks = on_ranks(3, settings + "ranks");
  ASSERT_EQ(ranks.code, 0) << ranks.errors;
  for (int chain = 1; chain <= 5; ++chain) {
    const std::string file = "nuts/chain-" + std::to_string(chain) + ".npz";
    auto alone = data::read_npz(folder_ / "alone" / file), divided = data::read_npz(folder_ / "ranks" / file);
    alone.erase("state/seconds"), divided.erase("state/seconds");
    EXPECT_EQ(alone.size(), divided.size());
    EXPECT_TRUE(same_bits(alone, divided)) << file;
  }
  EXPECT_EQ(ranks.output.find("effective draws"), ranks.output.rfind("effective draws")) << ranks.output;
  EXPECT_EQ(on_ranks(2, "sample mcmc --draws 5 --warm-up 5").code, 2) << "without a folder";
}

// Gradients on any road, beside the backward pass or after it: the same sums.
TEST_F(Ranks, GiveTheSameBitsByEveryRoad) {
  const std::string settings = "train mlp --steps 12 --batch 96 --micro-batch 8 --samples 960 --threads 1 ";
  ASSERT_EQ(on_ranks(3, settings + "--out beside").code, 0);
  ASSERT_EQ(on_ranks(3, settings + "--exchange after --out after").code, 0);
  const Outcome messages =
      run_program(folder_, settings + "--out messages", "env SUPERSTEP_SHARED_MEMORY=0 " + mpirun(3));
  ASSERT_EQ(messages.code, 0) << messages.errors;
  ASSERT_EQ(on_ranks(3, settings + "--exchange library --out library").code, 0);
  EXPECT_TRUE(same_bits(states_of("beside"), states_of("after")));
  EXPECT_TRUE(same_bits(states_of("beside"), states_of("messages")));
  EXPECT_LT(largest_difference(states_of("beside"), states_of("library")), 2e-4);
  EXPECT_EQ(on_ranks(2, "train mlp --steps 2 --exchange never").code, 2);
}

// Two ranks that normalise together are one rank with the whole batch; apart they are not.
TEST_F(Ranks, NormaliseOverASpan) {
  const std::string settings =
      "train mobilenet-v3-small --set size=32 --set classes=4 --steps 2 --batch 8 --samples 32 --threads 1 "
      "--learning-rate 0.001 --optimizer sgd --quiet ";
  const auto loss_of = [&](const std::string& file) {
    return nlohmann::json::parse(content_of(folder_ / file))["metrics"]["loss"]["value"].get<double>();
  };
  ASSERT_EQ(on_ranks(1, settings + "--json one.json").code, 0);
  const Outcome joint = on_ranks(2, settings + "--batch-norm-span 2 --json joint.json");
  ASSERT_EQ(joint.code, 0) << joint.errors;
  ASSERT_EQ(on_ranks(2, settings + "--json apart.json").code, 0);
  EXPECT_NEAR(loss_of("joint.json") / loss_of("one.json"), 1, 1e-5);
  EXPECT_GT(std::abs(loss_of("apart.json") / loss_of("one.json") - 1), 1e-4);
  const Outcome refused = on_ranks(2, settings + "--batch-norm-span 3");
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(contains(refused.errors, "a span of 3 does not divide 2 ranks"));
}

// One rank sleeps where it should start.
TEST_F(Ranks, ThatNeverStartAreNotWaitedForForEver) {
  std::ofstream(folder_ / "late.sh") << "[ \"$OMPI_COMM_WORLD_RANK\" = 1 ] && exec sleep 100\nexec \"$@\"\n";
  const auto begun = std::chrono::steady_clock::now();
  const Outcome outcome = run_program(folder_, "train mlp --steps 2 --batch 32",
                                      "env SUPERSTEP_START_SECONDS=1 " + mpirun(2) + " sh late.sh");
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.code, 124);
  EXPECT_TRUE(contains(outcome.errors, "rank 0 of 2: the others did not all start within 1 s"))
      << outcome.errors;
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(60));
}

TEST_F(Ranks, RefuseABatchThatCannotBeDivided) {
  const Outcome outcome = on_ranks(2, "train mlp --steps 2 --batch 33");
  EXPECT_NE(outcome.code, 0);
  EXPECT_TRUE(contains(outcome.errors, "a batch of 33 cannot be divided over 2 ranks"));
}

TEST_F(Ranks, RefuseATargetThatCannotTakePart) {
  const Outcome outcome = on_ranks(2, "train mlp --steps 2 --batch 32 --on reference");
  EXPECT_NE(outcome.code, 0);
  EXPECT_TRUE(contains(outcome.errors, "does not train on several ranks"));
}

// A rank is killed while the others wait for its gradients.
TEST_F(Ranks, EndWhenOneIsKilledAndGoOnFromTheCheckpoint) {
  std::ofstream(folder_ / "kill.sh") << R"(
"$@" &
launcher=$!
for i in $(seq 300); do ls run/checkpoints/step-*.safetensors >/dev/null 2>&1 && break; sleep 0.1; done
victim=$(cut -d' ' -f1 /proc/$launcher/task/$launcher/children)
[ -n "$victim" ] || exit 99
kill -KILL $victim
wait $launcher
)";
  const auto begun = std::chrono::steady_clock::now();
  const std::string before =
      "timeout 100 sh kill.sh " + std::string(MPIRUN) + " -n 2 --oversubscribe --bind-to none";
  const Outcome killed = run_program(
      folder_, "train mlp --steps 10000000 --batch 64 --threads 1 --checkpoint-seconds 0.2 --out run",
      before);
  EXPECT_NE(killed.code, 0);
  EXPECT_NE(killed.code, 99);
  EXPECT_NE(killed.code, 124) << "the other rank went on waiting";
  EXPECT_TRUE(contains(killed.errors, "signal 9"));
  const auto step = run::read_newest_checkpoint(folder_ / "run" / "checkpoints")->step;
  EXPECT_GT(step, 0);
  const Outcome resumed = run_program(folder_, "train mlp --resume run", "timeout --foreground -s INT 8");
  EXPECT_TRUE(contains(resumed.errors, "everything is saved"));
  EXPECT_GT(run::read_newest_checkpoint(folder_ / "run" / "checkpoints")->step, step);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(140));
}

TEST_F(Ranks, AllReduceAddsUpEveryElement) {
  for (const char* order : {"ranks", "library"}) {
    const Outcome outcome =
        on_ranks(3, std::string("bench all-reduce --sizes 4,1K,100K --json r.json --order ") + order);
    ASSERT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_TRUE(contains(outcome.output, "# Out of bounds values : 0 OK"));
    const auto results = record::read_results(content_of(folder_ / "r.json"), "r.json");
    ASSERT_EQ(results.size(), 3U);
    EXPECT_EQ(results[2].find("in_place_wrong")->value, 0);
    EXPECT_EQ(results[2].units, 3);
    EXPECT_NEAR(results[2].find("in_place_busbw")->value / results[2].find("in_place_algbw")->value, 4.0 / 3,
                1e-9);
  }
}

TEST_F(Ranks, StartThemselves) {
  const Outcome outcome = run_program(folder_, "bench all-reduce --ranks 2 --sizes 4K");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.output, "#  Rank  1"));
  const Outcome none = run_program(folder_, "bench gradients --ranks 2 --launcher no-such-launcher");
  EXPECT_EQ(none.code, 1);
  EXPECT_TRUE(contains(none.errors, "cannot be started"));
}

TEST_F(Ranks, AreMeasuredBesideTheLibrary) {
  const Outcome outcome =
      on_ranks(2, "bench all-reduce --order both --sizes 4K,64K --iterations 3 --json r.json");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.output, "MPI_Allreduce"));
  const auto results = record::read_results(content_of(folder_ / "r.json"), "r.json");
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(results[1].id, results[0].id + "-library");
  EXPECT_EQ(results[0].find("in_place_wrong")->value + results[1].find("in_place_wrong")->value, 0);
  const Outcome json = on_ranks(2, "bench all-reduce --sizes 4K --iterations 2 --format nccl-json");
  const auto twin = nlohmann::json::parse(json.output);
  EXPECT_EQ(twin["results"][0]["size"], 4096);
  EXPECT_EQ(twin["args"][0], "bench");
}

// What the exchange adds to a step; its means are checked in every way.
TEST_F(Ranks, ExchangeBesideArithmetic) {
  for (const char* shared : {"1", "0"}) {
    const Outcome outcome =
        run_program(folder_, "bench gradients --sizes 8,3M --iterations 2 --json g.json",
                    std::string("env SUPERSTEP_SHARED_MEMORY=") + shared + " " + mpirun(2));
    ASSERT_EQ(outcome.code, 0) << outcome.errors;
    const auto results = record::read_results(content_of(folder_ / "g.json"), "g.json");
    ASSERT_EQ(results.size(), 2U);
    for (const auto& result : results) {
      EXPECT_EQ(result.find("wrong")->value, 0);
      EXPECT_GT(result.find("ours_overlapped_time")->value, 0);
      EXPECT_EQ(result.config["road"], *shared == '1' ? "shared memory" : "messages");
    }
  }
}

TEST_F(Ranks, AreScaledAndCompared) {
  const Outcome outcome = run_program(folder_,
                                      "scale mlp --mode weak --ranks 1,2 --steps 20 --batch 32 --samples 640 "
                                      "--repeat 1 --threads 1 --json s.json");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const auto results = record::read_results(content_of(folder_ / "s.json"), "s.json");
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[1].config["batch"], 64);
  EXPECT_FALSE(results[0].find("scaling_efficiency"));
  EXPECT_GT(results[1].find("scaling_efficiency")->value, 0);
  EXPECT_TRUE(results[1].find("communication_time"));
}

TEST_F(Ranks, ThatFailAreReportedWithWhatTheySaid) {
  const Outcome outcome =
      run_program(folder_, "scale mlp --mode strong --ranks 2 --steps 20 --batch 33 --repeat 1");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.errors, "cannot be divided over 2 ranks"));
  const Outcome none = run_program(folder_, "scale mlp --ranks 2 --launcher no-such-launcher");
  EXPECT_EQ(none.code, 1);
  EXPECT_TRUE(contains(none.errors, "cannot be started"));
}

// --- what needs no launcher

// Wrong on purpose: a world of two whose sum forgets the other rank.
class Forgetful : public run::Communicator {
 public:
  explicit Forgetful(float factor) : factor_(factor) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void barrier() override {}
  void sum(std::span<float> values, run::SumOrder) override {
    for (float& value : values) value *= factor_;
  }
  double maximum(double value) override { return value; }
  bool any(bool flag) override { return flag; }
  std::unique_ptr<run::RangeMeans> range_means(std::size_t values, std::vector<target::ValueRange>,
                                               run::SumOrder) override {
    return std::make_unique<run::AloneMeans>(values);
  }
  std::unique_ptr<run::Communicator> group(int) override { return std::make_unique<Forgetful>(factor_); }
  std::string road() const override { return "nowhere"; }
  [[noreturn]] void abort(int code) override { std::_Exit(code); }

 private:
  float factor_;
};

TEST(AllReduce, CountsWrongElements) {
  Forgetful world(1);
  const auto results = lab::bench_all_reduce(world, {.sizes = {4096}, .warm_up = 0, .iterations = 2});
  EXPECT_GT(results[0].find("in_place_wrong")->value, 900);
}

TEST(GradientExchange, TakesTheMean) {
  Forgetful doubles(2);  // as if the other rank had the same gradients
  run::GradientExchange exchange(doubles, {.mode = run::ExchangeMode::library, .span = 2});
  const std::span<float> means = exchange.open(5, {{1, 3}});
  const std::vector<float> given{7, 1, -2, 3, 9};
  std::ranges::copy(given, means.begin());
  exchange.begin();
  exchange.ready(0);
  exchange.progress();
  exchange.finish();
  EXPECT_TRUE(std::ranges::equal(means, given));  // what is in no range as well
  EXPECT_EQ(exchange.communication().size(), 1U);
  EXPECT_EQ(exchange.bytes(), 12);
  EXPECT_EQ(exchange.parts().count, 2);
  std::vector<float> statistics{4, 6};
  exchange.average_over_span(statistics);
  EXPECT_EQ(statistics, (std::vector<float>{4, 6}));
}

TEST(GradientExchange, RefusesASpanThatDoesNotDivideTheRanks) {
  Forgetful world(2);
  EXPECT_THROW(run::GradientExchange(world, {.span = 3}), Error);
  EXPECT_THROW(run::exchange_mode_from_name("sometimes"), Error);
}

TEST(Sizes, AreParsed) {
  using V = std::vector<std::int64_t>;
  EXPECT_EQ(lab::parse_sizes("4K..16K"), (V{4096, 8192, 16384}));
  EXPECT_EQ(lab::parse_sizes("8,1M"), (V{8, 1048576}));
  for (const char* bad : {"", "K", "0", "3", "4X", "4..", "1M..1K", "99999999G", "4,,8"})
    EXPECT_THROW(lab::parse_sizes(bad), Error) << bad;
}

TEST(Scaling, IsCountedAsDefined) {
  EXPECT_NEAR(lab::scaling_efficiency(180, 2, 100, 1), 0.9, 1e-12);
  EXPECT_NEAR(lab::scaling_efficiency(300, 8, 100, 2), 0.75, 1e-12);
  EXPECT_NEAR(lab::parallel_fraction(1.6, 2), 0.75, 1e-12);  // 1 / (0.25 + 0.75 / 2)
  EXPECT_TRUE(std::isnan(lab::parallel_fraction(1, 1)));
}

// Two ranks that are half as fast as one, or thrice, have no share of parallel work that explains them.
TEST(Scaling, AShareThatIsNoneIsNotReported) {
  EXPECT_NEAR(lab::determined_fraction(1.6, 2).value(), 0.75, 1e-12);
  EXPECT_EQ(lab::determined_fraction(2, 2), 1);
  EXPECT_EQ(lab::determined_fraction(0.5, 2), std::nullopt);
  EXPECT_EQ(lab::determined_fraction(1.0 / 190, 2), std::nullopt);  // a share of -189
  EXPECT_EQ(lab::determined_fraction(3, 2), std::nullopt);
  EXPECT_EQ(lab::determined_fraction(1, 1), std::nullopt);
}

record::Result scaled(int ranks, double efficiency) {
  record::Result result;
  result.units = ranks;
  result.config = {{"batch", 64}};
  if (ranks > 1) result.add("scaling_efficiency", efficiency, "");
  return result;
}

TEST(Scaling, TheTableSaysWhy) {
  const std::string table = lab::scaling_table({scaled(1, 1), scaled(2, 0.25)});
  EXPECT_TRUE(contains(table, "not determined")) << table;
  EXPECT_TRUE(contains(table, "2 ranks are 0.50 times as fast as 1")) << table;
}

}  // namespace
}  // namespace superstep
