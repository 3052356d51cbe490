// Advice: what goals are counted from, what is tried on a machine, how places are given, and changes of a
// model.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "superstep/base/error.h"
#include "superstep/graph/verify.h"
#include "superstep/lab/advise/advise.h"
#include "superstep/lab/advise/coverage.h"
#include "superstep/lab/advise/page.h"
#include "superstep/lab/advise/reasons.h"
#include "superstep/lab/by_law.h"
#include "superstep/lab/processor/prediction.h"
#include "superstep/op/core/builder.h"
#include "superstep/op/core/definition.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep::lab {
namespace {

// Two units, 100 samples in a step of 2 s; the host adds 0.5 s.
machine::Prediction made_prediction() {
  machine::Prediction prediction;
  prediction.fits = true;
  prediction.units = 2;
  prediction.samples = 100;
  prediction.step_seconds = 2;
  prediction.host = {.link = 0.25, .call = 0.25, .loader = 7, .overlaps = false};
  prediction.fed = {.low = 7, .high = 7, .low_without_loader = 2, .high_without_loader = 4};
  return prediction;
}

TEST(Goal, FiguresFollowFromTheStep) {
  const machine::Prediction p = made_prediction();
  const GoalContext context{.recipe_samples = 1000, .unit_power = 300, .unit_price = 7.2};
  const Figure rate = figure_of(Goal::throughput, p, context);
  EXPECT_DOUBLE_EQ(rate.value, 40);
  EXPECT_DOUBLE_EQ(rate.low, 25);
  EXPECT_DOUBLE_EQ(rate.high, 50);
  EXPECT_DOUBLE_EQ(figure_of(Goal::latency, p, context).value, 2.5);
  EXPECT_DOUBLE_EQ(figure_of(Goal::time_to_quality, p, context).value, 25);
  EXPECT_DOUBLE_EQ(figure_of(Goal::energy, p, context).value, 2.5 / 100 * 600);
  EXPECT_DOUBLE_EQ(figure_of(Goal::cost, p, context).value, 25 * 2 * 7.2 / 3600);
  EXPECT_DOUBLE_EQ(figure_of(Goal::cost, p, {.unit_price = 7.2}).value, 1e6 * 2.5 / 100 * 2 * 7.2 / 3600);
}

TEST(Goal, IsNotKnownWithoutItsNumbersNorWhereNothingFits) {
  machine::Prediction p = made_prediction();
  EXPECT_FALSE(figure_of(Goal::energy, p, {}).known());
  EXPECT_FALSE(figure_of(Goal::cost, p, {}).known());
  p.fits = false;
  EXPECT_FALSE(figure_of(Goal::throughput, p, {}).known());
}

TEST(Goal, IntervalsNameTheirUnitOnceWhereItIsOne) {
  EXPECT_EQ(interval_of(Goal::throughput, {.value = 0, .low = 406e3, .high = 590e3}),
            "406 to 590 ksamples/s");
  EXPECT_EQ(interval_of(Goal::latency, {.value = 0, .low = 9.9e-3, .high = 1.1}), "9.90 ms to 1.10 s");
}

TEST(Goal, MisspeltNamesGetTheNearest) {
  EXPECT_EQ(goal_from_name("time-to-quality"), Goal::time_to_quality);
  try {
    goal_from_name("thruoghput");
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "throughput")) << error.what();
  }
}

AdviseSettings settings_of(const std::string& workload, bool trains) {
  AdviseSettings settings;
  settings.model.workload = workload;
  settings.trains = trains;
  return settings;
}

Figure scaled(const Figure& figure, double factor) {
  return {figure.value * factor, figure.low * factor, figure.high * factor};
}

class AdviceFor : public testing::TestWithParam<std::tuple<std::string, bool, Goal>> {};

