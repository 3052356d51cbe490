// What must not matter to a model's answers: the order of the samples, which other samples are in the batch
// (even ones that are NaN), how many go through the plan at a time. And to a training step: the order, and
// every sample twice. Nothing is compared with the reference here, so what both get wrong together is seen as
// well.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "superstep/target/target.h"
#include "superstep/transform/precision/precision.h"
#include "superstep/transform/precision/quantize.h"
#include "superstep/transform/training/training_step.h"
#include "superstep/workload/workload.h"
#include "tests/target/zoo_input.h"

namespace superstep {
namespace {

using target::CompileOptions;
using target::Executable;
using target::GraphAtBatch;

struct Model {
  const char* workload;
  std::vector<std::string> options;
};

void PrintTo(const Model& model, std::ostream* out) { *out << model.workload; }

std::vector<Model> models() {
  const std::vector<std::string> bert{"layers=2", "width=32", "heads=2", "length=12", "vocabulary=80"};
  const std::vector<std::string> images{"size=32", "classes=10"};  // down to images of one pixel
  return {{"braggnn", {}},
          {"mlp", {}},
          {"cifar10-cnn", {}},
          {"ptychonn-64", {"window=16"}},
          {"cookienetae", {"size=16", "width=8"}},
          {"pca-compress-128", {"side=12", "components=6"}},
          {"image-autoencoder", {"size=8", "width=4", "bottleneck=2"}},
          {"conductivity", {"side=16", "width=4"}},
          {"gravity-wave-drag", {"levels=21", "width=32", "layers=2"}},
          {"wallmodel", {"dropout=0"}},
          {"uno", {"width=24", "dropout=0"}},
          {"polymer-gcn", {"atoms=16", "edges=24", "polymers=12", "width=8"}},
          {"polymer-mpnn", {"atoms=16", "edges=24", "polymers=12", "width=8"}},
          {"gin", {"atoms=16", "edges=24", "molecules=12", "width=8", "dropout=0"}},
          {"schnet", {"atoms=16", "edges=24", "clusters=10", "width=8", "blocks=2"}},
          {"deepmd", {"atoms=10", "sel=7", "embedding=4,8", "axis=3", "fitting=8,8", "cutoff=2"}},
          {"yieldgnn", {"atoms=16", "edges=24", "reactions=10", "largest=16", "width=8", "dropout=0"}},
          {"unet-64", {"size=16", "width=4"}},
          {"autophasenn", {"size=32", "width=2"}},
          {"resnet50", {"size=32", "classes=10", "width=8"}},
          {"mobilenet-v3-small", images},
          {"efficientnet-b0", images},
          {"bert-small", bert},
          {"bert-base-squad", bert},
          {"gpt2", {"layers=2", "width=32", "heads=2", "length=12", "positions=16", "vocabulary=80"}},
          {"llama", {"width=32", "heads=4", "inner=40", "length=12", "vocabulary=80"}},
          {"vit-base", {"size=32", "patch=8", "layers=2", "width=32", "heads=2", "classes=10"}},
          {"lstm", {"steps=7", "inputs=5", "units=32"}}};
}

enum class Kind { f32, bf16, i8 };

graph::Graph served(const Model& model, Kind kind, std::int64_t batch) {
  graph::Graph graph = target::find_target("cpu").suited(
      workload::build_model(workload::find_workload(model.workload), batch, model.options));
  if (kind == Kind::bf16) return transform::autocast(graph, ElementType::bf16);
  if (kind == Kind::f32) return graph;
  transform::RangeTable ranges;
  for (graph::ValueId id : transform::values_to_calibrate(graph)) ranges[graph.value(id).name] = {-4, 4};
  return transform::quantize(graph, ranges);
}

// By gradient descent: the new parameters differ from the old ones by the gradients.
graph::Graph trained(const Model& model, std::int64_t batch) {
  return transform::make_training_step(served(model, Kind::f32, batch),
                                       workload::find_workload(model.workload).training.loss,
                                       {.kind = transform::OptimizerKind::sgd});
}

std::vector<Tensor> empty_outputs(const Executable& executable) {
  std::vector<Tensor> outputs;
  for (const auto& port : executable.outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  return outputs;
}

// Which ports have samples along axis 0: those whose extent follows the batch.
std::vector<bool> of_samples(std::span<const Executable::Port> ports,
                             std::span<const Executable::Port> larger) {
  std::vector<bool> found;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const Shape &a = ports[i].type.shape, &b = larger[i].type.shape;
    found.push_back(a.rank() > 0 && a[0] != b[0]);
  }
  return found;
}

// Rows of `from`, in an order and as often as `rows` says.
Tensor picked(const Tensor& from, std::span<const std::int64_t> rows, std::int64_t batch) {
  const std::int64_t group = from.shape()[0] / batch;  // rows of axis 0 per sample
  std::vector<std::int64_t> extents(from.shape().begin(), from.shape().end());
  extents[0] = group * static_cast<std::int64_t>(rows.size());
  Tensor to(from.type(), Shape(extents));
  const std::size_t bytes = from.byte_count() / static_cast<std::size_t>(batch);
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::memcpy(to.bytes() + i * bytes, from.bytes() + static_cast<std::size_t>(rows[i]) * bytes, bytes);
  return to;
}

std::vector<Tensor> picked(std::span<const Tensor> from, const std::vector<bool>& which,
                           std::span<const std::int64_t> rows, std::int64_t batch) {
  std::vector<Tensor> to;
  for (std::size_t i = 0; i < from.size(); ++i)
    to.push_back(which[i] ? picked(from[i], rows, batch) : from[i]);
  return to;
}

double largest(const Tensor& tensor) {
  double value = 0;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) value = std::max(value, std::abs(tensor.at(i)));
  return value;
}

double root_mean_square(const Tensor& tensor) {
  double sum = 0;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) sum += tensor.at(i) * tensor.at(i);
  return std::sqrt(sum / static_cast<double>(std::max<std::int64_t>(1, tensor.element_count())));
}

