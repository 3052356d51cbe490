// The C++ interface: a model compiled, run, trained, saved, exported, in the words of its header.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "superstep/superstep.h"
#include "tests/keep_written.h"
#include "tests/processor.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;

class Api : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override {
    keep_written(folder_, "Api");
    fs::remove_all(folder_);
  }

  const fs::path folder_ = fs::temp_directory_path() / ("superstep_api_" + std::to_string(getpid()));
};

Tensor filled(const Port& port, double phase) {
  Tensor tensor(port.element, port.shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, std::sin(phase + 0.1 * static_cast<double>(i)));
  return tensor;
}

std::vector<Tensor> filled(const std::vector<Port>& ports) {
  std::vector<Tensor> tensors;
  for (const Port& port : ports) tensors.push_back(filled(port, static_cast<double>(tensors.size())));
  return tensors;
}

double distance(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  double most = 0;
  for (std::int64_t i = 0; i < a.element_count(); ++i) most = std::max(most, std::abs(a.at(i) - b.at(i)));
  return most;
}

ErrorCode code_of(const std::function<void()>& body, const std::string& words) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::internal;
}

// Three bright pixels of 16 x 16.
Tensor picture_of_three(const Port& port) {
  Tensor picture(port.element, port.shape);
  for (const std::int64_t i : {5, 77, 200}) picture.set(i, 1.0);
  return picture;
}

TEST_F(Api, ResultsOfUnknownLengthAreBounded) {
  EXPECT_EQ(code_of([] { Model(DETECTOR_FILE).compile({.threads = 1}); }, "bright_NonZero"),
            ErrorCode::unsupported);
  for (const bool wide : {true, false}) {
    Session session = Model(DETECTOR_FILE, {.bounds = {wide ? "*=all" : "*=2"}}).compile({.threads = 1});
    const NamedValues found = session.run({{"picture", picture_of_three(session.inputs().front())}});
    ASSERT_EQ(found.contains("beyond_bounds"), !wide)
        << "a bound that may be too small has a count of what it left out";
    if (!wide) {
      EXPECT_GT(found.at("beyond_bounds").at(0), 0);
    }
    EXPECT_EQ(found.at("where").shape()[1], wide ? 256 : 2);
    EXPECT_EQ(found.at("where").at(3 * found.at("where").shape()[1]), 5)
        << "columns of the first bright pixel";
  }
  EXPECT_EQ(code_of([] { Model(DETECTOR_FILE, {.bounds = {"bright_NonZero"}}); }, "bright_NonZero"),
            ErrorCode::invalid_argument);
}

TEST_F(Api, SaysWhatThereIs) {
  EXPECT_EQ(version().substr(0, 2), "0.");
  const auto models = zoo(), places = targets();
  EXPECT_NE(std::ranges::find(models, "braggnn"), models.end());
  EXPECT_NE(std::ranges::find(places, "cpu"), places.end());
}

TEST_F(Api, PortsAreThoseOfTheBatch) {
  const Model model("braggnn");
  ASSERT_EQ(model.inputs(5).size(), 1u);
  EXPECT_EQ(model.inputs(5)[0].name, "patch");
  EXPECT_EQ(model.inputs(5)[0].shape, (Shape{5, 1, 11, 11}));
  EXPECT_EQ(model.outputs()[0].shape, (Shape{1, 2}));
  EXPECT_EQ(model.targets(5)[0].shape, (Shape{5, 2}));
  const Session session = model.compile({.batch = 5, .threads = 1});
  EXPECT_EQ(session.inputs()[0].shape, (Shape{5, 1, 11, 11}));
  EXPECT_EQ(session.plan().batch, 5);
  EXPECT_GT(session.plan().flops, 1e6);
}

// Whatever the batch, the precision and the number of threads, the outputs are the same but for rounding.
TEST_F(Api, RunsAtAnyBatchPrecisionAndThreads) {
  const Model model("braggnn");
  const Tensor input = filled(model.inputs(6)[0], 0.5);
  const auto run = [&](const CompileSettings& settings) { return model.compile(settings).run({input})[0]; };
  const Tensor expected = run({.batch = 6, .target = "reference", .threads = 1});
  EXPECT_LT(distance(run({.batch = 6, .threads = 1}), expected), 1e-4);
  EXPECT_LT(distance(run({.batch = 6, .threads = 2}), expected), 1e-4);
  const double reduced = distance(run({.batch = 6, .precision = "bf16", .threads = 1}), expected);
  EXPECT_LT(reduced, 0.1);
  NamedValues samples{{"patch", filled({"patch", ElementType::f32, Shape{64, 1, 11, 11}}, 0.5)}};
  const double bytes =
      distance(run({.batch = 6, .precision = "int8", .threads = 1, .calibration = samples}), expected);
  if (test::multiplies_bytes()) {
    EXPECT_GT(bytes, 0);
  }
  EXPECT_LT(bytes, 0.1);
}