// Whatever the model and the goal: what holds of every option, and of the places.
TEST_P(AdviceFor, EveryOptionKeepsItsBoundsAndPlacesAgreeWithIntervals) {
  const auto& [workload, trains, goal] = GetParam();
  AdviseSettings settings = settings_of(workload, trains);
  settings.goal = goal;
  settings.units = 4;
  settings.model.samples = 2000;
  settings.prices = {{"gc200", 1.5}, {"a100-40gb", 2}};
  const Advice advice = advise(settings);
  const std::size_t here = measured_computer(settings.threads) ? 1 : 0;
  ASSERT_EQ(advice.machines.size(), machine::machines().size() + machines_of_sheets().size() + here);
  int with_best = 0;
  for (const MachineAdvice& one : advice.machines) {
    EXPECT_FALSE(one.reasons.empty()) << one.machine.id();
    for (const Option& option : one.options) {
      EXPECT_LE(option.prediction.units, 4);
      if (trains) {
        EXPECT_LE(option.prediction.samples, static_cast<double>(advice.search.most_samples));
      }
      for (const machine::Stage& stage : option.prediction.stages)
        EXPECT_EQ(option.prediction.fits && !stage.memory.fits(), false);
      if (option.figure.known()) {
        EXPECT_LE(option.figure.low, option.figure.value);
        EXPECT_GE(option.figure.high, option.figure.value);
      }
      if (const Option* best = one.best_option(); best && option.figure.known()) {
        EXPECT_FALSE(  // a hundredth is no difference
            better(option.figure, scaled(best->figure, larger_is_better(goal) ? 1.011 : 0.989), goal))
            << one.machine.id();
      }
    }
    with_best += one.best_option() != nullptr;
    if (goal == Goal::cost && one.machine.id() != "gc200" && one.machine.id() != "a100-40gb") {
      EXPECT_EQ(one.best_option(), nullptr) << one.machine.id();
    }
    if (trains && one.machine.id() == "groqchip") {
      EXPECT_EQ(one.best_option(), nullptr);
    }
  }
  EXPECT_GT(with_best, 0);
  for (const MachineAdvice& a : advice.machines)
    for (const MachineAdvice& b : advice.machines) {
      if (!a.best_option() || !b.best_option()) continue;
      const Figure &x = a.best_option()->figure, &y = b.best_option()->figure;
      const bool surely = larger_is_better(goal) ? x.low > y.high : x.high < y.low;
      if (surely) {
        EXPECT_LT(a.first_place, b.last_place + 1) << a.machine.id() << " " << b.machine.id();
      }
      EXPECT_LE(a.first_place, a.last_place);
      EXPECT_LE(a.last_place, with_best);
    }
}
INSTANTIATE_TEST_SUITE_P(Goals, AdviceFor,
                         testing::Values(std::tuple{"mlp", true, Goal::throughput},
                                         std::tuple{"mlp", true, Goal::time_to_quality},
                                         std::tuple{"lstm", false, Goal::latency},
                                         std::tuple{"lstm", true, Goal::energy},
                                         std::tuple{"mlp", false, Goal::cost}));

TEST(Advice, MoreUnitsAreNeverWorse) {
  AdviseSettings settings = settings_of("mlp", true);
  settings.machines = {"gc200", "a100-40gb", "sn10"};
  const Advice one = advise(settings);
  settings.units = 8;
  const Advice eight = advise(settings);
  const auto figure_on = [](const Advice& advice, const std::string& id) {
    return std::ranges::find_if(advice.machines, [&](const MachineAdvice& m) { return m.machine.id() == id; })
        ->best_option()
        ->figure.value;
  };
  for (const std::string& id : settings.machines)
    EXPECT_GE(figure_on(eight, id), 0.99 * figure_on(one, id)) << id;
}

TEST(Advice, ALimitIsKeptOrSaidToBeMissed) {
  AdviseSettings settings = settings_of("mlp", false);
  settings.machines = {"gc200", "v100"};
  const Advice free = advise(settings);
  const double slowest = fed_seconds(free.machines.front().best_option()->prediction).value;
  settings.latency_limit = slowest / 3;
  for (const MachineAdvice& one : advise(settings).machines)
    if (one.best_option()->within_limits) {
      EXPECT_LE(fed_seconds(one.best_option()->prediction).value, settings.latency_limit);
    }
  settings.latency_limit = 1e-9;
  for (const MachineAdvice& one : advise(settings).machines) {
    EXPECT_FALSE(one.best_option()->within_limits);
    EXPECT_TRUE(std::ranges::any_of(one.reasons, [](const std::string& r) {
      return r.starts_with("misses 1 ns");
    })) << one.reasons.back();
  }
}

// A GC200 whose tiles have so much memory.
std::string machine_with_tiles_of(int bytes, const ScratchFolder& folder) {
  const auto path = folder / "small.toml";
  std::ofstream(path)
      << "id = \"small\"\nname = \"small\"\nstyle = \"bulk-synchronous\"\nbased_on = \"gc200\"\n"
         "[constants]\ntile_memory = { value = "
      << bytes << ", unit = \"B\", kind = \"GU\", source = \"\" }\n";
  return path.string();
}

