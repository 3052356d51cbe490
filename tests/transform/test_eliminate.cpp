#include "superstep/transform/passes.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

TEST(EliminateDead, RemovesNodesAndConstants) {
  const auto graph = after(eliminate_dead, R"(input %x : f32[2]
constant %c : f32[1] = [1.0]
%dead : f32[2] = Add(%x, %c)
%y : f32[2] = Neg(%x)
output "y" = %y)");
  EXPECT_EQ(body_of(graph), "input %x : f32[2]\n%y : f32[2] = Neg(%x)\noutput \"y\" = %y\n");
}

TEST(EliminateDead, KeepsWhatOnlyAnUpdateNeeds) {
  after(eliminate_dead, R"(input %x : f32[2]
state %s : f32[2] = [0.0, 0.0]
%y : f32[2] = Neg(%x)
update %s = %y)");
}

TEST(EliminateCommon, MergesEqualNodesAndConstants) {
  const auto graph = after(eliminate_common, R"(input %x : f32[2]
constant %c : f32[1] = [1.0]
constant %d : f32[1] = [1.0]
%a : f32[2] = Add(%x, %c) "first"
%b : f32[2] = Add(%x, %d) "second"
%y : f32[2] = Mul(%a, %b)
output "y" = %y)");
  EXPECT_EQ(body_of(graph), R"(input %x : f32[2]
constant %c : f32[1] = [1.0]
%a : f32[2] = Add(%x, %c) "first"
%y : f32[2] = Mul(%a, %a)
output "y" = %y
)");
}

TEST(EliminateCommon, TellsAttributesInputsAndBitsApart) {
  after(eliminate_common, R"(input %x : f32[2]
constant %c : f32[1] = [0.0]
constant %d : f32[1] = [-0.0]
%a : f32[2] = LeakyRelu(%x) {alpha = 0.1}
%b : f32[2] = LeakyRelu(%x) {alpha = 0.2}
%e : f32[2] = Sub(%a, %b)
%f : f32[2] = Sub(%b, %a)
%g : f32[1] = Reciprocal(%c)
%h : f32[1] = Reciprocal(%d)
output "e" = %e
output "f" = %f
output "g" = %g
output "h" = %h)");
}

TEST(EliminateCommon, MergesOnlyWhenTheEarlierHasTheOutputs) {
  const std::string pool = "MaxPool(%x) {kernel_shape = [2]}";
  const auto merged = after(eliminate_common, R"(input %x : f32[1,1,4]
%a : f32[1,1,3], %i : i64[1,1,3] = )" + pool +
                                                  "\n%b : f32[1,1,3] = " + pool + R"(
output "i" = %i
output "b" = %b)");
  EXPECT_EQ(merged.node_count(), 1u);
  const auto kept = after(eliminate_common, "input %x : f32[1,1,4]\n%b : f32[1,1,3] = " + pool +
                                                "\n%a : f32[1,1,3], %i : i64[1,1,3] = " + pool + R"(
output "i" = %i
output "b" = %b)");
  EXPECT_EQ(kept.node_count(), 2u);
}

TEST(EliminateCommon, LetsBackwardReadForward) {
  const auto graph = after(eliminate_common, R"(input %x : f32[2]
%a : f32[2] = Exp(%x)
%b : f32[2] = Exp(%x) @backward
%y : f32[2] = Add(%a, %b) @backward
output "y" = %y)");
  EXPECT_EQ(count_of(graph, "Exp"), 1);
}

TEST(EliminateCommon, LeavesTheBorderAlone) {
  // %g is a gradient: were it replaced by %a, a forward value, nobody would accumulate it.
  after(eliminate_common, R"(input %x : f32[2]
state %s : f32[2] = [0.0, 0.0]
%a : f32[2] = Exp(%x)
%g : f32[2] = Exp(%x) @backward
%next : f32[2] = Add(%s, %g) @update
output "a" = %a
update %s = %next)");
  // %u may not become %b: a backward value that is no gradient would cross the border.
  after(eliminate_common, R"(input %x : f32[2]
state %s : f32[2] = [0.0, 0.0]
%b : f32[2] = Exp(%x) @backward
%u : f32[2] = Exp(%x) @update
output "b" = %b
update %s = %u)");
}

}  // namespace
}  // namespace superstep::transform
