// Weights of other programs in the models of the zoo: transformers' logits come out, and what does not fit is
// listed.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/base/file.h"
#include "superstep/file/safetensors.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/export.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/serve/published_weights.h"
#include "superstep/run/train/train.h"
#include "superstep/run/user/user_model.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

const std::filesystem::path models = std::filesystem::path(SUPERSTEP_SOURCE) / "tests/language/models";
constexpr std::int64_t length = 12;

const std::vector<std::string> of_llama = {"width=16",  "inner=24",       "heads=4",     "key-heads=2",
                                           "length=12", "vocabulary=384", "epsilon=1e-6"};

struct Case {
  const char* folder;
  TrainSettings settings;
  std::size_t unused = 0;
};

std::vector<std::string> with(std::vector<std::string> options, std::initializer_list<const char*> more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

std::vector<Case> cases() {
  return {
      {"llama", {.workload = "llama", .model_options = of_llama}},
      {"llama3",
       {.workload = "llama",
        .model_options = with(of_llama, {"tied=yes", "base=500", "rope-scaling=llama3:4,1,4,8"})}},
      {"gguf", {.workload = "llama", .model_options = with(of_llama, {"width=32", "inner=64"})}},
      {"gpt2",
       {.workload = "gpt2",
        .model_options = {"layers=2", "width=16", "heads=4", "length=12", "positions=64", "vocabulary=384"}},
       1},  // the head of scores, which is the table of embeddings once more
      {"distilbert",
       {.workload = "distilbert",
        .model_options = {"layers=2", "width=16", "heads=4", "length=12", "vocabulary=384"}}},
  };
}

Tensor of_reference(const char* folder, const char* name) {
  return data::read_safetensors(models / folder / "expected.safetensors").tensors.at(name);
}

std::vector<Tensor> inputs_of(const graph::Graph& graph, const Tensor& ids) {
  std::vector<Tensor> inputs;
  for (const graph::ValueId input : graph.inputs())
    inputs.push_back(graph.value(input).name == "input_ids" ? ids
                                                            : Tensor::full(ElementType::i64, ids.shape(), 1));
  return inputs;
}

class PublishedModels : public ::testing::TestWithParam<Case> {};

TEST_P(PublishedModels, GiveTransformersLogits) {
  const PublishedWeights weights = load_published_weights(GetParam().settings, models / GetParam().folder);
  EXPECT_EQ(weights.unused.size(), GetParam().unused);
  const Tensor ids = of_reference(GetParam().folder, "input_ids"),
               truth = of_reference(GetParam().folder, "logits");
  graph::Graph graph = Model(GetParam().settings).inference()(2);
  for (const graph::ValueId id : graph.states()) graph.set_data(id, weights.states.at(graph.value(id).name));
  const Tensor logits = op::evaluate(graph, inputs_of(graph, ids)).outputs[0];
  ASSERT_EQ(logits.element_count(), truth.element_count());
  double largest = 0, worst = 0;
  for (std::int64_t i = 0; i < truth.element_count(); ++i) {
    largest = std::max(largest, std::abs(truth.at(i)));
    worst = std::max(worst, std::abs(logits.at(i) - truth.at(i)));
  }
  EXPECT_LT(worst, 1e-5 * largest);
}

INSTANTIATE_TEST_SUITE_P(Models, PublishedModels, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return std::string(test.param.folder); });

// The same shapes, and another model.
TEST(PublishedWeights, NumbersThatShapesDoNotTellMustAgree) {
  const auto load = [](std::vector<std::string> options) {
    load_published_weights({.workload = "llama", .model_options = std::move(options)}, models / "llama");
  };
  EXPECT_NO_THROW(load(of_llama));
  for (const char* option : {"epsilon=1e-5", "base=500", "rope-scaling=linear:2"})
    expect_error(ErrorCode::invalid_argument, {std::string(option).substr(0, 4), "--set"},
                 [&] { load(with(of_llama, {option})); });
  std::vector<std::string> two_heads = of_llama;
  for (std::string& option : two_heads)
    option = option == "heads=4" ? "heads=8" : option == "key-heads=2" ? "key-heads=4" : option;
  expect_error(ErrorCode::invalid_argument, {"heads=4 (given: 8)", "key-heads=2 (given: 4)"},
               [&] { load(two_heads); });
  expect_error(ErrorCode::bad_file, {"differ"}, [&] { load(with(of_llama, {"layers=3"})); });
  expect_error(ErrorCode::unsupported, {"leave out", "model.layers.1."},
               [&] { load(with(of_llama, {"layers=1"})); });
}