TEST(Advice, WhatDoesNotFitIsSplitOrSaidToLackMemory) {
  const ScratchFolder folder;
  AdviseSettings settings = settings_of("mlp", true);
  settings.precisions = {"f32"};
  settings.machines = {machine_with_tiles_of(2000, folder)};
  const MachineAdvice none = advise(settings).machines.front();
  ASSERT_EQ(none.best_option(), nullptr);
  EXPECT_TRUE(contains(none.reasons.front(), "lacks")) << none.reasons.front();
  // Somewhere between a machine that holds nothing and one that holds all, a pipeline is what fits.
  settings.units = 4;
  bool split = false;
  for (int bytes = 8000; bytes < 60000 && !split; bytes += 1000) {
    settings.machines = {machine_with_tiles_of(bytes, folder)};
    const MachineAdvice one = advise(settings).machines.front();
    const Option* best = one.best_option();
    if (!best || best->settings.pipeline.empty()) continue;
    split = true;
    EXPECT_TRUE(std::ranges::any_of(
        one.reasons, [](const std::string& r) { return r.find("needs") != std::string::npos; }));
  }
  EXPECT_TRUE(split);
}

// A machine is left out with its reason where it computes in none of what is asked for; others are not.
TEST(Advice, LeavesOutMachinesThatDoNotComputeInIt) {
  AdviseSettings settings = settings_of("mlp", true);
  settings.precisions = {"bf16"};
  settings.machines = {"gc200", "a100-40gb"};
  const Advice advice = advise(settings);
  for (const MachineAdvice& one : advice.machines)
    if (one.machine.id() == "gc200")
      EXPECT_TRUE(!one.best_option() && contains(one.reasons.front(), "computes in f32, f16"));
    else
      EXPECT_TRUE(one.best_option());
  settings.precisions = {"bf16", "f32"};
  EXPECT_TRUE(std::ranges::all_of(advise(settings).machines,
                                  [](const MachineAdvice& one) { return one.best_option() != nullptr; }));
}

TEST(Advice, IsTheSameOnAnyNumberOfThreads) {
  AdviseSettings settings = settings_of("mlp", true);
  // All but this computer, whose plan is one of so many threads.
  for (const machine::Machine& machine : machine::machines()) settings.machines.push_back(machine.id());
  settings.machines.emplace_back("rtx4090");
  const std::string one = text_of(advise(settings), true);
  for (const int threads : {2, 7, 64}) {
    settings.threads = threads;
    EXPECT_EQ(text_of(advise(settings), true), one) << threads;
  }
}

const MachineAdvice& of(const Advice& advice, const std::string& machine) {
  return *std::ranges::find_if(advice.machines,
                               [&](const MachineAdvice& one) { return one.machine.id() == machine; });
}

TEST(Advice, HoldsOperatorsAgainstTheListsOfCompilers) {
  AdviseSettings settings = settings_of("braggnn", true);
  settings.machines = {"gc200", "gaudi1", "a100-40gb", "groqchip"};
  const Advice advice = advise(settings);
  ASSERT_EQ(of(advice, "gc200").coverage.size(), 1U);
  EXPECT_TRUE(of(advice, "gc200").coverage.front().whole());
  EXPECT_TRUE(of(advice, "gaudi1").coverage.front().whole());
  EXPECT_TRUE(of(advice, "a100-40gb").coverage.empty()) << "what only serves is not asked of a training";
  EXPECT_TRUE(contains(text_of(advice, false), "PopART 3.4 takes all"));
  EXPECT_TRUE(contains(text_of(advice, false), "PyTorch runs operators one by one"));
  EXPECT_TRUE(contains(text_of(advice, false), "no public list"));
}

TEST(Coverage, NamesWhatIsMissingWithItsNumber) {
  const machine::Machine gc200 = machine::find_machine("gc200"), a100 = machine::find_machine("a100-40gb");
  const std::map<std::string, int> operators{{"Add", 3}, {"GridSample", 2}, {"PRelu", 4}, {"DFT", 1}};
  const Coverage trained = coverage_of(gc200, operators, true).at(0);
  EXPECT_EQ(trained.kinds, 4);
  EXPECT_EQ(trained.missing, (std::vector<std::string>{"DFT", "GridSample (2)"}));
  EXPECT_EQ(trained.untrained, std::vector<std::string>{"PRelu (4)"});
  EXPECT_TRUE(coverage_of(gc200, operators, false).at(0).untrained.empty());
  EXPECT_EQ(coverage_of(a100, operators, false).at(0).missing, std::vector<std::string>{"DFT"});
  EXPECT_TRUE(coverage_of(a100, operators, true).empty());
  EXPECT_EQ(coverage_words({trained}, gc200).front(),
            "PopART 3.4 lacks DFT, GridSample (2), has no derivative of PRelu (4)");
}

