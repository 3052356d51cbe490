// Users' model files in the place of workloads: batches, extents, losses, data, and training on them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/user/user_model.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/onnx/proto_builder.h"
#include "tests/run/training_runs.h"
#include "tests/scratch.h"
#include "tests/target/models.h"

namespace superstep::run {
namespace {

namespace on = onnx::testing;

onnx::Message user_dense(const std::string& name, std::int64_t in, std::int64_t out) {
  const Tensor values =
      test::random_tensor(ElementType::f32, {in, out}, static_cast<std::uint64_t>(in + out), 0.5);
  const std::span<const float> span = values.as<float>();
  return on::floats(name, {in, out}, {span.begin(), span.end()});
}

// y = tanh(x A) B, and z = x A.
on::GraphParts two_outputs(const on::Names& x, const on::Names& y) {
  return {.nodes = {on::node("MatMul", {"x", "A"}, {"z"}), on::node("Tanh", {"z"}, {"t"}),
                    on::node("MatMul", {"t", "B"}, {"y"})},
          .inputs = {on::port("x", on::f32, x)},
          .outputs = {on::port("y", on::f32, y), on::port("z", on::f32, {y[0], "6"})},
          .initializers = {user_dense("A", 4, 6), user_dense("B", 6, 3)}};
}

class UserModels : public ::testing::Test {
 protected:
  std::filesystem::path file(const on::GraphParts& parts) {
    const auto path = folder_ / "model.onnx";
    std::ofstream(path, std::ios::binary) << on::model_bytes(on::graph(parts));
    return path;
  }
  UserModel opened(const on::GraphParts& parts, std::vector<std::string> shapes = {}, std::string loss = {},
                   const NamedTensors& data = {}) {
    std::filesystem::path arrays;
    if (!data.empty()) write_arrays(arrays = folder_ / "data.npz", data);
    return UserModel(
        {.file = file(parts), .shapes = std::move(shapes), .loss = std::move(loss), .data = arrays});
  }
  std::unique_ptr<Task> task_of(const UserModel& model, bool labels = true, std::int64_t samples = 0) {
    return model.open_task({.data = folder_ / "data.npz",
                            .samples = samples,
                            .seed = 1,
                            .model_options = {},
                            .labels_required = labels,
                            .pool = &pool_});
  }
  ScratchFolder folder_;
  ThreadPool pool_{1};
};

NamedTensors user_pairs(std::int64_t rows) {
  return {{"x", test::random_tensor(ElementType::f32, {rows, 4}, 1)},
          {"target", test::random_tensor(ElementType::f32, {rows, 3}, 2)}};
}

TEST_F(UserModels, AFileIsOneByItsEnding) {
  EXPECT_TRUE(is_model_file("a/b.onnx"));
  for (const char* name : {"mlp", "onnx", "b.onnx/", "b.h5"}) EXPECT_FALSE(is_model_file(name)) << name;
}

TEST_F(UserModels, TakeAnyBatchWhereTheFileLeavesItOpen) {
  for (const char* open : {"N", "?"}) {
    const UserModel model = opened(two_outputs({open, "4"}, {open, "3"}));
    EXPECT_EQ(model.fixed_batch(), 0);
    for (const std::int64_t batch : {1, 7}) {
      const graph::Graph graph = model.build(batch);
      EXPECT_EQ(graph.type(graph.inputs()[0]).shape, (Shape{batch, 4}));
      EXPECT_EQ(graph.type(graph.outputs()[0].value).shape, (Shape{batch, 3}));
      EXPECT_EQ(graph.states().size(), 2U) << "floating initializers are parameters";
    }
    EXPECT_EQ(model.workload().parameters, 4 * 6 + 6 * 3);
    EXPECT_EQ(model.workload().inputs.at(0).shape, (Shape{4})) << "of one sample";
    EXPECT_EQ(model.workload().training.batch, 32);
  }
}

// A file is not imported again for a batch that was asked for just now: what it holds is the same memory.
TEST_F(UserModels, ImportABatchOnce) {
  const UserModel model = opened(two_outputs({"N", "4"}, {"N", "3"}));
  const auto weights = [](const graph::Graph& graph) { return graph.value(graph.states()[0]).data.bytes(); };
  graph::Graph first = model.build(3);
  const std::byte* const before = weights(first);
  first.set_data(first.states()[0], Tensor(ElementType::f32, first.type(first.states()[0]).shape));
  const graph::Graph again = workload::build_model(model.workload(), 3, {}, 1);
  EXPECT_EQ(weights(again), before) << "a copy of the model, and nobody's changes to a graph";
  for (const std::int64_t batch : {1, 2, 5, 3, 5}) {
    const graph::Graph graph = model.build(batch);
    EXPECT_EQ(graph.type(graph.outputs()[0].value).shape, (Shape{batch, 3}));
  }
  const std::vector<onnx::Initializer> checked =
      onnx::Model::open(folder_ / "model.onnx").check({.parameters_as_state = true}).initializers;
  ASSERT_EQ(model.initializers().size(), checked.size());
  for (std::size_t i = 0; i < checked.size(); ++i) {
    EXPECT_EQ(model.initializers()[i].name, checked[i].name);
    EXPECT_EQ(model.initializers()[i].kind, checked[i].kind);
  }
}

TEST_F(UserModels, KeepToTheBatchThatTheFileFixes) {
  const UserModel model = opened(two_outputs({"5", "4"}, {"5", "3"}));
  EXPECT_EQ(model.fixed_batch(), 5);
  EXPECT_EQ(model.workload().training.batch, 5);
  EXPECT_NO_THROW(model.build(5));
  expect_error(ErrorCode::invalid_argument, {"fixes the batch at 5, it cannot be 6", "use --batch 5"},
               [&] { model.build(6); });
}

// x A, of x [N, length, 4]: an extent that is open and no batch.
on::GraphParts with_length(const std::string& length) {
  return {.nodes = {on::node("MatMul", {"x", "A"}, {"y"})},
          .inputs = {on::port("x", on::f32, {"N", length, "4"})},
          .outputs = {on::port("y", on::f32, {"N", length, "6"})},
          .initializers = {user_dense("A", 4, 6)}};
}

// Of a value by its name, and of what a node of a name gives; what is an output already stays one.
TEST_F(UserModels, KeepValuesThatAreAskedFor) {
  const auto kept = [&](std::vector<std::string> names) {
    return UserModel({.file = file(two_outputs({"N", "4"}, {"N", "3"})),
                      .shapes = {},
                      .keep = std::move(names),
                      .data = {}});
  };
  const UserModel model = kept({"t", "z"});
  ASSERT_EQ(model.workload().outputs.size(), 3U);
  EXPECT_EQ(model.workload().outputs[2].name, "t");
  EXPECT_EQ(model.workload().outputs[2].shape, (Shape{6}));
  EXPECT_EQ(model.build(5).outputs().size(), 3U);
  const graph::Graph five = model.build(5);
  EXPECT_EQ(five.type(five.find_output("t")).shape, (Shape{5, 6})) << "a row for each sample";
  EXPECT_EQ(kept({"*"}).workload().outputs.size(), 3U);
  expect_error(ErrorCode::invalid_argument, {"--keep tanh", "no value and no node"}, [&] { kept({"tanh"}); });
}

TEST_F(UserModels, OtherOpenExtentsAreThoseSaidOfTheDataOrOne) {
  const auto length_of = [](const UserModel& model) {
    return model.build(2).type(model.build(2).inputs()[0]).shape[1];
  };
  EXPECT_EQ(length_of(opened(with_length("length"))), 1);
  EXPECT_EQ(length_of(opened(with_length("length"), {"length=9"})), 9);
  EXPECT_EQ(length_of(opened(with_length("?"), {"x=-1,8,-1"})), 8);
  const NamedTensors seven{{"x", Tensor(ElementType::f32, {3, 7, 4})}};
  EXPECT_EQ(length_of(opened(with_length("length"), {}, {}, seven)), 7);
  EXPECT_EQ(length_of(opened(with_length("length"), {"length=9"}, {}, seven)), 9)
      << "what is said comes first";
  EXPECT_EQ(length_of(opened(with_length("?"), {"x=-1,8,-1"}, {}, seven)), 8);
}

// y = (x A) s + b, where s and b are inputs that have initialisers.
on::GraphParts with_defaults(const on::Names& x) {
  return {.nodes = {on::node("MatMul", {"x", "A"}, {"z"}), on::node("Mul", {"z", "s"}, {"scaled"}),
                    on::node("Add", {"scaled", "b"}, {"y"})},
          .inputs = {on::port("x", on::f32, x), on::port("s", on::f32, {}), on::port("b", on::f32, {"6"})},
          .outputs = {on::port("y", on::f32, {x[0], "6"})},
          .initializers = {user_dense("A", 4, 6), on::floats("s", {}, {1}),
                           on::floats("b", {6}, {1, 2, 3, 4, 5, 6})}};
}

TEST_F(UserModels, AnArrayForAnInputWithAnInitialiserIsUsed) {
  const NamedTensors x{{"x", user_pairs(6).at("x")}};
  NamedTensors scaled = x, shifted = x;
  scaled["s"] = Tensor::scalar(3.0f);
  shifted["b"] = Tensor(ElementType::f32, {6});
  for (const char* batch : {"N", "2"}) {
    const auto outputs = [&](const NamedTensors& data) {
      write_arrays(folder_ / "data.npz", data);
      const InferSettings settings{.workload = file(with_defaults({batch, "4"})).string(),
                                   .input = folder_ / "data.npz",
                                   .output = folder_ / "y.npz",
                                   .batch = 2};
      infer(settings);
      return read_arrays(folder_ / "y.npz").at("y");
    };
    const Tensor plain = outputs(x), three = outputs(scaled), zero = outputs(shifted);
    ASSERT_EQ(plain.shape(), (Shape{6, 6})) << batch;
    for (std::int64_t i = 0; i < 36; ++i) {
      const double bias = static_cast<double>(i % 6 + 1);
      EXPECT_NEAR(zero.at(i), plain.at(i) - bias, 1e-5) << batch << ": the bias that was given is zero";
      EXPECT_NEAR(three.at(i), 3 * (plain.at(i) - bias) + bias, 1e-5) << batch;
    }
  }
}

// Where there are no data, a binding makes it an input.
TEST_F(UserModels, ABindingMakesAnInputOfOneWithAnInitialiser) {
  const auto names = [](const UserModel& model) {
    std::vector<std::string> result;
    for (const workload::PortSpec& port : model.workload().inputs) result.push_back(port.name);
    return result;
  };
  EXPECT_EQ(names(opened(with_defaults({"N", "4"}))), (std::vector<std::string>{"x"}));
  EXPECT_EQ(names(opened(with_defaults({"N", "4"}), {"b=6"})), (std::vector<std::string>{"x", "b"}));
}

TEST_F(UserModels, BindingsThatDoNotFitAreNamed) {
  const auto refused = [&](const char* binding, const std::string& why) {
    expect_error(ErrorCode::invalid_argument, {why, std::string("--shape ") + binding},
                 [&] { opened(with_length("length"), {binding}); });
  };
  refused("x=1,2", "input 'x' has 3 extents, not 2");
  refused("y=1,2", "the model has no input 'y'");
  for (const char* extent : {"0", "-2", "1.5", "many", "", "3 ", "99999999999999999999"})
    refused(fmt::format("length={}", extent).c_str(), fmt::format("'{}' is not an extent", extent));
  refused("length", "the model has no input 'length'");
}

TEST_F(UserModels, LossesNameTheirOutputs) {
  const on::GraphParts parts = two_outputs({"N", "4"}, {"N", "3"});
  const UserModel first = opened(parts);  // nothing said: the first output's mean squared error
  ASSERT_EQ(first.workload().training.loss.terms.size(), 1U);
  EXPECT_EQ(first.workload().training.loss.terms[0].output, "y");
  EXPECT_EQ(first.workload().metrics.at(0).name, "rmse");
  const UserModel both = opened(parts, {}, "mse:y,l1:z");
  ASSERT_EQ(both.workload().training.loss.terms.size(), 2U);
  EXPECT_EQ(both.workload().training.loss.terms[1].kind, transform::LossKind::l1);
  EXPECT_EQ(both.workload().training.loss.terms[1].target, "target.z");
  EXPECT_EQ(both.workload().metrics.at(2).name, "rmse.z");
  const auto refused = [&](const char* loss, std::initializer_list<std::string> why) {
    expect_error(ErrorCode::invalid_argument, why, [&] { opened(parts, {}, loss); });
  };
  refused("mse", {"the model has 2 outputs", "--loss mse:y"});
  refused("mze:y", {"did you mean 'mse'"});
  refused("mse:w", {"has no such output", "--loss mse:w"});
  refused("mse:y,", {"a term has no loss", "--loss mse:y,", "as in mse:y"});
  refused(":y", {"a term has no loss"});
}

// loss = mean over columns of (x A - t)^2: a row for each sample, or one number.
on::GraphParts own_loss(bool rows) {
  on::GraphParts parts{
      .nodes = {on::node("MatMul", {"x", "A"}, {"y"}), on::node("Sub", {"y", "t"}, {"away"}),
                on::node("Mul", {"away", "away"}, {"squares"}),
                rows ? on::node("ReduceMean", {"squares"}, {"loss"},
                                {on::attribute("axes", std::vector<std::int64_t>{1}),
                                 on::attribute("keepdims", 0)})
                     : on::node("ReduceMean", {"squares"}, {"loss"}, {on::attribute("keepdims", 0)})},
      .inputs = {on::port("x", on::f32, {"N", "4"}), on::port("t", on::f32, {"N", "6"})},
      .outputs = {on::port("loss", on::f32, rows ? on::Names{"N"} : on::Names{}),
                  on::port("y", on::f32, {"N", "6"})},
      .initializers = {user_dense("A", 4, 6)}};
  return parts;
}

TEST_F(UserModels, AnOutputMayBeTheLoss) {
  const NamedTensors data{{"x", test::random_tensor(ElementType::f32, {20, 4}, 1)},
                          {"t", test::random_tensor(ElementType::f32, {20, 6}, 2)}};
  const UserModel model = opened(own_loss(true), {}, "value:loss", data);
  ASSERT_EQ(model.workload().metrics.size(), 1U);
  EXPECT_EQ(model.workload().metrics[0].name, "loss");
  EXPECT_FALSE(model.workload().metrics[0].higher_is_better);
  const auto task = task_of(model);
  EXPECT_TRUE(task->has_labels()) << "there is something to train on, and nothing beside the inputs";
  std::vector<Tensor> outputs;
  outputs.push_back(Tensor::from<float>({2}, {1, 4}));
  outputs.emplace_back(ElementType::f32, Shape{2, 6});
  const std::vector<std::int64_t> indices{18, 19};
  EXPECT_EQ(task->quality(indices, outputs).at(0).value, 2.5);
  EXPECT_EQ(opened(own_loss(true), {}, "value:loss,mse:y").workload().metrics.back().name, "loss.loss");
}

TEST_F(UserModels, ALossOfAWholeBatchIsRefusedWithWhatToDo) {
  const NamedTensors data{{"x", test::random_tensor(ElementType::f32, {20, 4}, 1)},
                          {"t", test::random_tensor(ElementType::f32, {20, 6}, 2)}};
  const UserModel model = opened(own_loss(false), {}, "value:loss", data);
  expect_error(ErrorCode::unsupported, {"output 'loss'", "reduction='none'", "Model.gradient"},
               [&] { task_of(model); });
}

TEST_F(UserModels, DataAreSplitInOrder) {
  const UserModel model = opened(two_outputs({"N", "4"}, {"N", "3"}), {}, {}, user_pairs(20));
  const auto task = task_of(model);
  EXPECT_EQ(task->size(), 20);
  EXPECT_EQ(task->training_count(), 16);
  std::vector<Tensor> batch;
  batch.emplace_back(ElementType::f32, Shape{2, 4});
  batch.emplace_back(ElementType::f32, Shape{2, 3});
  const std::vector<std::int64_t> indices{19, 0};
  task->fill(indices, 0, true, batch);
  const NamedTensors data = user_pairs(20);
  EXPECT_EQ(batch[0].at(0), data.at("x").at(19 * 4));
  EXPECT_EQ(batch[1].at(3), data.at("target").at(0));
  EXPECT_EQ(task_of(model, true, 10)->size(), 10) << "a limit on the file's samples";
}

TEST_F(UserModels, QualityHasItsClosedForm) {
  const UserModel model = opened(two_outputs({"N", "4"}, {"N", "3"}), {}, {}, user_pairs(6));
  const auto task = task_of(model);
  const std::vector<std::int64_t> indices{4, 5};
  std::vector<Tensor> outputs;
  outputs.emplace_back(ElementType::f32, Shape{2, 3});
  outputs.emplace_back(ElementType::f32, Shape{2, 6});
  const Tensor truth = user_pairs(6).at("target");
  for (std::int64_t i = 0; i < 6; ++i) outputs[0].set(i, truth.at(12 + i) + (i == 0 ? 3 : i == 5 ? -1 : 0));
  const auto found = task->quality(indices, outputs);
  EXPECT_NEAR(found.at(0).value, std::sqrt(10.0 / 6), 1e-6);
  EXPECT_NEAR(found.at(1).value, 4.0 / 6, 1e-6);
}

// Three scores of every sample; labels that are classes.
TEST_F(UserModels, ClassesAreCounted) {
  NamedTensors data = user_pairs(5);
  data.erase("target");
  data["target.y"] = Tensor(ElementType::i64, {5});
  for (std::int64_t i = 0; i < 5; ++i) data["target.y"].set(i, static_cast<double>(i % 3));
  const UserModel model = opened(two_outputs({"N", "4"}, {"N", "3"}), {}, "cross_entropy:y", data);
  EXPECT_TRUE(model.workload().metrics.at(1).higher_is_better);
  std::vector<Tensor> outputs;
  outputs.emplace_back(ElementType::f32, Shape{2, 3});
  outputs.emplace_back(ElementType::f32, Shape{2, 6});
  outputs[0].set(0, std::log(2.0));  // of label 0: 2 of 4 parts
  outputs[0].set(3, 1);              // of label 1: 1 of e + 2 parts, and wrong
  const std::vector<std::int64_t> indices{0, 1};
  const auto found = task_of(model)->quality(indices, outputs);
  EXPECT_NEAR(found.at(0).value, (std::log(2.0) + std::log(std::exp(1.0) + 2)) / 2, 1e-6);
  EXPECT_EQ(found.at(1).value, 0.5);
  data["target.y"].set(4, 3);
  expect_error(ErrorCode::bad_file, {"element 4 is 3", "3 classes apart: 0 to 2"}, [&] {
    const UserModel other = opened(two_outputs({"N", "4"}, {"N", "3"}), {}, "cross_entropy:y", data);
    task_of(other);
  });
}

TEST_F(UserModels, DataThatDoNotFitAreNamed) {
  const on::GraphParts parts = two_outputs({"N", "4"}, {"N", "3"});
  const auto refused = [&](const NamedTensors& data, std::initializer_list<std::string> why) {
    expect_error(ErrorCode::bad_file, why, [&] { task_of(opened(parts, {}, {}, data)); });
  };
  NamedTensors data = user_pairs(6);
  data["x"] = Tensor(ElementType::f32, {6, 5});
  refused(data, {"has shape [6,5]", "array 'x'"});
  data = user_pairs(6);
  data["target"] = Tensor(ElementType::f32, {5, 3});
  refused(data, {"has 5 samples, another array 6", "array 'target'"});
  data = user_pairs(6);
  data.erase("target");
  refused(data, {"has no array 'target' or 'y' to train towards"});
  data = user_pairs(6);
  data["other"] = data["x"];
  data.erase("x");
  refused(data, {"has no array 'x', an input of the model", "it has 'other', 'target'"});
}

// A class of 2^32 + 1 is not class 1.
TEST_F(UserModels, IntegersThatTheModelsTypeDoesNotHoldAreNamed) {
  constexpr std::int64_t i32 = 6;
  const on::GraphParts parts{.nodes = {on::node("Gather", {"A", "x"}, {"y"})},
                             .inputs = {on::port("x", i32, {"N"})},
                             .outputs = {on::port("y", on::f32, {"N", "6"})},
                             .initializers = {user_dense("A", 4, 6)}};
  const auto open = [&](const Tensor& x) {
    return task_of(opened(parts, {}, {}, {{"x", x}, {"target", Tensor(ElementType::f32, {2, 6})}}));
  };
  EXPECT_EQ(open(Tensor::from<std::int64_t>({2}, {3, 1}))->size(), 2);
  for (const auto& [x, value] :
       {std::pair(Tensor::from<std::int64_t>({2}, {0, (1L << 32) + 1}), "4294967297 at [1]"),
        {Tensor::from<double>({2}, {0.5, 1}), "0.5 at [0]"},
        {Tensor::from<double>({2}, {1e20, 1}), "1e+20 at [0]"}})
    expect_error(ErrorCode::bad_file, {value, "array 'x'", "whole numbers of i32"}, [&, x = x] { open(x); });
}

TEST_F(UserModels, AreServedOnDataWhoseTargetsAreOfAnotherLoss) {
  NamedTensors data = user_pairs(6);
  data["target"] = Tensor(ElementType::i64, {6});
  const UserModel model = opened(two_outputs({"N", "4"}, {"N", "3"}), {}, {}, data);
  EXPECT_FALSE(task_of(model, false)->has_labels());
  expect_error(ErrorCode::bad_file, {"has shape [6]", "array 'target'"}, [&] { task_of(model); });
}

TEST_F(UserModels, WithoutDataServeRandomOnes) {
  const UserModel model = opened(two_outputs({"N", "4"}, {"N", "3"}));
  const TaskSettings settings{
      .data = {}, .samples = 3, .seed = 1, .model_options = {}, .labels_required = false, .pool = &pool_};
  const auto task = model.open_task(settings);
  EXPECT_EQ(task->size(), 3);
  EXPECT_FALSE(task->has_labels());
  std::vector<Tensor> inputs;
  inputs.emplace_back(ElementType::f32, Shape{3, 4});
  const std::vector<std::int64_t> indices{0, 1, 2};
  task->fill_inputs(indices, inputs, pool_);
  for (std::int64_t i = 0; i < 12; ++i) {
    EXPECT_GE(inputs[0].at(i), 0);
    EXPECT_LT(inputs[0].at(i), 1);
  }
  TaskSettings labels = settings;
  labels.labels_required = true;
  expect_error(ErrorCode::invalid_argument,
               {"trained on data of your own", "--data", "the arrays x and target"},
               [&] { model.open_task(labels); });
}

// As a workload of the zoo: it learns, is stopped, goes on with the same bits, and is written back with the
// names that it came with.
TEST_F(UserModels, TrainAndGoOnAndComeBack) {
  write_arrays(folder_ / "pairs.npz", user_pairs(64));
  const TrainSettings settings{.workload = file(two_outputs({"N", "4"}, {"N", "3"})).string(),
                               .data = folder_ / "pairs.npz",
                               .batch = 8,
                               .replicas = 2,
                               .epochs = 5,
                               .optimizer = "adam",
                               .learning_rate = 0.02};
  train(settings, {.out = folder_ / "whole"});
  TrainSettings half = settings;
  half.steps = 13;
  train(half, {.out = folder_ / "cut"});
  train(settings, {.out = folder_ / "cut", .resume = true});
  test::expect_same_states(test::newest_checkpoint(folder_ / "whole"),
                           test::newest_checkpoint(folder_ / "cut"));
  const auto log = RunDirectory::open(folder_ / "whole").read_log();
  EXPECT_LT(log[4].at("loss").get<double>(), 0.9 * log[0].at("loss").get<double>());
  const UserModel back({.file = folder_ / "whole/model.onnx"});
  const graph::Graph graph = back.build(2);
  EXPECT_EQ(graph.outputs()[0].name, "y");
  const auto trained = test::newest_checkpoint(folder_ / "whole").states;
  for (const graph::ValueId id : graph.states()) {
    EXPECT_EQ(graph.value(id).data.at(0), trained.at(graph.value(id).name).at(0)) << graph.value(id).name;
  }
}

// A graph: what its nodes [4, 3] at the beginnings of its edges [2, 5] say, averaged: y [2].
on::GraphParts graph_net(const on::Names& nodes, const on::Names& edges) {
  return {
      .nodes = {on::node("MatMul", {"nodes", "A"}, {"hidden"}),
                on::node("Gather", {"edges", "from"}, {"sources"}, {on::attribute("axis", 0)}),
                on::node("Gather", {"hidden", "sources"}, {"messages"}, {on::attribute("axis", 0)}),
                on::node("ReduceMean", {"messages"}, {"pooled"},
                         {on::attribute("axes", std::vector<std::int64_t>{0}), on::attribute("keepdims", 0)}),
                on::node("MatMul", {"pooled", "B"}, {"y"})},
      .inputs = {on::port("nodes", on::f32, nodes), on::port("edges", on::i64, edges)},
      .outputs = {on::port("y", on::f32, {"2"})},
      .initializers = {user_dense("A", 3, 6), user_dense("B", 6, 2), on::integers("from", {}, {0})}};
}

NamedTensors graphs(std::int64_t count) {
  Tensor edges(ElementType::i64, {count, 2, 5});
  for (std::int64_t i = 0; i < edges.element_count(); ++i) edges.set(i, static_cast<double>(i * 7 % 4));
  return {{"nodes", test::random_tensor(ElementType::f32, {count, 4, 3}, 1)},
          {"edges", std::move(edges)},
          {"target", test::random_tensor(ElementType::f32, {count, 2}, 2)}};
}

TEST_F(UserModels, TakeOneSampleACallWhereFirstExtentsDiffer) {
  const std::pair<on::Names, on::Names> forms[] = {
      {{"4", "3"}, {"2", "5"}}, {{"n", "3"}, {"2", "e"}}, {{"n", "3"}, {"2", "5"}}};
  for (const auto& [nodes, edges] : forms) {
    const UserModel model = opened(graph_net(nodes, edges), {}, {}, graphs(10));
    EXPECT_TRUE(model.one_a_call());
    EXPECT_TRUE(model.numbers_samples());
    EXPECT_EQ(model.fixed_batch(), 1);
    EXPECT_EQ(model.whole_outputs(), (std::vector<std::string>{"y"}));
    EXPECT_EQ(task_of(model)->size(), 10);
    expect_error(ErrorCode::invalid_argument, {"all that the model takes is one sample"},
                 [&] { model.build(2); });
  }
  NamedTensors single = graphs(1);
  for (auto& [name, array] : single) {
    const auto& extents = array.shape().extents();
    array = array.reshaped(Shape(std::vector<std::int64_t>(extents.begin() + 1, extents.end())));
  }
  const UserModel model = opened(graph_net({"n", "3"}, {"2", "e"}), {}, {}, single);
  EXPECT_FALSE(model.numbers_samples());
  EXPECT_EQ(task_of(model)->size(), 1) << "arrays of the model's shapes are one sample";
}

TEST_F(UserModels, TrainOnSeveralGraphs) {
  write_arrays(folder_ / "pairs.npz", graphs(20));
  const TrainSettings settings{.workload = file(graph_net({"n", "3"}, {"2", "e"})).string(),
                               .data = folder_ / "pairs.npz",
                               .epochs = 12,
                               .optimizer = "adam",
                               .learning_rate = 0.01};
  std::vector<std::string> told;
  train(settings, {.out = folder_ / "run", .tell = [&](const std::string& line) { told.push_back(line); }});
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0], "trained: 2 of 2 initializers, 30 values");
  const auto log = RunDirectory::open(folder_ / "run").read_log();
  EXPECT_LT(log[11].at("loss").get<double>(), 0.9 * log[0].at("loss").get<double>());
  EXPECT_TRUE(log[11].contains("rmse"));
}