// Of a model that answers questions: transformers' scores of first and last tokens.
TEST(PublishedWeights, GiveTransformersAnswers) {
  const TrainSettings settings{
      .workload = "bert-base-squad",
      .model_options = {"layers=2", "width=16", "heads=4", "length=12", "vocabulary=384"}};
  const PublishedWeights weights = load_published_weights(settings, models / "bert");
  EXPECT_TRUE(weights.unused.empty());
  graph::Graph graph = Model(settings).inference()(2);
  for (const graph::ValueId id : graph.states()) graph.set_data(id, weights.states.at(graph.value(id).name));
  const Tensor ids = of_reference("bert", "input_ids");
  std::vector<Tensor> inputs;
  for (const graph::ValueId input : graph.inputs()) {
    const std::string& name = graph.value(input).name;
    inputs.push_back(name == "input_ids"        ? ids
                     : name == "token_type_ids" ? of_reference("bert", "token_type_ids")
                                                : Tensor::full(ElementType::i64, ids.shape(), 1));
  }
  const auto outputs = op::evaluate(graph, inputs).outputs;
  for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
    const Tensor truth = of_reference("bert", k == 0 ? "start" : "end");
    ASSERT_EQ(outputs[k].element_count(), truth.element_count());
    double largest = 0, worst = 0;
    for (std::int64_t i = 0; i < truth.element_count(); ++i) {
      largest = std::max(largest, std::abs(truth.at(i)));
      worst = std::max(worst, std::abs(outputs[k].at(i) - truth.at(i)));
    }
    EXPECT_LT(worst, 1e-5 * largest) << k;
  }
}

// The outputs of a model filled with a folder's weights, of inputs by name.
std::vector<Tensor> said_by(const TrainSettings& settings, const char* folder,
                            const std::map<std::string, Tensor>& inputs) {
  const PublishedWeights weights = load_published_weights(settings, models / folder);
  EXPECT_TRUE(weights.unused.empty()) << weights.unused[0];
  graph::Graph graph = Model(settings).inference()(2);
  for (const graph::ValueId id : graph.states()) graph.set_data(id, weights.states.at(graph.value(id).name));
  std::vector<Tensor> given;
  for (const graph::ValueId input : graph.inputs()) given.push_back(inputs.at(graph.value(input).name));
  return op::evaluate(graph, given).outputs;
}

void expect_close(const Tensor& found, const Tensor& truth) {
  ASSERT_EQ(found.element_count(), truth.element_count());
  double largest = 0, worst = 0;
  for (std::int64_t i = 0; i < truth.element_count(); ++i) {
    largest = std::max(largest, std::abs(truth.at(i)));
    worst = std::max(worst, std::abs(found.at(i) - truth.at(i)));
  }
  EXPECT_LT(worst, 1e-5 * largest);
}

// Both heads of pre-training, at two places that are asked for.
TEST(PublishedWeights, GiveTransformersHiddenWords) {
  const char* folder = "bert-pretraining";
  const TrainSettings settings{
      .workload = "bert-large",
      .model_options = {"layers=2", "width=16", "heads=4", "length=12", "vocabulary=128"}};
  const Tensor ids = of_reference(folder, "input_ids"), words = of_reference(folder, "logits");
  const auto outputs = said_by(settings, folder,
                               {{"input_ids", ids},
                                {"token_type_ids", of_reference(folder, "token_type_ids")},
                                {"attention_mask", Tensor::full(ElementType::i64, ids.shape(), 1)},
                                {"masked_positions", Tensor::from<std::int64_t>({2, 2}, {3, 7, 0, 11})}});
  Tensor wanted(ElementType::f64, {2, 2, 128});
  const std::int64_t places[] = {3, 7, 12 + 0, 12 + 11};
  for (std::int64_t k = 0; k < 4; ++k)
    for (std::int64_t i = 0; i < 128; ++i) wanted.set(k * 128 + i, words.at(places[k] * 128 + i));
  expect_close(outputs[0], wanted);
  expect_close(outputs[1], of_reference(folder, "next_sentence"));
}

