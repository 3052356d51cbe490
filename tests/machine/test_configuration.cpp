// The resolver of configurations: what is stated, public set-ups, the search, and the answer over all that is
// plausible.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "superstep/lab/question.h"
#include "superstep/lab/validate/validate.h"
#include "superstep/machine/configuration/resolve.h"
#include "superstep/machine/configuration/search.h"
#include "superstep/machine/configuration/set_ups.h"
#include "tests/contains.h"

namespace superstep::machine {
namespace {

// A workload's graphs, each made once.
class Graphs {
 public:
  explicit Graphs(const std::string& workload, bool training = true)
      : model_(run::TrainSettings{.workload = workload}), training_(training) {}
  GraphAt at() {
    return [this](std::int64_t batch) -> const graph::Graph& {
      auto found = graphs_.find(batch);
      if (found == graphs_.end())
        found = graphs_.emplace(batch, training_ ? model_.training_step()(batch) : model_.inference()(batch))
                    .first;
      return found->second;
    };
  }
  Question question() const { return lab::question_of(model_, training_); }

 private:
  run::Model model_;
  bool training_;
  std::map<std::int64_t, graph::Graph> graphs_;
};

GraphAt no_graph() {
  return [](std::int64_t) -> const graph::Graph& {
    throw Error(ErrorCode::internal, "no graph is needed here");
  };
}

std::string words(const Configuration& configuration) {
  return fmt::format("{}", fmt::join(words_of(configuration.facts), "; "));
}

TEST(SetUps, AreFactsWithSourceAndLicence) {
  const SetUpFacts& facts = public_set_ups();
  EXPECT_GE(facts.set_ups.size(), 20U);
  for (const machine::SetUp& set_up : facts.set_ups) {
    EXPECT_FALSE(set_up.source.empty() || set_up.licence.empty()) << set_up.name;
    EXPECT_FALSE(set_up.software.empty()) << set_up.name;
    EXPECT_GT(set_up.micro_batch, 0) << set_up.name;
  }
  for (const Form& form : facts.forms) EXPECT_FALSE(form.source.empty()) << form.name;
  for (const DataFacts& data : facts.data) EXPECT_FALSE(data.source.empty()) << data.workload;
}

TEST(SetUps, FilesAreCheckedKeyByKey) {
  const std::string head =
      "machines = 'bulk-synchronous'\nsource = 's'\nlicence = 'MIT'\n[[set_up]]\nname = 'a'\nwhere = "
      "'b'\nworkload = 'mlp'\nmode = 'train'\n";
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      parse_set_ups(text, "file");
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal(head + "micro_batch = 4\n"), "accepted");
  EXPECT_TRUE(contains(refusal(head), "micro_batch"));
  EXPECT_TRUE(contains(refusal(head + "micro_batch = 0\n"), "must be a count of 1 or more"));
  EXPECT_TRUE(contains(refusal(head + "micro_batch = 4\nthroughput = 5\n"), "is not a key of set-ups"));
  EXPECT_TRUE(contains(refusal(head + "micro_batch = 4\nprecision = 'f17'\n"), "is not a precision"));
  EXPECT_TRUE(
      contains(refusal(head + "micro_batch = 4\nupdate_samples = [[16, 4], [4, 1]]\n"), "in the order"));
  EXPECT_TRUE(
      contains(refusal(head + "micro_batch = 4\npipeline = [1, 1]\nchips = [0]\n"), "one of each stage"));
  EXPECT_TRUE(contains(refusal("machines = 'gpu'\n" + head.substr(head.find("source"))), "is not a style"));
  EXPECT_TRUE(contains(refusal("[[form]]\nname = 'x'\nworkload = 'mlp'\n"), "source"));
  EXPECT_TRUE(contains(refusal("form = 3\n"), "must be a list of tables"));
  EXPECT_TRUE(contains(refusal("a = = 3\n"), "line 1"));
}

TEST(SetUps, SamplesOfAnUpdateGoByUnits) {
  const machine::SetUp set_up{.update_samples = {{4, 480}, {16, 1920}}};
  EXPECT_EQ(set_up.samples_of_update(1), 480);
  EXPECT_EQ(set_up.samples_of_update(8), 480);
  EXPECT_EQ(set_up.samples_of_update(64), 1920);
  EXPECT_EQ(machine::SetUp{}.samples_of_update(4), 0);
}

TEST(Resolver, WhatIsStatedGoesBeforeASetUp) {
  const Machine machine = find_machine("gc200").driven_by("poptorch");
  Question question{.workload = "resnet50", .software = "poptorch", .stated = {.units = 4}};
  const Configuration by_set_up = plausible_configurations(machine, question, no_graph()).front();
  EXPECT_EQ(by_set_up.settings.micro_batch, 18);
  EXPECT_EQ(by_set_up.settings.replicas, 4);
  EXPECT_EQ(by_set_up.settings.accumulate, 16416 / 18 / 4);
  EXPECT_EQ(by_set_up.settings.precision.name, "16.16");
  EXPECT_TRUE(contains(words(by_set_up), "micro-batch 18: set-up poptorch/resnet50") ||
              contains(words(by_set_up), "micro-batch 18"));
  EXPECT_TRUE(contains(words(by_set_up), "set-up poptorch/resnet50 (graphcore/examples"));
  question.stated.micro_batch = 7;
  question.stated.precision = "f32";
  question.stated.accumulate = 3;
  const auto stated = plausible_configurations(machine, question, no_graph());
  ASSERT_EQ(stated.size(), 1U);
  EXPECT_EQ(stated[0].settings.micro_batch, 7);
  EXPECT_EQ(stated[0].settings.accumulate, 3);
  EXPECT_EQ(stated[0].settings.precision.name, "f32");
  EXPECT_FALSE(contains(words(stated[0]), "micro-batch"));
}

// Global batch and replicas count on every machine.
TEST(Resolver, StatedUpdatesAndReplicasCountEverywhere) {
  for (const char* name : {"gc200", "a100-40gb", "sn10"}) {
    const Question question{.stated = {.micro_batch = 4, .global_batch = 96, .units = 8, .replicas = 6}};
    const Configuration one = plausible_configurations(find_machine(name), question, no_graph()).front();
    EXPECT_EQ(one.settings.replicas, 6) << name;
    EXPECT_EQ(one.settings.accumulate, 4) << name;
  }
  const Question whole{.stated = {.global_batch = 96, .units = 8}};
  const Configuration one = plausible_configurations(find_machine("h100"), whole, no_graph()).front();
  EXPECT_EQ(one.settings.micro_batch, 12);
  EXPECT_EQ(one.settings.accumulate, 1);
}

// Two chips a replica are a pipeline of two on an IPU, as stages are.
TEST(Resolver, UnitsOfAReplicaAreStages) {
  const Question question{.stated = {.micro_batch = 2, .units = 4, .replicas = 2}};
  EXPECT_EQ(
      plausible_configurations(find_machine("bow"), question, no_graph()).front().settings.pipeline.size(),
      2U);
}

TEST(Resolver, OurOwnRecipeIsMeantWhereNoSetUpSaysOtherwise) {
  Graphs graphs("braggnn");
  const Question question = graphs.question();
  const auto found = plausible_configurations(find_machine("gc200"), question, no_graph());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].settings.micro_batch, question.recipe_batch);
  EXPECT_TRUE(contains(words(found[0]), "the zoo's recipe"));
}

