#include <filesystem>
#include <fstream>

#include "superstep/base/file.h"
#include "superstep/op/core/builder.h"
#include "superstep/transform/border.h"
#include "superstep/transform/passes.h"
#include "superstep/transform/pipeline.h"
#include "superstep/transform/rewrite.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

const char* const untidy = R"(input %x : f32[2]
constant %zero : f32[2] = [0.0, 0.0]
constant %a : f32[] = [2.0]
%b : f32[] = Add(%a, %a)
%h : f32[2] = Add(%x, %zero)
%i : f32[2] = Mul(%h, %b)
%j : f32[2] = Mul(%x, %b)
%dead : f32[2] = Exp(%j)
%y : f32[2] = Sub(%i, %j)
output "y" = %y
)";

// A pass with a mistake: the node's declared type is not what its operator gives.
bool break_types(graph::Graph& graph) {
  graph::Graph broken("broken");
  const auto x = broken.add_input("x", {ElementType::f32, {2}});
  const graph::ValueType wrong{ElementType::f32, {3}};
  const std::string name = "y";
  const auto node = broken.add_node("Neg", {x}, std::span(&wrong, 1), {}, "conv1", {}, std::span(&name, 1));
  broken.add_output("y", broken.node(node).outputs[0]);
  graph = std::move(broken);
  return true;
}

std::string error_of(std::span<const Pass> passes, const PipelineOptions& options = {}) {
  graph::Graph graph = graph_of(untidy);
  try {
    run_pipeline(graph, passes, options);
    return "no error";
  } catch (const Error& error) {
    return error.what();
  }
}

class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() / ("superstep-pipeline-" + std::to_string(::getpid()))) {
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TEST(Pipeline, TidiesUp) {
  graph::Graph graph = graph_of(untidy);
  const graph::Graph before = graph;
  const PipelineReport report = run_pipeline(graph, standard_passes());
  EXPECT_EQ(operators_of(graph), (std::vector<std::string>{"Mul", "Sub"}));
  expect_same_results(before, graph);
  EXPECT_EQ(report.records.front().pass, "fold_constants");
  EXPECT_TRUE(report.records.front().changed);
  EXPECT_EQ(report.records.front().nodes_before, 6u);
  EXPECT_EQ(report.records.back().nodes_after, 2u);
  EXPECT_GE(report.records.front().seconds, 0);
  EXPECT_TRUE(contains(report.to_string(), "eliminate_common"));
}

// Random graphs with much to tidy: neutral constants, views, transposes, repeated nodes, three phases.
class UntidyGraph {
 public:
  explicit UntidyGraph(std::uint64_t seed) : random_(seed), builder_(graph_) {}

  graph::Graph make() {
    values_ = {builder_.input("x", ElementType::f32, {3, 3}), builder_.input("z", ElementType::f32, {3, 3}),
               builder_.state("w", random_tensor(ElementType::f32, {3, 3}, 9))};
    for (int i = 0; i < 40; ++i) {
      builder_.set_phase(static_cast<graph::Phase>(i / 15));
      values_.push_back(some_node());
    }
    builder_.output("y", values_[20]);
    builder_.output("last", values_.back());
    builder_.update(values_[2], values_.back());
    return graph_;
  }

 private:
  op::Var some() { return values_[random_.below(values_.size())]; }
  op::Var number() {
    static constexpr double numbers[] = {0, 1, -1, 2};
    const Shape shape = random_.below(2) ? Shape{} : Shape{3, 3};
    return builder_.constant(Tensor::full(ElementType::f32, shape, numbers[random_.below(4)]));
  }
  op::Var some_node() {
    static constexpr const char* binary[] = {"Add", "Sub", "Mul", "Max"};
    static constexpr const char* unary[] = {"Neg", "Relu", "Transpose", "Identity", "Tanh"};
    const char* op = binary[random_.below(4)];
    switch (random_.below(4)) {
      case 0: return builder_.node1(op, {some(), some()});
      case 1: return builder_.node1(op, {some(), number()});
      case 2: return reshaped(reshaped(some(), {9}), {3, 3});
      default: return builder_.node1(unary[random_.below(5)], {some()});
    }
  }
  op::Var reshaped(op::Var x, const std::vector<std::int64_t>& shape) {
    return builder_.node1("Reshape", {x, builder_.integers(shape)});
  }

