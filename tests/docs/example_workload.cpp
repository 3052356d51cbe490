// The workload of docs/add-a-workload.md.
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "superstep/baseline/xray/pca.h"
#include "superstep/graph/verify.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/core/evaluate.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/view.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/transform/batch_axis.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/pictures/pictures.h"
#include "superstep/workload/table.h"
#include "tests/contains.h"

namespace superstep::workload {
namespace {

// [add-a-workload]
// Windows of oscillations squeezed through a few numbers.
//
// x f32 [N, 16, 2] -> decoded f32 [N, 16, 2].
graph::Graph build_window_autoencoder(std::int64_t batch, const Options& options, std::uint64_t seed) {
  graph::Graph graph("window-autoencoder");
  Builder b(graph);
  Layers layers(b, seed);
  const Var x = b.input("x", ElementType::f32, {batch, 16, 2});
  const Var code = layers.dense(op::flatten(x), "encoder", options.integer("code", 1, 32));
  const Var inner = layers.relu(layers.dense(code, "decoder1", 64));
  b.output("decoded", op::reshape(layers.dense(inner, "decoder2", 32), {batch, 16, 2}));
  return graph;
}

// Without labels: what comes out is compared with what went in.
Var window_distance(transform::LossPorts& ports) {
  return op::reduce_mean(op::abs(ports.output("decoded") - ports.input("x")));
}

std::vector<Metric> window_rmse(const Fields& fields, std::span<const std::int64_t> indices,
                                std::span<const Tensor> outputs) {
  return {quality_metric("rmse", root_mean_square_error(fields.at("x"), indices, outputs[0]))};
}

// The mean window, and as many principal components as the code has numbers.
References components_of_windows(const TableSamples& samples, int numbers) {
  const Tensor& x = samples.fields.at("x");
  const auto rows = Eigen::Map<const baseline::FrameMatrix>(x.as<float>().data(), x.shape()[0], 32);
  const baseline::FrameMatrix judged = rows(samples.indices, Eigen::all);
  const auto read = [&](std::int64_t first, std::int64_t count) -> baseline::FrameMatrix {
    return rows.middleRows(first, count);
  };
  const auto basis =
      baseline::principal_components({.frames = samples.training, .pixels = 32, .read = read},
                                     {.components = numbers}, samples.pool, [](double, double) {});
  const auto error = [&](const baseline::FrameMatrix& found) {
    return std::sqrt((found - judged).cast<double>().squaredNorm() / static_cast<double>(judged.size()));
  };
  const baseline::FrameMatrix mean = basis.mean.transpose().replicate(judged.rows(), 1);
  const auto of_components = baseline::reconstruct(baseline::compress(judged, basis), basis);
  return {.floor = Reference{"the mean window", error(mean)},
          .conventional = Reference{"principal components", error(of_components)},
          .limit = {},
          .target = {}};
}

// Every true value of some windows against the decoded one.
std::string present_windows(const Fields& fields, const Predictions& found, page::Page& page) {
  const Tensor &x = fields.at("x"), &decoded = found.outputs[0];
  Regression values{.quantity = "Amplitude", .unit = "", .truth = {}, .found = {}, .samples = {}};
  for (std::size_t i = 0; i < std::min<std::size_t>(200, found.indices.size()); ++i)
    for (std::int64_t k = 0; k < 32; ++k) {
      values.truth.push_back(x.at(found.indices[i] * 32 + k));
      values.found.push_back(decoded.at(static_cast<std::int64_t>(i) * 32 + k));
      values.samples.push_back(found.indices[i]);
    }
  present_regression(page, values);
  return {};
}

std::unique_ptr<Task> open_windows(const TaskSettings& settings, const Options& model) {
  const int numbers = static_cast<int>(model.integer("code", 1, 32));
  return open_table_task(
      {.generator = "lstm",  // noisy oscillations
       .settings = {"steps=16", "inputs=2"},
       .default_samples = 8192,
       .inputs = {{"x"}},
       .quality = window_rmse,
       .present = present_windows,
       .references = [numbers](const auto& samples) { return components_of_windows(samples, numbers); }},
      settings);
}

Workload window_autoencoder() {
  return {
      .name = "window-autoencoder",
      .summary = "windows of oscillations squeezed through a few numbers",
      .options = {{"code", "4", "numbers that a window is squeezed into, 1 to 32"}},
      .build = build_window_autoencoder,
      .parameters = 2532,  // 32 * 4 + 4 + 4 * 64 + 64 + 64 * 32 + 32
      .flops = 5028,       // 2 * (32 * 4 + 4 * 64 + 64 * 32) of products, 100 of biases and 64 of a rectifier
      .inputs = {{"x", ElementType::f32, {16, 2}, "", "steps of what two sensors see"}},
      .outputs = {{"decoded", ElementType::f32, {16, 2}, "", "the same window, out of the code"}},
      .training = {.batch = 64,
                   .epochs = 20,
                   .loss = {.terms = {}, .own = window_distance},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 3e-3},
      .open = open_windows,
      .metrics = {{"rmse", ""}},
      .target = QualityTarget{.metric = "rmse", .value = 0.3},
  };
}
// [end]

graph::Graph built(std::int64_t batch, const std::vector<std::string>& options = {}) {
  const Workload workload = window_autoencoder();
  graph::Graph graph = build_model(workload, batch, options);
  value_or_throw(graph::verify(graph, op::infer_types));
  return graph;
}

TEST(AddAWorkload, IsWhatItSays) {
  const Workload workload = window_autoencoder();
  const graph::Graph graph = built(3);
  EXPECT_EQ(graph.name(), workload.name);
  EXPECT_EQ(count_parameters(graph), workload.parameters);
  EXPECT_EQ(count_parameters(built(3, {"code=2"})), 32 * 2 + 2 + 2 * 64 + 64 + 64 * 32 + 32);
  EXPECT_EQ(graph.value(graph.inputs()[0]).name, workload.inputs[0].name);
  EXPECT_EQ(graph.outputs()[0].name, workload.outputs[0].name);
  EXPECT_EQ(graph.type(graph.inputs()[0]), (graph::ValueType{ElementType::f32, {3, 16, 2}}));
}

TEST(AddAWorkload, RefusesOptionsItDoesNotHave) {
  try {
    built(1, {"cod=4"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "did you mean 'code'?"));
  }
  EXPECT_THROW(built(1, {"code=33"}), Error);
}

// --- trained on its own data, by the steps that its record describes, judged by its own metric

constexpr std::int64_t windows = 320;

class TrainedWorkload {
 public:
  // Throws Error where model, data and loss do not fit.
  explicit TrainedWorkload(double learning_rate)
      : workload_(window_autoencoder()),
        pool_(2),
        task_(open_task(workload_, {.samples = windows, .seed = 1, .pool = &pool_})),
        rate_(learning_rate),
        step_(transform::make_training_step(built(workload_.training.batch), workload_.training.loss,
                                            workload_.training.optimizer)) {
    EXPECT_TRUE(transform::splittable(step_).has_value());
  }