TEST_F(Api, InputsAndOutputsGoByNameToo) {
  const Model model("uno");
  Session session = model.compile({.batch = 2, .threads = 1});
  const std::vector<Tensor> inputs = filled(session.inputs());
  ASSERT_GT(inputs.size(), 1u);
  NamedValues named;
  for (std::size_t i = 0; i < inputs.size(); ++i) named.emplace(session.inputs()[i].name, inputs[i]);
  EXPECT_EQ(distance(session.run(named).at(session.outputs()[0].name), session.run(inputs)[0]), 0);
  named.erase(session.inputs()[1].name);
  EXPECT_EQ(code_of([&] { session.run(named); }, session.inputs()[1].name), ErrorCode::invalid_argument);
}

TEST_F(Api, ParametersAreReadAndSet) {
  Model model("mlp");
  const Port& port = model.parameters()[0];
  const Tensor before = model.parameter(port.name);
  EXPECT_EQ(before.shape(), port.shape);
  model.set_parameter(port.name, Tensor(port.element, port.shape));
  EXPECT_EQ(model.parameter(port.name).at(0), 0);
  Session session = model.compile({.threads = 1});
  const std::vector<Tensor> inputs = filled(session.inputs());
  const Tensor zeroed = session.run(inputs)[0];
  session.set_parameter(port.name, before);
  const Tensor restored = session.run(inputs)[0];
  EXPECT_NE(distance(restored, zeroed), 0);
  EXPECT_EQ(distance(Model("mlp").compile({.threads = 1}).run(inputs)[0], restored), 0);
  EXPECT_EQ(code_of([&] { model.set_parameter(port.name, Tensor(ElementType::f32, {3})); }, port.name),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { (void)model.parameter("nonesuch"); }, "nonesuch"), ErrorCode::invalid_argument);
}

TEST_F(Api, TrainsAndGoesOnFromAFile) {
  Model model("mlp", {.seed = 7});
  const CompileSettings settings{.batch = 32, .threads = 1};
  Trainer trainer = model.trainer(settings, {.optimizer = "adam", .learning_rate = 1e-3});
  const std::vector<Tensor> values = filled(trainer.inputs());
  const double first = trainer.step(values);
  for (int i = 0; i < 50; ++i) trainer.step(values);
  trainer.save(folder_ / "half.safetensors");
  double last = 0;
  for (int i = 0; i < 50; ++i) last = trainer.step(values);
  EXPECT_LT(last, 0.5 * first);
  EXPECT_EQ(trainer.steps(), 101);

  Trainer again = model.trainer(settings, {.optimizer = "adam", .learning_rate = 1e-3});
  again.restore(folder_ / "half.safetensors");
  EXPECT_EQ(again.steps(), 51);
  double same = 0;
  for (int i = 0; i < 50; ++i) same = again.step(values);
  EXPECT_EQ(same, last);  // the same bits

  const std::string name = model.parameters()[0].name;
  EXPECT_NE(distance(model.parameter(name), trainer.parameter(name)), 0);
  model.take_parameters(trainer);
  EXPECT_EQ(distance(model.parameter(name), trainer.parameter(name)), 0);
}

// A step of gradient descent by hand is that of the trainer.
TEST_F(Api, GivesGradientsForAnOptimizerOfOnesOwn) {
  const Model model("mlp", {.options = {"dropout=0"}});
  Session gradient = model.gradient({.batch = 4, .threads = 2});
  Trainer trainer = model.trainer({.batch = 4, .threads = 2}, {.optimizer = "sgd", .learning_rate = 0.1});
  ASSERT_EQ(gradient.inputs().size(), trainer.inputs().size());
  const std::vector<Tensor> values = filled(gradient.inputs());
  NamedValues named;
  for (std::size_t i = 0; i < values.size(); ++i) named.emplace(gradient.inputs()[i].name, values[i]);
  for (int step = 0; step < 3; ++step) {
    const NamedValues found = gradient.run(named);
    EXPECT_NEAR(found.at("loss").at(0), trainer.step(values), 1e-6);
    EXPECT_TRUE(found.contains(model.outputs()[0].name));
    for (const Port& parameter : model.parameters()) {
      Tensor value = gradient.parameter(parameter.name).clone();
      const Tensor& slope = found.at("gradient/" + parameter.name);
      ASSERT_EQ(slope.shape(), value.shape());
      for (std::int64_t i = 0; i < value.element_count(); ++i) value.set(i, value.at(i) - 0.1 * slope.at(i));
      gradient.set_parameter(parameter.name, value);
      EXPECT_LT(distance(value, trainer.parameter(parameter.name)), 1e-6) << parameter.name << step;
    }
  }
}