// y [N, 3] has rows; its mean over the batch has none.
on::GraphParts with_whole_outputs() {
  on::GraphParts parts = two_outputs({"N", "4"}, {"N", "3"});
  parts.nodes.push_back(
      on::node("ReduceMean", {"y"}, {"mean"},
               {on::attribute("axes", std::vector<std::int64_t>{0}), on::attribute("keepdims", 0)}));
  parts.outputs.push_back(on::port("mean", on::f32, {"3"}));
  return parts;
}

TEST_F(UserModels, KnowWhichOutputsHaveARowASample) {
  const UserModel model = opened(with_whole_outputs());
  EXPECT_EQ(model.fixed_batch(), 0);
  EXPECT_EQ(model.whole_outputs(), (std::vector<std::string>{"mean"}));
  expect_error(ErrorCode::unsupported, {"is f32[3] for a whole batch", "output 'mean'"},
               [&] { opened(with_whole_outputs(), {}, "mse:mean").require_trainable(); });
}

TEST_F(UserModels, WriteOutputsOfAWholeCallAsTheyAre) {
  const std::string name = file(with_whole_outputs()).string();
  write_arrays(folder_ / "x.npz", {{"x", test::random_tensor(ElementType::f32, {6, 4}, 1)}});
  const auto mean_of = [&](std::int64_t batch) {
    InferSettings settings;
    settings.workload = name;
    settings.input = folder_ / "x.npz";
    settings.output = folder_ / "y.npz";
    settings.batch = batch;
    infer(settings);
    return read_arrays(folder_ / "y.npz").at("mean");
  };
  EXPECT_EQ(mean_of(6).shape(), (Shape{3}));
  const Tensor halves = mean_of(3);
  ASSERT_EQ(halves.shape(), (Shape{2, 3})) << "of two calls";
  const Tensor y = read_arrays(folder_ / "y.npz").at("y");
  for (std::int64_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(halves.at(k), (y.at(k) + y.at(3 + k) + y.at(6 + k)) / 3, 1e-6);
    EXPECT_NEAR(halves.at(3 + k), (y.at(9 + k) + y.at(12 + k) + y.at(15 + k)) / 3, 1e-6);
  }
}