TEST(Advice, RefusesGoalsThatLackTheirNumbers) {
  AdviseSettings settings = settings_of("mlp", false);
  settings.goal = Goal::time_to_quality;
  EXPECT_THROW(advise(settings), Error);
  settings.goal = Goal::cost;
  EXPECT_THROW(advise(settings), Error);
}

TEST(Advice, ItsPageShowsEveryMachineOnce) {
  const Advice advice = advise(settings_of("lstm", false));
  const ScratchFolder folder;
  write_page(advice, folder / "advice.html");
  std::ifstream file(folder / "advice.html");
  const std::string html{std::istreambuf_iterator<char>(file), {}};
  for (const MachineAdvice& one : advice.machines)
    EXPECT_TRUE(contains(html, one.machine.name())) << one.machine.id();
  EXPECT_TRUE(contains(html, "<svg"));
  EXPECT_TRUE(contains(html, "Roofline"));
}

// Two convolutions of 32 channels: one a channel, one across them.
graph::Graph depthwise_model() {
  graph::Graph graph("depthwise");
  op::Builder b(graph);
  const op::Var x = b.input("x", ElementType::f32, {2, 32, 6, 6});
  const op::Var w = b.state("w", Tensor::full(ElementType::f32, {32, 1, 3, 3}, 0.1));
  const op::Var v = b.state("v", Tensor::full(ElementType::f32, {8, 32, 1, 1}, 0.1));
  const op::Var y = b.node1("Conv", {x, w}, {{"group", std::int64_t{32}}});
  b.output("y", b.node1("Conv", {y, v}));
  return graph;
}

TEST(Changes, WiderGroupsKeepEverythingButTheDepthwiseWeights) {
  const graph::Graph graph = depthwise_model();
  std::int64_t added = 0;
  const graph::Graph wider = with_wider_groups(graph, 16, &added);
  EXPECT_EQ(added, 32 * 15 * 9);
  EXPECT_TRUE(graph::verify(wider, op::infer_types));
  ASSERT_EQ(wider.node_count(), graph.node_count());
  EXPECT_EQ(wider.node(graph::NodeId(0)).attributes.integer("group"), 2);
  EXPECT_FALSE(wider.node(graph::NodeId(1)).attributes.has("group"));
  EXPECT_EQ(wider.type(wider.find_value("w")).shape, (Shape{32, 16, 3, 3}));
  EXPECT_EQ(wider.type(wider.find_value("v")).shape, (Shape{8, 32, 1, 1}));
  EXPECT_EQ(wider.type(wider.find_output("y")), graph.type(graph.find_output("y")));
  EXPECT_EQ(with_wider_groups(wider, 16, &added).node_count(), graph.node_count());
  EXPECT_EQ(added, 0);
}

// Machines of a data sheet alone are ranked beside those with files, by the same predictions as when they are
// asked for; the text shows the best of them.
TEST(Advice, RanksMachinesOfDataSheets) {
  AdviseSettings settings = settings_of("resnet50", false);
  settings.most_samples = 4;
  const Advice all = advise(settings);
  settings.machines = {"rtx4090"};
  const Advice one = advise(settings);
  ASSERT_TRUE(one.machines[0].best_option() && one.machines[0].best_option()->prediction.by_law);
  EXPECT_FALSE(one.machines[0].of_sheet);
  std::size_t of_sheets = 0;
  for (const MachineAdvice& machine : all.machines) {
    of_sheets += machine.of_sheet;
    if (machine.machine.id() != "rtx4090") continue;
    EXPECT_TRUE(machine.of_sheet);
    EXPECT_DOUBLE_EQ(machine.best_option()->figure.value, one.machines[0].best_option()->figure.value);
  }
  EXPECT_GT(of_sheets, 70U);
  const std::string text = text_of(all, false);
  EXPECT_TRUE(contains(text, "further machines of which a data sheet alone is known"));
  EXPECT_TRUE(contains(text, "by the law of networks"));
}

// No machine whose program its host calls is ranked by a call that takes no time; a place that rests on a
// guess says so.
TEST(Advice, TreatsTheHostsCallAlikeAndNamesGuesses) {
  AdviseSettings settings = settings_of("mlp", false);
  settings.goal = Goal::latency;
  settings.machines = {"groqchip", "gc200", "sn10"};
  for (const MachineAdvice& one : advise(settings).machines) {
    ASSERT_TRUE(one.best_option()) << one.machine.id();
    EXPECT_DOUBLE_EQ(one.best_option()->prediction.host.call, 300e-6) << one.machine.id();
    EXPECT_TRUE(std::ranges::any_of(one.reasons, [](const std::string& reason) {
      return contains(reason, "rests on a guess: host_call 300 us");
    })) << one.machine.id();
  }
}

}  // namespace
}  // namespace superstep::lab
