// Plans of several lengths say what the full length says; answers to questions are those of the model's
// scores.
#include <gtest/gtest.h>

#include <numeric>

#include "superstep/file/safetensors.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/answer.h"
#include "superstep/run/serve/length_plans.h"
#include "superstep/run/serve/published_weights.h"
#include "tests/expect_error.h"

namespace superstep::run {
namespace {

const std::filesystem::path models = std::filesystem::path(SUPERSTEP_SOURCE) / "tests/language/models";

const std::vector<std::string> of_small = {"layers=2",      "width=32",  "heads=2",
                                           "vocabulary=80", "length=48", "shortest=24"};

class Lengths : public ::testing::Test {
 protected:
  Lengths() : pool_(1) {
    task_ = model_.open_task({.data = {},
                              .samples = 40,
                              .seed = 1,
                              .model_options = of_small,
                              .labels_required = true,
                              .pool = &pool_});
    const graph::Graph graph = model_.inference()(1);
    for (const graph::ValueId id : graph.states()) states_[graph.value(id).name] = graph.value(id).data;
    indices_.resize(40);
    std::iota(indices_.begin(), indices_.end(), 0);
  }

  LengthPlans plans(std::vector<std::int64_t> lengths) {
    LengthPlans plans({.model = model_.settings(),
                       .lengths = std::move(lengths),
                       .compile = {.batch = 4},
                       .target = &target::find_target("cpu")});
    plans.set_parameters(states_, "here");
    return plans;
  }

  Model model_{{.workload = "bert-base-squad", .model_options = of_small}};
  ThreadPool pool_;
  std::unique_ptr<Task> task_;
  std::map<std::string, Tensor> states_;
  std::vector<std::int64_t> indices_;
};

TEST_F(Lengths, SayWhatTheFullLengthSays) {
  Evaluator full(target::find_target("cpu"), model_.inference(&target::find_target("cpu")), {.batch = 4});
  full.set_parameters(states_, "here");
  const std::vector<Tensor> truth = full.predict(*task_, indices_, pool_);
  LengthPlans some = plans({28, 36});
  const std::vector<Tensor> found = some.predict(*task_, indices_, pool_);
  ASSERT_EQ(found.size(), 2u);
  std::int64_t padding = 0;
  for (std::size_t k = 0; k < 2; ++k) {
    ASSERT_EQ(found[k].shape(), truth[k].shape());
    for (std::int64_t row = 0; row < 40; ++row) {
      const std::int64_t used = task_->used_length(row);
      ASSERT_GE(used, 10);
      for (std::int64_t i = 0; i < used; ++i)
        EXPECT_NEAR(found[k].at(48 * row + i), truth[k].at(48 * row + i), 2e-5) << row << ' ' << i;
      for (std::int64_t i = some.length_for(used); i < 48; ++i, ++padding)
        EXPECT_EQ(found[k].at(48 * row + i), padding_score);
    }
  }
  EXPECT_GT(padding, 100);
  // All three were used, and by all samples together.
  ASSERT_EQ(some.used().size(), 3u);
  std::int64_t sum = 0;
  for (const auto& [length, samples] : some.used()) sum += samples;
  EXPECT_EQ(sum, 40);
  EXPECT_EQ(task_->quality(indices_, found)[0].value, task_->quality(indices_, truth)[0].value);
}

TEST_F(Lengths, AreRefusedWhereTheyCannotBe) {
  expect_error(ErrorCode::invalid_argument, {"49 is longer", "48"}, [&] { plans({49}); });
  expect_error(ErrorCode::invalid_argument, {"'x' is no number"}, [] { lengths_from_text("64,x"); });
  EXPECT_EQ(lengths_from_text("64,128"), (std::vector<std::int64_t>{64, 128}));
  EXPECT_EQ(usual_lengths(256), (std::vector<std::int64_t>{64, 128}));
  const auto open = [](const char* workload, std::vector<std::string> options) {
    LengthPlans({.model = {.workload = workload, .model_options = std::move(options)},
                 .lengths = {24},
                 .compile = {.batch = 1},
                 .target = &target::find_target("cpu")});
  };
  expect_error(ErrorCode::unsupported, {"'mlp' is not of sequences"}, [&] { open("mlp", {}); });
  expect_error(ErrorCode::unsupported, {"masked_positions"}, [&] {
    open("bert-large", {"layers=1", "width=16", "heads=2", "vocabulary=80", "length=32"});
  });
}

// By a plan of 64 tokens; the scores of the reference evaluation at the full length say the same.
TEST(Answers, AreThoseOfTheScores) {
  const std::string context =
                        "The beam leaves the ring and meets the crystal. Once upon a time there was a model.",
                    question = "What meets the crystal?";
  const auto tokenizer = [] { return language::Tokenizer::from_file(models / "bert" / "tokenizer.json"); };
  Answerer answerer({.weights = models / "bert"}, tokenizer());
  const Answered said = answerer.ask(question, context, 3);
  EXPECT_EQ(said.lengths, (std::vector<std::int64_t>{64}));

  const auto asked = tokenizer().places_of(question), places = tokenizer().places_of(context);
  std::vector<std::int64_t> ids{tokenizer().first_token()};
  for (const auto& each : asked) ids.push_back(each.token);
  ids.push_back(tokenizer().separator());
  const std::size_t begin = ids.size();
  for (const auto& each : places) ids.push_back(each.token);
  ids.push_back(tokenizer().separator());
  graph::Graph graph = Model(answerer.model()).inference()(1);
  const auto weights = load_published_weights(answerer.model(), models / "bert");
  for (const graph::ValueId id : graph.states()) graph.set_data(id, weights.states.at(graph.value(id).name));
  std::vector<Tensor> inputs;
  for (const graph::ValueId input : graph.inputs()) {
    Tensor tensor(ElementType::i64, {1, 384});
    const std::string& name = graph.value(input).name;
    for (std::size_t i = 0; i < ids.size(); ++i)
      tensor.set(static_cast<std::int64_t>(i), name == "input_ids"        ? static_cast<double>(ids[i])
                                               : name == "token_type_ids" ? (i >= begin ? 1 : 0)
                                                                          : 1);
    inputs.push_back(tensor);
  }
  const auto outputs = op::evaluate(graph, inputs).outputs;
  double best = -1e30;
  std::pair<std::size_t, std::size_t> bytes;
  for (std::size_t first = 0; first < places.size(); ++first)
    for (std::size_t last = first; last < std::min(places.size(), first + 30); ++last)
      if (const double score = outputs[0].at(static_cast<std::int64_t>(begin + first)) +
                               outputs[1].at(static_cast<std::int64_t>(begin + last));
          score > best)
        best = score, bytes = {places[first].begin, places[last].end};
  ASSERT_EQ(said.answers.size(), 3u);
  EXPECT_NEAR(said.answers[0].score, best, 1e-4);
  EXPECT_EQ(std::pair(said.answers[0].begin, said.answers[0].end), bytes);
  EXPECT_EQ(said.answers[0].text, context.substr(bytes.first, bytes.second - bytes.first));
  EXPECT_GE(said.answers[0].share, said.answers[1].share);
  EXPECT_GT(said.answers[1].share, 0);
}

}  // namespace
}  // namespace superstep::run
