// superstep graph, as a user calls it: the passes listed, the graph between them, one left out, one to blame.
#include <gtest/gtest.h>

#include "superstep/base/file.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;
const fs::path models = fs::path(SUPERSTEP_SOURCE) / "tests/onnx/models";

class GraphCommand : public ::testing::Test {
 protected:
  Outcome graph(const std::string& arguments) { return run_program(folder_ / "", "graph " + arguments); }
  std::string printed(const std::string& arguments) {
    const Outcome outcome = graph(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.errors;
    return outcome.output;
  }
  ScratchFolder folder_;
};

std::size_t at(const std::string& text, const std::string& word) { return text.find(word); }

TEST_F(GraphCommand, ListsThePassesOfATargetInOrder) {
  const std::string table = printed("braggnn --on cpu --mode train --batch 4 --passes");
  std::size_t before = 0;
  for (const char* pass : {"compose_linear", "make_training_step", "widen_half", "fold_normalizations",
                           "decompose", "over_parts", "fold_constants", "eliminate_common", "eliminate_dead",
                           "postpone_linear", "add_into_tables", "remake_between_passes", "recompute"}) {
    ASSERT_NE(at(table, pass), std::string::npos) << pass << "\n" << table;
    EXPECT_GT(at(table, pass), before) << pass;
    before = at(table, pass);
  }
  EXPECT_FALSE(contains(table, "graph \"")) << "the list instead of the graph";
  const std::string tiles = printed("unet-64 --set size=16 --set width=4 --on gc200 --mode train --passes");
  EXPECT_TRUE(contains(tiles, "normalize_by_moments"));
  EXPECT_TRUE(contains(printed("mlp --on onnx --mode train --passes"), "expand_to_onnx"));
  EXPECT_TRUE(contains(printed("braggnn --on cpu --precision bf16 --passes"), "autocast"));
  EXPECT_TRUE(contains(printed("braggnn --on cpu --precision int8 --batch 8 --passes"), "quantize"));
}

TEST_F(GraphCommand, ShowsTheGraphAfterAPass) {
  const std::string model = printed("braggnn"), composed = printed("braggnn --on cpu --after compose_linear"),
                    step = printed("braggnn --on cpu --mode train --after make_training_step");
  EXPECT_NE(model, composed);
  EXPECT_FALSE(contains(composed, "@update"));
  EXPECT_TRUE(contains(step, "@update"));
  EXPECT_EQ(graph("braggnn --on cpu --after compos_linear").code, 2);
}

TEST_F(GraphCommand, LeavesAPassOutOrSaysWhyNot) {
  EXPECT_NE(printed("braggnn --on cpu"), printed("braggnn --on cpu --skip compose_linear"));
  EXPECT_TRUE(contains(printed("braggnn --on cpu --skip compose_linear --passes"), "skipped"));
  const Outcome refused = graph("braggnn --on cpu --mode train --skip make_training_step");
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(contains(refused.errors, "make_training_step: this pass cannot be left out")) << refused.errors;
  EXPECT_EQ(graph("braggnn --on cpu --skip simplify --after simplify").code, 2);
}

TEST_F(GraphCommand, TakesModelFiles) {
  const std::string file = "'" + (models / "mlp/model.onnx").string() + "'";
  EXPECT_TRUE(contains(printed(file + " --on cpu --mode train --loss mse --passes"), "make_training_step"));
  EXPECT_TRUE(contains(printed(file), "graph \""));
}

TEST_F(GraphCommand, BisectsAndWritesWhatItIsAskedFor) {
  const std::string table = printed("mlp --on cpu --mode train --bisect");
  EXPECT_TRUE(contains(table, "other results")) << "the training step";
  EXPECT_TRUE(contains(table, "No pass changes a result by more than it may."));
  printed("mlp --on cpu --mode train --passes --dump dumps --out graph.txt");
  EXPECT_TRUE(fs::exists(folder_ / "dumps/00-input.graph"));
  EXPECT_TRUE(contains(read_text_file(folder_ / "graph.txt"), "@update"));
}

TEST_F(GraphCommand, RefusesWhatDoesNotGoTogether) {
  EXPECT_EQ(graph("mlp --precision int8 --mode train").code, 2);
  EXPECT_EQ(graph("mlp --on onnx --precision bf16").code, 2);
  EXPECT_EQ(graph("mlp --on cup --passes").code, 2);
}

}  // namespace
}  // namespace superstep