TEST_F(Api, ALearningRateThatIsTooLargeIsAnError) {
  Trainer trainer = Model("mlp").trainer({.batch = 8, .threads = 1}, {.optimizer = "sgd"});
  const std::vector<Tensor> values = filled(trainer.inputs());
  EXPECT_EQ(code_of(
                [&] {
                  for (int i = 0; i < 200; ++i) trainer.step(values, 1e6);
                },
                "not finite"),
            ErrorCode::diverged);
  EXPECT_EQ(code_of([&] { trainer.step(values, -1); }, "learning_rate"), ErrorCode::invalid_argument);
}

TEST_F(Api, WhatIsExportedGivesTheSame) {
  Model model("braggnn", {.seed = 3});
  Tensor bias = model.parameter(model.parameters().back().name);
  for (std::int64_t i = 0; i < bias.element_count(); ++i) bias.set(i, 0.25);
  model.set_parameter(model.parameters().back().name, bias);
  model.write_onnx(folder_ / "model.onnx");
  const Model read((folder_ / "model.onnx").string());
  EXPECT_EQ(read.fixed_batch(), 0);
  const Tensor input = filled(model.inputs(3)[0], 0);
  const Tensor ours = model.compile({.batch = 3, .threads = 1}).run({input})[0];
  EXPECT_LT(distance(read.compile({.batch = 3, .threads = 1}).run({input})[0], ours), 1e-5);
  model.write_onnx(folder_ / "fixed.onnx", {.batch = 3});
  EXPECT_EQ(Model((folder_ / "fixed.onnx").string()).fixed_batch(), 3);
}

TEST_F(Api, AWholeRunLeavesAFolderThatIsRead) {
  std::atomic<int> told = 0;
  set_progress_listener([&](const ProgressReport& report) { told += report.total > 0; });
  TrainingSettings settings{.model = "mlp", .samples = 512, .batch = 32, .threads = 1, .epochs = 2};
  settings.out = folder_ / "run";
  const TrainingReport report = train(settings);
  set_progress_listener({});
  EXPECT_GT(told, 0);
  EXPECT_GT(report.steps, 0);
  EXPECT_TRUE(std::ranges::any_of(report.metrics, [](const auto& metric) { return metric.name == "loss"; }));
  const Model trained = Model::from_run(folder_ / "run");
  EXPECT_EQ(trained.name(), "mlp");
  const std::string name = trained.parameters()[0].name;
  EXPECT_NE(distance(trained.parameter(name), Model("mlp").parameter(name)), 0);
}

TEST_F(Api, ARunTellsWhatHappensInIt) {
  std::vector<std::string> told;
  bool evaluated = false;
  TrainingSettings settings{.model = "mlp", .samples = 512, .batch = 32, .threads = 1, .epochs = 2};
  settings.on_event = [&](const TrainingEvent& event) {
    told.push_back(name_of(event.kind) + std::to_string(event.epoch));
    if (event.kind == TrainingEvent::Kind::evaluated) evaluated = !event.metrics.empty();
    if (event.kind == TrainingEvent::Kind::epoch_ended) {
      EXPECT_GT(event.samples_per_second, 0);
    }
  };
  train(settings);
  EXPECT_TRUE(evaluated);
  EXPECT_EQ(told, (std::vector<std::string>{"epoch_begun1", "epoch_ended1", "evaluated1", "epoch_begun2",
                                            "epoch_ended2", "evaluated2", "evaluated2", "finished0"}));
}