  void train(int steps) {
    for (int i = 0; i < steps; ++i) {
      std::vector<Tensor> inputs{Tensor(ElementType::f32, {64, 16, 2})};
      std::vector<std::int64_t> batch(64);
      std::iota(batch.begin(), batch.end(), i % 4 * 64);
      task_->fill(batch, 0, true, inputs);
      inputs.push_back(Tensor::scalar(static_cast<float>(rate_)));
      states_ = op::evaluate(step_, inputs, states_).states;
    }
  }

  std::vector<std::int64_t> unseen() const {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(task_->size() - task_->training_count()));
    std::iota(indices.begin(), indices.end(), task_->training_count());
    return indices;
  }

  std::vector<Tensor> outputs() {
    const auto indices = unseen();
    const auto count = static_cast<std::int64_t>(indices.size());
    std::vector<Tensor> inputs{Tensor(ElementType::f32, {count, 16, 2})};
    task_->fill_inputs(indices, inputs, pool_);
    std::map<std::string, Tensor> parameters;
    const graph::Graph model = built(count);
    for (const graph::ValueId id : model.states())
      if (const auto found = states_.find(model.value(id).name); found != states_.end())
        parameters.insert(*found);
    return op::evaluate(model, inputs, parameters).outputs;
  }

  Metric quality() { return task_->quality(unseen(), outputs()).front(); }
  References references() { return task_->references(unseen(), pool_); }
  const Workload& workload() const { return workload_; }

  page::Page page() {
    page::Page page("windows");
    const auto indices = unseen();
    const std::vector<Tensor> found = outputs();
    task_->present({"window-autoencoder", indices, found, 0}, pool_, page);
    return page;
  }

 private:
  Workload workload_;
  ThreadPool pool_;
  std::unique_ptr<Task> task_;
  double rate_;
  graph::Graph step_;
  std::map<std::string, Tensor> states_;
};

TEST(AddAWorkload, IsTrainedOnItsOwnDataByItsOwnLoss) {
  TrainedWorkload trained(1e-2), still(0);
  const double before = trained.quality().value;
  trained.train(120);
  still.train(2);
  const Metric after = trained.quality();
  EXPECT_EQ(after.name, trained.workload().metrics.front().name);
  EXPECT_LT(after.value, 0.6 * before);
  EXPECT_LT(after.value, trained.references().floor->value);
  EXPECT_EQ(still.quality().value, before);  // without a learning rate nothing is learnt
}

TEST(AddAWorkload, KnowsWhatOthersReachAndDrawsItself) {
  TrainedWorkload workload(0);
  const References others = workload.references();
  EXPECT_NEAR(others.floor->value, std::sqrt(0.5 + 0.2 * 0.2), 0.05);  // of a sine with noise
  EXPECT_LT(others.conventional->value, 0.8 * others.floor->value);
  EXPECT_TRUE(contains(workload.page().to_html(), "Amplitude: predicted against true"));
}

}  // namespace
}  // namespace superstep::workload