// Sums in another order where a plan cuts a batch in another way: rounding, and no more.
void expect_same(std::span<const Tensor> actual, std::span<const Tensor> expected, double tolerance,
                 const char* what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].shape(), expected[i].shape());
    const double allowed = tolerance * std::max(1e-3, largest(expected[i]));
    double worst = 0;
    for (std::int64_t k = 0; k < actual[i].element_count(); ++k) {
      const double difference = std::abs(actual[i].at(k) - expected[i].at(k));
      worst = difference <= worst ? worst : difference;  // NaN stays
    }
    EXPECT_LE(worst, allowed) << what << ", output " << i;
  }
}

constexpr std::int64_t batch = 6, padded = 8;
constexpr std::int64_t shuffled[] = {4, 0, 5, 2, 1, 3};

class Metamorphic : public ::testing::TestWithParam<Model> {
 protected:
  static GraphAtBatch serving(Kind kind) {
    return [=](std::int64_t samples) { return served(GetParam(), kind, samples); };
  }
  static std::unique_ptr<Executable> compiled(const GraphAtBatch& model, const CompileOptions& options) {
    return target::find_target("cpu").compile(model, options);
  }

  static void expect_answers_of_samples_alone(Kind kind, double tolerance) {
    const auto whole = compiled(serving(kind), {.batch = batch});
    const auto larger = compiled(serving(kind), {.batch = padded});
    const auto in = of_samples(whole->inputs(), larger->inputs()),
               out = of_samples(whole->outputs(), larger->outputs());
    ASSERT_TRUE(std::ranges::count(out, true) > 0);
    std::vector<Tensor> inputs;
    for (const auto& port : whole->inputs()) inputs.push_back(test::random_input(port, inputs.size() + 1));
    auto answers = empty_outputs(*whole);
    whole->run(inputs, answers);
    const auto only_samples = [&](std::vector<Tensor> all) {
      std::vector<Tensor> kept;
      for (std::size_t i = 0; i < all.size(); ++i)
        if (out[i]) kept.push_back(std::move(all[i]));
      return kept;
    };

    auto moved = empty_outputs(*whole);
    whole->run(picked(inputs, in, shuffled, batch), moved);
    expect_same(only_samples(std::move(moved)), only_samples(picked(answers, out, shuffled, batch)),
                tolerance, "shuffled");

    // The first is repeated behind the others; then the repeated ones are NaN where they are numbers.
    constexpr std::int64_t rows[] = {0, 1, 2, 3, 4, 5, 0, 0};
    constexpr std::int64_t first[] = {0, 1, 2, 3, 4, 5};
    auto longer = picked(inputs, in, rows, batch);
    for (const bool poisoned : {false, true}) {
      for (std::size_t i = 0; poisoned && i < longer.size(); ++i)
        if (in[i] && !is_integer(longer[i].type()))
          for (std::int64_t k = longer[i].element_count() * batch / padded; k < longer[i].element_count();
               ++k)
            longer[i].set(k, std::numeric_limits<double>::quiet_NaN());
      auto beside = empty_outputs(*larger);
      larger->run(longer, beside);
      expect_same(only_samples(picked(beside, out, first, padded)), only_samples(answers), tolerance,
                  poisoned ? "beside NaN" : "beside others");
    }

    for (const std::int64_t micro : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, batch}) {
      const auto cut = compiled(serving(kind), {.batch = batch, .micro_batch = micro, .threads = 2});
      auto again = empty_outputs(*cut);
      cut->run(inputs, again);
      expect_same(only_samples(std::move(again)), only_samples(answers), tolerance, "other micro-batches");
    }
  }
};