// Of work in which nothing is calibrated: less than all of it took.
TEST_F(UserModels, SayHowLongTheirStartTook) {
  InferSettings settings;
  settings.workload = file(two_outputs({"N", "4"}, {"N", "3"})).string();
  settings.output = folder_ / "y.npz";
  const Stopwatch whole;
  const std::vector<Metric> metrics = infer(settings).metrics;
  const double seconds = whole.seconds();
  EXPECT_EQ(metrics.front().name, "throughput") << "timed after the answers, told before";
  const auto start = std::ranges::find(metrics, "start", &Metric::name);
  ASSERT_NE(start, metrics.end());
  EXPECT_GT(start->value, 0);
  EXPECT_LT(start->value, seconds);
  EXPECT_EQ(start->unit, "s");
}

// Adds to each sample its place in the batch: no file is right for every batch.
on::GraphParts of_its_batch() {
  on::GraphParts parts = two_outputs({"N", "4"}, {"N", "3"});
  parts.nodes.back() = on::node("MatMul", {"u", "B"}, {"y"});
  parts.nodes.insert(
      parts.nodes.begin() + 2,
      {on::node("Shape", {"t"}, {"shape"}), on::node("Gather", {"shape", "zero"}, {"count"}),
       on::node("Range", {"zero", "count", "one"}, {"places"}),
       on::node("Cast", {"places"}, {"numbers"}, {on::attribute("to", 1)}),
       on::node("Unsqueeze", {"numbers", "last"}, {"column"}), on::node("Add", {"t", "column"}, {"u"})});
  parts.initializers.push_back(on::integers("zero", {}, {0}));
  parts.initializers.push_back(on::integers("one", {}, {1}));
  parts.initializers.push_back(on::integers("last", {1}, {1}));
  return parts;
}