// A table that says nothing may have meant several: the median is given, and its interval holds all.
TEST(Resolver, AnIntervalHoldsAllThatIsPlausible) {
  Graphs graphs("mlp");
  Question question = graphs.question();
  question.own_recipe = false;
  question.stated.units = 1;
  const Machine machine = find_machine("a100-40gb").driven_by("pytorch-eager");
  const Answer found = answer(machine, question, graphs.at());
  EXPECT_GT(found.plausible, 1U);
  EXPECT_LE(found.plausible, 13U);
  for (const Configuration& one : plausible_configurations(machine, question, graphs.at())) {
    const Prediction p = predict(machine, graphs.at()(one.settings.micro_batch), one.settings);
    const double rate = p.throughput_with_data();
    EXPECT_GE(rate, found.prediction.samples / found.prediction.fed.high * 0.999);
    EXPECT_LE(rate, found.prediction.samples / found.prediction.fed.low * 1.001);
  }
}

// What does not fit one chip is recomputed, then cut, then keeps its optimizer's state beside the chip; a
// refusal names what would fit.
TEST(Resolver, CutsWhatDoesNotFitAndNamesTheNearest) {
  Graphs graphs("cifar10-cnn");
  const Machine whole = find_machine("gc200");
  Question question = graphs.question();
  question.own_recipe = false;
  question.stated.precision = "f16";
  question.stated.micro_batch = 1;
  const Prediction plain = answer(whole, question, graphs.at()).prediction;
  ASSERT_TRUE(plain.fits);
  // So small that the model with its optimizer's state needs more than one.
  const Machine small = whole.with("tile_memory", 0.75 * plain.stages[0].memory.fullest_tile);
  question.stated.units = 4;
  const Answer cut = answer(small, question, graphs.at());
  EXPECT_TRUE(cut.prediction.fits);
  EXPECT_TRUE(contains(words(cut.configuration), "searched")) << words(cut.configuration);
  question.stated.replicas = 4;
  question.stated.recompute = false;
  const Answer refused = answer(small, question, graphs.at());
  EXPECT_FALSE(refused.prediction.fits);
  EXPECT_TRUE(contains(refused.nearest, "fits")) << refused.nearest;
}

