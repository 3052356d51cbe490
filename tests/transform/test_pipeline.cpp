#include <filesystem>
#include <fstream>

#include "superstep/base/file.h"
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
                       "simplfy: there is no such pass to switch off (did you mean 'simplify'?)"));
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