// Stopped after three steps and told to go on, without a word of what it is: the same bits as one that was
// not.
TEST_F(Api, ARunGoesOnAsItWasBegun) {
  TrainingSettings settings{.model = "mlp", .samples = 512, .batch = 32, .threads = 1, .epochs = 2};
  settings.settings.seed = 9;
  settings.training = {.optimizer = "adam", .learning_rate = 2e-3};
  settings.out = folder_ / "whole";
  const std::int64_t steps = train(settings).steps;
  settings.out = folder_ / "halves";
  settings.steps = 3;
  EXPECT_EQ(train(settings).steps, 3);
  EXPECT_EQ(train({.epochs = 2, .out = folder_ / "halves", .resume = true}).steps, steps);
  const Model whole = Model::from_run(folder_ / "whole"), halves = Model::from_run(folder_ / "halves");
  for (const Port& port : whole.parameters())
    EXPECT_EQ(distance(whole.parameter(port.name), halves.parameter(port.name)), 0) << port.name;
  EXPECT_EQ(code_of([&] { train({.model = "braggnn", .out = folder_ / "halves", .resume = true}); }, "mlp"),
            ErrorCode::invalid_argument);
}

TEST_F(Api, WorkStopsWhenTheCheckSaysSo) {
  // Once a step is done: what is said depends on where the work was.
  std::atomic<bool> stepped = false;
  set_progress_listener([&](const ProgressReport& report) {
    if (report.label == "mlp" && report.done > 0) stepped = true;
  });
  set_interrupt_check([&] { return stepped.load(); });
  const ErrorCode code = code_of(
      [&] { train({.model = "mlp", .samples = 4096, .batch = 8, .threads = 1, .epochs = 100}); }, "at step");
  set_progress_listener({});
  set_interrupt_check({});
  EXPECT_EQ(code, ErrorCode::interrupted);
  EXPECT_NO_THROW(train({.model = "mlp", .samples = 64, .batch = 32, .threads = 1, .steps = 2}));
}

TEST_F(Api, WhatIsWrongIsSaid) {
  EXPECT_EQ(code_of([] { Model("bragnn"); }, "braggnn"), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([] { Model("no/file.onnx"); }, "no/file.onnx"), ErrorCode::not_found);
  const Model model("mlp");
  EXPECT_EQ(code_of([&] { (void)model.compile({.precision = "f8"}); }, "f8"), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { (void)model.compile({.target = "gpu"}); }, "gpu"), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { (void)model.compile({.batch = 0}); }, "batch"), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { (void)model.compile({.precision = "int8"}); }, model.inputs()[0].name),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { (void)model.trainer({.precision = "int8"}); }, "int8"),
            ErrorCode::invalid_argument);
  Session session = model.compile();
  EXPECT_EQ(code_of([&] { (void)session.run(std::vector<Tensor>{}); }, "1 inputs are needed, 0 are given"),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(
                [&] {
                  (void)session.run({Tensor(ElementType::f32, {1, 3})});
                },
                "f32[1,3]"),
            ErrorCode::invalid_argument);
}

TEST_F(Api, ANetworkOfDenseLayersIsWrittenAndTrained) {
  const fs::path file = folder_ / "dense.onnx", again = folder_ / "again.onnx",
                 other = folder_ / "other.onnx";
  write_dense_network(file, {.widths = {3, 8, 2}, .activation = "silu", .seed = 5});
  write_dense_network(again, {.widths = {3, 8, 2}, .activation = "silu", .seed = 5});
  write_dense_network(other, {.widths = {3, 8, 2}, .activation = "silu", .seed = 6});
  Model model(file.string(), {.loss = "mse"});
  EXPECT_EQ(model.inputs(4)[0].shape, (Shape{4, 3}));
  EXPECT_EQ(model.outputs(4)[0].shape, (Shape{4, 2}));
  ASSERT_EQ(model.parameters().size(), 4u);
  for (const Port& port : model.parameters()) {
    const Tensor mine = model.parameter(port.name), same = Model(again.string()).parameter(port.name),
                 another = Model(other.string()).parameter(port.name);
    for (std::int64_t i = 0; i < mine.element_count(); ++i) EXPECT_EQ(mine.at(i), same.at(i));
    if (port.shape.rank() == 2) {
      EXPECT_NE(mine.at(0), another.at(0));
    }
  }
  Trainer trainer = model.trainer({.batch = 4, .threads = 1}, {.optimizer = "adam", .learning_rate = 0.01});
  const std::vector<Tensor> batch = filled(trainer.inputs());
  const double first = trainer.step(batch);
  for (int i = 0; i < 50; ++i) trainer.step(batch);
  EXPECT_LT(trainer.step(batch), first);
  EXPECT_THROW(write_dense_network(file, {.widths = {3}}), Error);
  EXPECT_THROW(write_dense_network(file, {.widths = {3, 0}}), Error);
  EXPECT_THROW(write_dense_network(file, {.widths = {3, 1}, .activation = "step"}), Error);
}

}  // namespace
}  // namespace superstep