TEST(PublishedWeights, GiveTransformersClasses) {
  const TrainSettings settings{.workload = "vit-base",
                               .model_options = {"size=32", "patch=16", "layers=2", "width=16", "heads=4",
                                                 "classes=5", "epsilon=1e-12"}};
  const std::string input = workload::find_workload("vit-base").inputs[0].name;
  expect_close(said_by(settings, "vit", {{input, of_reference("vit", "pixels")}})[0],
               of_reference("vit", "logits"));
}

TEST(PublishedWeights, ListEverythingThatDiffers) {
  TrainSettings settings{.workload = "llama", .model_options = with(of_llama, {"layers=3", "inner=28"})};
  expect_error(ErrorCode::bad_file,
               {"15 of 30 arrays differ",
                "layer0.gate.weight [16,28] is model.layers.0.mlp.gate_proj.weight [24,16] in the file",
                "layer1.outer.weight [28,16] is model.layers.1.mlp.down_proj.weight [16,24] in the file",
                "layer2.attention.norm.weight [16] is missing: no layers.2.input_layernorm.weight or "
                "blk.2.attn_norm.weight",
                "--set"},
               [&] { load_published_weights(settings, models / "llama"); });
  settings.workload = "mlp", settings.model_options = {};
  expect_error(ErrorCode::unsupported, {"'mlp'"},
               [&] { load_published_weights(settings, models / "llama"); });
}

TEST(PublishedWeights, BeginATraining) {
  const ScratchFolder folder;
  const TrainSettings settings{.workload = "llama",
                               .model_options = with(of_llama, {"length=16"}),
                               .weights = models / "llama",
                               .samples = 40,
                               .batch = 4,
                               .steps = 2};
  TrainSettings drawn = settings;
  drawn.weights.clear();
  const auto first_loss = [&](const TrainSettings& each, const char* name) {
    train(each, {.out = folder / name});
    return read_text_file(folder / name / "metrics.jsonl");
  };
  EXPECT_NE(first_loss(settings, "a"), first_loss(drawn, "b"));
  EXPECT_TRUE(std::filesystem::exists(folder / "a" / "model.onnx"));
}

TEST(PublishedWeights, AreServedAndExported) {
  const ScratchFolder folder;
  const InferReport report = infer({.workload = "gpt2",
                                    .model_options = with(cases()[3].settings.model_options, {"length=16"}),
                                    .weights = models / "gpt2",
                                    .batch = 2,
                                    .samples = 4});
  EXPECT_EQ(report.unused_weights, std::vector<std::string>{"lm_head.weight"});
  ExportSettings exported;
  exported.model = cases()[3].settings;
  exported.weights = models / "gpt2";
  exported.out = folder / "gpt2.onnx";
  export_onnx(exported);
  const UserModel again({.file = folder / "gpt2.onnx"});
  const graph::Graph graph = again.workload().build(2, Options({}, {}), 1);
  const Tensor truth = of_reference("gpt2", "logits");
  const Tensor logits = op::evaluate(graph, inputs_of(graph, of_reference("gpt2", "input_ids"))).outputs[0];
  double largest = 0, worst = 0;
  for (std::int64_t i = 0; i < truth.element_count(); ++i) {
    largest = std::max(largest, std::abs(truth.at(i)));
    worst = std::max(worst, std::abs(logits.at(i) - truth.at(i)));
  }
  EXPECT_LT(worst, 1e-5 * largest);
}

}  // namespace
}  // namespace superstep::run
