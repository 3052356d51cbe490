#include "superstep/transform/passes.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

TEST(FoldConstants, EvaluatesChains) {
  const auto graph = after(fold_constants, R"(input %x : f32[3]
constant %a : f32[3] = [1.0, 2.0, 3.0]
%b : f32[3] = Neg(%a)
%c : f32[3] = Abs(%b)
%y : f32[3] = Add(%x, %c)
output "y" = %y)");
  EXPECT_EQ(body_of(graph), R"(input %x : f32[3]
constant %c : f32[3] = [1.0, 2.0, 3.0]
%y : f32[3] = Add(%x, %c)
output "y" = %y
)");
}

TEST(FoldConstants, KnowsShapesOfWhatItDoesNotKnow) {
  const auto graph = after(fold_constants, R"(input %x : f32[3,5]
%s : i64[2] = Shape(%x)
%n : i64[] = Size(%x)
%t : i64[1] = Shape(%x) {start = -1}
output "s" = %s
output "n" = %n
output "t" = %t)");
  EXPECT_EQ(graph.node_count(), 0u);
  EXPECT_TRUE(contains(body_of(graph), "constant %s : i64[2] = [3, 5]"));
  EXPECT_TRUE(contains(body_of(graph), "constant %n : i64[] = [15]"));
  EXPECT_TRUE(contains(body_of(graph), "constant %t : i64[1] = [5]"));
}

TEST(FoldConstants, LeavesAloneWhatDependsOnInputsAndState) {
  after(fold_constants, R"(input %x : f32[2]
state %w : f32[2] = [1.0, 2.0]
%a : f32[2] = Exp(%x)
%b : f32[2] = Exp(%w)
output "a" = %a
output "b" = %b)");
}

TEST(FoldConstants, DoesNotMakeLargeConstantsOfSmallOnes) {
  const auto graph = after(fold_constants, R"(constant %s : i64[2] = [1000, 1000]
%large : f32[1000,1000] = ConstantOfShape(%s)
constant %t : i64[1] = [10]
%small : f32[10] = ConstantOfShape(%t)
output "large" = %large
output "small" = %small)");
  EXPECT_EQ(graph.node_count(), 1u);
}

TEST(FoldConstants, LeavesGradientsInBackward) {
  const auto graph = after(fold_constants, R"(state %w : f32[] = [1.0]
constant %c : f32[] = [2.0]
%g : f32[] = Neg(%c) @backward
%next : f32[] = Add(%w, %g) @update
update %w = %next)");
  EXPECT_EQ(count_of(graph, "Neg"), 1);
}

TEST(FoldParameters, TakesWhatStatesHold) {
  const auto graph = after(fold_parameters, R"(input %x : f32[2]
state %w : f32[2] = [1.0, 2.0]
constant %c : f32[2] = [3.0, 4.0]
%a : f32[2] = Add(%w, %c)
%b : f32[2] = Neg(%a)
%y : f32[2] = Mul(%x, %b)
output "y" = %y)");
  // The state stays, for who sets it.
  EXPECT_EQ(body_of(graph), R"(input %x : f32[2]
state %w : f32[2] = [1.0, 2.0]
constant %b : f32[2] = [-4.0, -6.0]
%y : f32[2] = Mul(%x, %b)
output "y" = %y
)");
}

TEST(FoldParameters, LeavesWhatAnUpdateWillChange) {
  const auto graph = after(fold_parameters, R"(input %x : f32[2]
state %w : f32[2] = [1.0, 2.0]
%a : f32[2] = Neg(%w)
%next : f32[2] = Add(%w, %x) @update
update %w = %next
output "a" = %a)");
  EXPECT_EQ(count_of(graph, "Neg"), 1);
}

}  // namespace
}  // namespace superstep::transform