  RandomStream random_;
  graph::Graph graph_;
  op::Builder builder_;
  std::vector<op::Var> values_;
};

std::size_t gradients_in(const graph::Graph& graph) {
  return static_cast<std::size_t>(std::ranges::count(gradient_values(graph), true));
}

TEST(Pipeline, KeepsTheMeaningOfRandomGraphs) {
  std::size_t nodes_before = 0, nodes_after = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const graph::Graph before = prune(UntidyGraph(seed).make());
    graph::Graph graph = before;
    run_pipeline(graph, standard_passes());
    ASSERT_NO_FATAL_FAILURE(expect_same_results(before, graph)) << "seed " << seed;
    ASSERT_LE(gradients_in(graph), gradients_in(before)) << "seed " << seed;
    nodes_before += before.node_count();
    nodes_after += graph.node_count();
  }
  EXPECT_LT(nodes_after, nodes_before * 3 / 4);
}

TEST(Pipeline, ChangesNothingTheSecondTime) {
  graph::Graph graph = graph_of(untidy);
  run_pipeline(graph, standard_passes());
  for (const PassRecord& record : run_pipeline(graph, standard_passes()).records)
    EXPECT_FALSE(record.changed) << record.pass;
}

TEST(Pipeline, NamesThePassThatBrokeTheGraph) {
  const Pass passes[] = {{"simplify", simplify}, {"break_types", break_types}};
  EXPECT_TRUE(contains(error_of(passes),
                       "failed after break_types: node 0 (Neg 'conv1'): output %y is declared f32[3], its "
                       "operator gives f32[2]"));
}

TEST(Pipeline, SwitchesPassesOffByName) {
  graph::Graph graph = graph_of(untidy);
  const auto report = run_pipeline(graph, standard_passes(), {.disabled = {"eliminate_common", "simplify"}});
  for (const PassRecord& record : report.records) EXPECT_NE(record.pass, "simplify");
  EXPECT_EQ(count_of(graph, "Mul"), 2);
}

TEST(Pipeline, RefusesToSwitchOffWhatIsNotThere) {
  EXPECT_TRUE(contains(error_of(standard_passes(), {.disabled = {"simplfy"}}),
                       "simplfy: there is no such pass to leave out (did you mean 'simplify'?)"));
}

TEST(Pipeline, RefusesToLeaveOutWhatIsRequired) {
  const Pass passes[] = {{"simplify", simplify},
                         {.name = "lower", .run = eliminate_dead, .required = "nothing runs without"}};
  EXPECT_TRUE(contains(error_of(passes, {.disabled = {"lower"}}),
                       "lower: this pass cannot be left out: nothing runs without"));
  EXPECT_EQ(error_of(passes, {.disabled = {"simplify"}}), "no error");
  EXPECT_THROW(without({passes[0], passes[1]}, std::vector<std::string>{"lower"}), Error);
  const std::vector<Pass> left =
      without({passes[0], passes[1]}, std::vector<std::string>{"simplify", "other"});
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].name, "lower");
}

// Whoever watches sees every pass that ran, with the graph as it is then.
TEST(Pipeline, TellsWhatEveryPassMade) {
  graph::Graph graph = graph_of(untidy);
  std::vector<PassRecord> seen;
  const auto after = [&](const graph::Graph& now, const PassRecord& record) {
    EXPECT_EQ(now.node_count(), record.nodes_after);
    seen.push_back(record);
  };
  run_pipeline(graph, standard_passes(), {.disabled = {"simplify"}, .after = after});
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0].pass, "fold_constants");
  EXPECT_EQ(seen[1].pass, "eliminate_common");
  EXPECT_EQ(seen[1].position, 2u);
  EXPECT_EQ(seen[3].nodes_after, graph.node_count());
}

TEST(Pipeline, DumpsByName) {
  const Folder folder;
  graph::Graph graph = graph_of(untidy);
  run_pipeline(graph, standard_passes(), {.dump_folder = folder.path()});
  EXPECT_TRUE(contains(read_text_file(folder.path() / "00-input.graph"), "%dead"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "01-fold_constants.graph"));
  std::string last;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    last = std::max(last, entry.path().string());
  EXPECT_EQ(read_text_file(last), graph::to_text(graph));
}

TEST(Pipeline, SaysWhereItCannotDump) {
  const Folder folder;
  std::ofstream(folder.path()) << "a file where a folder should be";
  EXPECT_TRUE(contains(error_of(standard_passes(), {.dump_folder = folder.path()}), folder.path().string()));
}

}  // namespace
}  // namespace superstep::transform
