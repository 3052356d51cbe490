// Tables that are looked up by rows and multiplied with: their gradients in the table's own order, with rows
// added where the product's part lies.
#include <gtest/gtest.h>

#include <algorithm>

#include "superstep/op/move/gather.h"
#include "superstep/target/cpu/passes/decompose.h"
#include "superstep/target/cpu/passes/table_gradients.h"
#include "superstep/target/ports.h"
#include "superstep/transform/training/training_step.h"
#include "tests/target/models.h"
#include "tests/target/run.h"

namespace superstep {
namespace {

using test::expect_close;
using test::Runner;

constexpr std::int64_t words = 310, width = 220;  // large enough for an update of its own

enum class Reads : std::uint8_t { tied, twice_tied, rows_only };

// Rows of a table, a layer, and the scores of every row; the table is looked up a second time, or the scores
// have a table of their own.
graph::Graph language(std::int64_t batch, Reads reads) {
  graph::Graph graph("language");
  op::Builder b(graph);
  test::Layers layers(b, 3);
  const op::Var table = layers.parameter("table", {words, width}, width);
  const auto looked_up = [&](const char* ids) {
    return op::gather(table, op::reshape(b.input(ids, ElementType::i64, {batch, 3}), {3 * batch}));
  };
  op::Var x = looked_up("ids");
  if (reads == Reads::twice_tied) x = x + looked_up("more ids");
  x = op::tanh(layers.dense(x, "layer", width));
  const op::Var scored =
      reads == Reads::rows_only ? layers.parameter("scores", {words, width}, width) : table;
  const op::Var y = op::matmul(x, op::transpose(scored, {1, 0}));
  b.output("y", op::reshape(y, {batch, 3 * words}));
  return graph;
}

target::GraphAtBatch training(Reads reads) {
  return [=](std::int64_t batch) {
    return transform::make_training_step(language(batch, reads), {{transform::LossTerm{}}},
                                         {.kind = transform::OptimizerKind::sgd, .momentum = 0.9});
  };
}

// Some ids come several times.
void set_ids(std::vector<Tensor>& inputs, const target::Executable& executable) {
  for (std::size_t k = 0; k < inputs.size(); ++k)
    if (executable.inputs()[k].name.ends_with("ids"))
      for (std::int64_t i = 0; i < inputs[k].element_count(); ++i)
        inputs[k].set(i, static_cast<double>((i * i * 11 + static_cast<std::int64_t>(k)) % words / 4));
}

TEST(TableGradients, StepAsTheReferenceDoes) {
  for (const Reads reads : {Reads::tied, Reads::twice_tied, Reads::rows_only})
    for (const std::int64_t micro_batch : {4, 2})
      for (const int threads : {1, 2}) {
        Runner cpu("cpu", training(reads), {.batch = 4, .micro_batch = micro_batch, .threads = threads});
        Runner reference("reference", training(reads), {.batch = 4});
        set_ids(cpu.inputs, *cpu.executable);
        set_ids(reference.inputs, *reference.executable);
        for (int i = 0; i < 3; ++i) {
          cpu.run();
          reference.run();
          expect_close(cpu.outputs[0], reference.outputs[0], 1e-4, "loss");
        }
        for (const std::string& name : cpu.executable->state_names())
          expect_close(cpu.executable->state(name), reference.executable->state(name), 1e-3, name);
      }
}

// The whole batch at once: nothing as large as the table but the product's result.
TEST(TableGradients, AreOneTensorInMemory) {
  Runner tied("cpu", training(Reads::tied), {.batch = 4, .micro_batch = 4});
  EXPECT_EQ(tied.count("clear"), 0u);
  EXPECT_EQ(tied.count("ScatterND"), 1u);
  EXPECT_EQ(tied.count("superstep.Sgd"), 1u);  // with the gradient still in cache
  constexpr std::size_t table_bytes = 4 * words * width;
  EXPECT_LT(tied.executable->summary().activation_bytes, 3 * table_bytes);  // and the packed weights
  Runner apart("cpu", training(Reads::rows_only), {.batch = 4, .micro_batch = 4});
  EXPECT_EQ(apart.count("clear"), 1u);
}

std::size_t count_of(const graph::Graph& graph, std::string_view op) {
  return static_cast<std::size_t>(
      std::ranges::count_if(graph.nodes(), [&](const graph::Node& node) { return node.op == op; }));
}

TEST(TableGradients, TurnProductsRoundAndAddRows) {
  const graph::Graph before = target::prepare_graph(target::cpu::decompose(training(Reads::tied)(4)));
  const graph::Graph after = target::cpu::add_into_tables(before);
  EXPECT_EQ(count_of(after, "Transpose") + 1, count_of(before, "Transpose"));
  EXPECT_EQ(count_of(after, "Gemm"), count_of(before, "Gemm"));
  EXPECT_EQ(count_of(after, "Add") + 1, count_of(before, "Add"));
  EXPECT_EQ(count_of(after, "ConstantOfShape") + 1, count_of(before, "ConstantOfShape"));
}

// Where somebody else reads the product's part of the gradient, it stays as it is.
TEST(TableGradients, LeaveAloneWhatOthersRead) {
  graph::Graph before = target::prepare_graph(target::cpu::decompose(training(Reads::tied)(4)));
  for (const graph::Node& node : before.nodes())
    if (node.op == "Add" && before.type(node.outputs[0]).shape == Shape{words, width}) {
      before.add_output("first", node.inputs[0]);
      before.add_output("second", node.inputs[1]);
      break;
    }
  const graph::Graph after = target::cpu::add_into_tables(before);
  EXPECT_EQ(count_of(after, "Add"), count_of(before, "Add"));
}

}  // namespace
}  // namespace superstep