TEST_P(Metamorphic, AnswersAreOfSamplesAloneInF32) { expect_answers_of_samples_alone(Kind::f32, 3e-5); }
TEST_P(Metamorphic, AnswersAreOfSamplesAloneInBf16) { expect_answers_of_samples_alone(Kind::bf16, 3e-2); }
TEST_P(Metamorphic, AnswersAreOfSamplesAloneInBytes) { expect_answers_of_samples_alone(Kind::i8, 5e-2); }

// Masks are a function of a sample's place in the batch.
bool drops_out(const graph::Graph& step) {
  return std::ranges::find(step.nodes(), "superstep.RandomMask", &graph::Node::op) != step.nodes().end();
}

// Statistics of a normalisation are of the whole batch, so the step is of one micro-batch.
TEST_P(Metamorphic, TrainingMindsNeitherOrderNorRepetition) {
  const GraphAtBatch step = [](std::int64_t samples) { return trained(GetParam(), samples); };
  if (drops_out(step(batch))) GTEST_SKIP() << "it drops out";
  const auto once = compiled(step, {.batch = batch, .micro_batch = batch});
  const auto twice = compiled(step, {.batch = 2 * batch, .micro_batch = 2 * batch});
  const auto in = of_samples(once->inputs(), twice->inputs());
  std::vector<Tensor> inputs;
  for (const auto& port : once->inputs()) inputs.push_back(test::random_input(port, inputs.size() + 1));
  std::vector<Tensor> before;
  const auto names = once->state_names();
  for (const std::string& name : names) before.push_back(once->state(name));
  const auto moves = [&](Executable& executable, std::span<const std::int64_t> rows) {
    for (std::size_t i = 0; i < names.size(); ++i) executable.set_state(names[i], before[i]);
    auto outputs = empty_outputs(executable);
    executable.run(picked(inputs, in, rows, batch), outputs);
    std::vector<Tensor> moved{outputs[0]};
    for (std::size_t i = 0; i < names.size(); ++i) {
      Tensor change = executable.state(names[i]);
      for (std::int64_t k = 0; k < change.element_count(); ++k) change.set(k, change.at(k) - before[i].at(k));
      moved.push_back(change);
    }
    return moved;
  };
  std::vector<std::int64_t> in_order(batch), doubled;
  std::iota(in_order.begin(), in_order.end(), 0);
  for (const std::int64_t row : in_order) doubled.insert(doubled.end(), {row, row});
  const auto expected = moves(*once, in_order);
  double loudest = 0;
  for (std::size_t i = 1; i < expected.size(); ++i)
    loudest = std::max(loudest, root_mean_square(expected[i]));
  EXPECT_GT(loudest, 0);
  const auto same = [&](const std::vector<Tensor>& actual, const char* what) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      double error = 0;
      for (std::int64_t k = 0; k < expected[i].element_count(); ++k)
        error += std::pow(actual[i].at(k) - expected[i].at(k), 2);
      error = std::sqrt(error / static_cast<double>(expected[i].element_count()));
      EXPECT_LE(error, 2e-3 * root_mean_square(expected[i]) + 2e-5 * loudest)
          << what << " " << (i ? names[i - 1] : "loss");
    }
  };
  same(moves(*once, shuffled), "shuffled");
  same(moves(*twice, doubled), "each twice");
}

INSTANTIATE_TEST_SUITE_P(Zoo, Metamorphic, ::testing::ValuesIn(models()));

}  // namespace
}  // namespace superstep