TEST_F(UserModels, SayBeforeATrainingForWhichBatchTheyWillBeWritten) {
  write_arrays(folder_ / "pairs.npz", user_pairs(20));
  const TrainSettings settings{
      .workload = file(of_its_batch()).string(), .data = folder_ / "pairs.npz", .batch = 4, .steps = 3};
  std::vector<std::string> told;
  train(settings, {.out = folder_ / "run", .tell = [&](const std::string& line) { told.push_back(line); }});
  ASSERT_EQ(told.size(), 2U);
  EXPECT_TRUE(contains(told[1], "model.onnx will be of batches of 4: ")) << told[1];
  EXPECT_EQ(UserModel({.file = folder_ / "run/model.onnx"}).fixed_batch(), 4);
}

TEST_F(UserModels, TakeNoLargerBatchThanTheyHaveSamples) {
  EXPECT_EQ(opened(two_outputs({"N", "4"}, {"N", "3"}), {}, {}, user_pairs(20)).workload().training.batch,
            16);
  EXPECT_EQ(opened(two_outputs({"N", "4"}, {"N", "3"}), {}, {}, user_pairs(400)).workload().training.batch,
            32);
}

// Attention as PyTorch exports it, time first: its weights [40, 2, 2] have no row for each of the two samples
// of the file's batch. Every value of its training step is written before it is read, however many threads
// share it.
TEST_F(UserModels, TrainAttentionAsPyTorchExportsIt) {
  write_arrays(folder_ / "pairs.npz", {{"x", test::random_tensor(ElementType::f32, {20, 40, 32}, 1)},
                                       {"target", test::random_tensor(ElementType::f32, {20, 40, 32}, 2)}});
  for (const char* precision : {"f32", "bf16"})
    for (const int threads : {1, 2, 3}) {
      const TrainSettings settings{.workload = SUPERSTEP_SOURCE "/tests/onnx/models/attention/model.onnx",
                                   .precision = precision,
                                   .data = folder_ / "pairs.npz",
                                   .replicas = threads,
                                   .epochs = 3,
                                   .optimizer = "adam",
                                   .learning_rate = 0.003};
      const auto out = folder_ / fmt::format("{}{}", precision, threads);
      train(settings, {.out = out});
      const auto log = RunDirectory::open(out).read_log();
      EXPECT_LT(log[2].at("loss").get<double>(), 0.95 * log[0].at("loss").get<double>())
          << precision << threads;
      const UserModel back({.file = out / "model.onnx"});
      EXPECT_EQ(back.whole_outputs().size(), 1U);
    }
}

}  // namespace
}  // namespace superstep::run