TEST(Prediction, OptimizerStateBesideTheChipLeavesRoomAndTakesTime) {
  Graphs graphs("cifar10-cnn");
  const Machine machine = find_machine("gc200");
  PredictSettings settings{.micro_batch = 2, .replicas = 4};
  const auto predicted = [&] { return predict(machine, graphs.at()(2), settings); };
  const Prediction on_chip = predicted();
  settings.optimizer_sharded = true;
  const Prediction shared = predicted();
  settings.optimizer_off_chip = true;
  const Prediction beside = predicted();
  const auto& memory = on_chip.stages[0].memory;
  ASSERT_GT(memory.optimizer, 0);
  EXPECT_NEAR(shared.stages[0].memory.optimizer, memory.optimizer / 4, 1);
  EXPECT_EQ(beside.stages[0].memory.optimizer, 0);
  EXPECT_NEAR(beside.step_seconds - on_chip.step_seconds,
              2 * memory.optimizer / 4 / machine.value("streaming_rate"), 1e-7);
  EXPECT_THROW(predict(find_machine("a100-40gb"), graphs.at()(2), settings), Error);
}

// The last stage beside the first shares its chip: one chip fewer, and its time counts with the first's.
TEST(Prediction, StagesMayShareAChip) {
  Graphs graphs("cifar10-cnn");
  const Machine machine = find_machine("gc200");
  PredictSettings settings{.micro_batch = 1, .accumulate = 64, .pipeline = {1, 2, 1}};
  const Prediction apart = predict(machine, graphs.at()(1), settings);
  settings.chips = {0, 1, 0};
  const Prediction together = predict(machine, graphs.at()(1), settings);
  EXPECT_EQ(apart.units, 3);
  EXPECT_EQ(together.units, 2);
  const auto seconds = [](const Prediction& p, std::size_t stage) {
    return p.stages[stage].forward_backward.total();
  };
  EXPECT_NEAR(seconds(together, 0), seconds(apart, 0) + seconds(apart, 2), 1e-3 * seconds(together, 0));
  settings.chips = {0, 2, 0};
  EXPECT_THROW(predict(machine, graphs.at()(1), settings), Error);
}

// The published accuracy is that of the command that a user types.
TEST(Resolver, AnswersARowAsItAnswersACall) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("superstep-row-{}.csv", ::getpid());
  const auto row_rate = [&](const std::string& row) {
    std::ofstream(path) << "id,source,place,workload,mode,machine,units,framework,precision,micro_batch,"
                           "global_batch,replicas,pipeline_stages,grad_accum,metric,value,unit,note\n"
                        << row;
    return *lab::validate(path, {}).rows.front().predicted;
  };
  Graphs graphs("resnet50");
  const auto call_rate = [&](const char* machine, const char* stack, const Stated& stated) {
    const Machine driven = find_machine(machine).driven_by(stack);
    Question question = graphs.question();
    question.software = stack;
    question.stated = stated;
    return answer(driven, question, graphs.at()).prediction.throughput_with_data();
  };
  EXPECT_DOUBLE_EQ(row_rate("a,s,p,resnet50,train,gc200,2,pytorch,mixed,,,2,,,throughput,1,images/s,\n"),
                   call_rate("gc200", "poptorch", {.units = 2}));
  EXPECT_DOUBLE_EQ(
      row_rate("a,s,p,resnet50,train,a100-40gb,8,pytorch,amp,128,2048,8,,,throughput,1,images/s,\n"),
      call_rate("a100-40gb", "pytorch-amp",
                {.precision = "mixed", .micro_batch = 128, .global_batch = 2048, .units = 8}));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace superstep::machine
