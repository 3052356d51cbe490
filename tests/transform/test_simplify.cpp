#include "superstep/transform/passes.h"
#include "tests/transform/support.h"

namespace superstep::transform {
namespace {

struct Case {
  const char* name;
  const char* body;
  std::vector<std::string> left;  // the operators that are left
};

void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

class Simplify : public ::testing::TestWithParam<Case> {};

TEST_P(Simplify, LeavesTheseOperators) {
  EXPECT_EQ(operators_of(after(simplify, GetParam().body)), GetParam().left);
}

#define X2 "input %x : f32[2]\n"
#define Y "\noutput \"y\" = %y"

INSTANTIATE_TEST_SUITE_P(
    Arithmetic, Simplify,
    ::testing::Values(
        Case{"x + 0", X2 "constant %c : f32[] = [0.0]\n%y : f32[2] = Add(%x, %c)" Y, {}},
        Case{"0 + x", X2 "constant %c : f32[2] = [0.0, 0.0]\n%y : f32[2] = Add(%c, %x)" Y, {}},
        Case{"x + 0 that broadcasts",
             X2 "constant %c : f32[3,1] = [0.0, 0.0, 0.0]\n%y : f32[3,2] = Add(%x, %c)" Y,
             {"Add"}},
        Case{"x + not quite 0",
             X2 "constant %c : f32[2] = [0.0, 1e-30]\n%y : f32[2] = Add(%x, %c)" Y,
             {"Add"}},
        Case{"x + state 0", X2 "state %c : f32[] = [0.0]\n%y : f32[2] = Add(%x, %c)" Y, {"Add"}},
        Case{"x - 0", X2 "constant %c : f32[] = [0.0]\n%y : f32[2] = Sub(%x, %c)" Y, {}},
        Case{"0 - x", X2 "constant %c : f32[] = [0.0]\n%y : f32[2] = Sub(%c, %x)" Y, {"Sub"}},
        Case{"x * 1", X2 "constant %c : f32[] = [1.0]\n%y : f32[2] = Mul(%x, %c)" Y, {}},
        Case{"x * 0 may be NaN", X2 "constant %c : f32[] = [0.0]\n%y : f32[2] = Mul(%x, %c)" Y, {"Mul"}},
        Case{"x * -1", X2 "constant %c : f32[] = [-1.0]\n%y : f32[2] = Mul(%x, %c)" Y, {"Neg"}},
        Case{"x / 1", X2 "constant %c : f32[] = [1.0]\n%y : f32[2] = Div(%x, %c)" Y, {}},
        Case{"1 / x", X2 "constant %c : f32[] = [1.0]\n%y : f32[2] = Div(%c, %x)" Y, {"Div"}},
        Case{"x ^ 1", X2 "constant %c : f32[] = [1.0]\n%y : f32[2] = Pow(%x, %c)" Y, {}},
        Case{"x ^ 2", X2 "constant %c : f32[] = [2.0]\n%y : f32[2] = Pow(%x, %c)" Y, {"Mul"}},
        Case{"x ^ 3", X2 "constant %c : f32[] = [3.0]\n%y : f32[2] = Pow(%x, %c)" Y, {"Pow"}},
        Case{"-(-x)", X2 "%h : f32[2] = Neg(%x)\n%y : f32[2] = Neg(%h)" Y, {}},
        Case{"-(-x) with -x used",
             X2 "%h : f32[2] = Neg(%x)\n%y : f32[2] = Neg(%h)\noutput \"h\" = %h" Y,
             {"Neg"}},
        Case{"x + (-x)", X2 "%h : f32[2] = Neg(%x)\n%y : f32[2] = Add(%h, %x)" Y, {"Sub"}},
        Case{"x - (-x)", X2 "%h : f32[2] = Neg(%x)\n%y : f32[2] = Sub(%x, %h)" Y, {"Add"}},
        Case{"relu(relu(x))", X2 "%h : f32[2] = Relu(%x)\n%y : f32[2] = Relu(%h)" Y, {"Relu"}},
        Case{"exp(exp(x))", X2 "%h : f32[2] = Exp(%x)\n%y : f32[2] = Exp(%h)" Y, {"Exp", "Exp"}},
        Case{"sum of one", X2 "%y : f32[2] = Sum(%x)" Y, {}},
        Case{"sum of two", X2 "%y : f32[2] = Sum(%x, %x)" Y, {"Add"}},
        Case{"mean of two", X2 "%y : f32[2] = Mean(%x, %x)" Y, {"Mean"}}));

#define X23 "input %x : f32[2,3]\n"
#define SHAPE(n, values) "constant %s : i64[" n "] = [" values "]\n"

INSTANTIATE_TEST_SUITE_P(
    Layout, Simplify,
    ::testing::Values(
        Case{"identity", X2 "%y : f32[2] = Identity(%x)" Y, {}},
        Case{"transpose by nothing", X23 "%y : f32[2,3] = Transpose(%x) {perm = [0, 1]}" Y, {}},
        Case{"transpose twice", X23 "%h : f32[3,2] = Transpose(%x)\n%y : f32[2,3] = Transpose(%h)" Y, {}},
        Case{"transposes that do not undo each other",
             "input %x : f32[2,3,4]\n%h : f32[3,4,2] = Transpose(%x) {perm = [1, 2, 0]}\n"
             "%y : f32[4,2,3] = Transpose(%h) {perm = [1, 2, 0]}" Y,
             {"Transpose"}},
        Case{"reshape to the same", X23 SHAPE("2", "2, 3") "%y : f32[2,3] = Reshape(%x, %s)" Y, {}},
        Case{"reshape to another", X23 SHAPE("1", "6") "%y : f32[6] = Reshape(%x, %s)" Y, {"Reshape"}},
        Case{"flatten and back",
             X23 SHAPE("2", "2, 3") "%h : f32[1,6] = Flatten(%x) {axis = 0}\n"
                                    "%y : f32[2,3] = Reshape(%h, %s)" Y,
             {}},
        Case{"reshape of unsqueeze",
             X23 SHAPE("1", "6") "constant %a : i64[1] = [0]\n"
                                 "%h : f32[1,2,3] = Unsqueeze(%x, %a)\n%y : f32[6] = Reshape(%h, %s)" Y,
             {"Reshape"}},
        Case{"expand to the same", X23 SHAPE("2", "2, 3") "%y : f32[2,3] = Expand(%x, %s)" Y, {}},
        Case{"expand", X23 SHAPE("3", "4, 2, 3") "%y : f32[4,2,3] = Expand(%x, %s)" Y, {"Expand"}},
        Case{"slice of everything",
             X2 "constant %a : i64[1] = [0]\nconstant %b : i64[1] = [9]\n%y : f32[2] = Slice(%x, %a, %b)" Y,
             {}},
        Case{"slice backwards",
             X2 "constant %a : i64[1] = [1]\nconstant %b : i64[1] = [-9]\nconstant %c : i64[1] = [0]\n"
                "constant %d : i64[1] = [-1]\n%y : f32[2] = Slice(%x, %a, %b, %c, %d)" Y,
             {"Slice"}},
        Case{"pad by nothing", X2 "constant %p : i64[2] = [0, 0]\n%y : f32[2] = Pad(%x, %p)" Y, {}},
        Case{"pad that shifts", X2 "constant %p : i64[2] = [1, -1]\n%y : f32[2] = Pad(%x, %p)" Y, {"Pad"}},
        Case{"concat of one", X2 "%y : f32[2] = Concat(%x) {axis = 0}" Y, {}},
        Case{"concat of two", X2 "%y : f32[4] = Concat(%x, %x) {axis = 0}" Y, {"Concat"}},
        Case{"sum over an extent of one",
             "input %x : f32[1,3]\nconstant %a : i64[1] = [0]\n%y : f32[3] = ReduceSum(%x, %a) {keepdims = "
             "0}" Y,
             {"Reshape"}},
        Case{"sum over an extent of two",
             X23 "constant %a : i64[1] = [0]\n%y : f32[3] = ReduceSum(%x, %a) {keepdims = 0}" Y,
             {"ReduceSum"}}));

#define X4 "input %x : f32[2,4,3]\n"
INSTANTIATE_TEST_SUITE_P(
    Rows, Simplify,
    ::testing::Values(Case{"one row by a number without an axis",
                           X4 "constant %i : i64[] = [2]\n%y : f32[2,3] = Gather(%x, %i) {axis = 1}" Y,
                           {"Slice", "Reshape"}},
                      Case{"the last row counted from the end",
                           X4 "constant %i : i64[1] = [-1]\n%y : f32[2,1,3] = Gather(%x, %i) {axis = 1}" Y,
                           {"Slice"}},
                      Case{"neighbours",
                           X4 "constant %i : i64[2] = [1, 2]\n%y : f32[2,2,3] = Gather(%x, %i) {axis = 1}" Y,
                           {"Slice"}},
                      Case{"all of them",
                           X4 "constant %i : i64[2] = [0, 1]\n%y : f32[2,4,3] = Gather(%x, %i) {axis = 0}" Y,
                           {}},
                      Case{"out of order",
                           X4 "constant %i : i64[2] = [2, 1]\n%y : f32[2,2,3] = Gather(%x, %i) {axis = 1}" Y,
                           {"Gather"}},
                      Case{"apart",
                           X4 "constant %i : i64[2] = [0, 2]\n%y : f32[2,2,3] = Gather(%x, %i) {axis = 1}" Y,
                           {"Gather"}},
                      Case{"a table of them",
                           X4 "constant %i : i64[1,1] = [1]\n%y : f32[2,1,1,3] = Gather(%x, %i) {axis = 1}" Y,
                           {"Gather"}},
                      Case{"numbers that are not constant",
                           X4 "input %i : i64[]\n%y : f32[2,3] = Gather(%x, %i) {axis = 1}" Y,
                           {"Gather"}}));

INSTANTIATE_TEST_SUITE_P(
    Broadcasting, Simplify,
    ::testing::Values(
        Case{"expanded for a product",
             X23 "input %c : f32[]\n" SHAPE("2", "2, 3") "%h : f32[2,3] = Expand(%c, %s)\n"
                                                         "%y : f32[2,3] = Mul(%x, %h)" Y,
             {"Mul"}},
        Case{"both expanded",
             "input %c : f32[3]\n" SHAPE("2", "2, 3") "%h : f32[2,3] = Expand(%c, %s)\n"
                                                      "%y : f32[2,3] = Mul(%h, %h)" Y,
             {"Expand", "Mul"}},
        Case{"all expanded but one",
             X23 "input %b : bool[]\ninput %c : f32[3]\n" SHAPE(
                 "2", "2, 3") "%h : f32[2,3] = Expand(%c, %s)\n"
                              "%k : bool[2,3] = Expand(%b, %s)\n%y : f32[2,3] = Where(%k, %x, %h)" Y,
             {"Where"}},
        Case{"expanded for its own sake",
             "input %c : f32[3]\n" SHAPE("2",
                                         "2, 3") "%h : f32[2,3] = Expand(%c, %s)\n%y : f32[2,3] = Exp(%h)" Y,
             {"Expand", "Exp"}}));

TEST(Simplify, MakesScalarsOfConstantsThatRepeat) {
  const auto graph = after(simplify, X2 "constant %c : f32[2] = [3.0, 3.0]\n%y : f32[2] = Mul(%x, %c)" Y);
  EXPECT_TRUE(contains(body_of(graph), ": f32[] = [3.0]"));
  after(simplify, X2 "constant %c : f32[2] = [0.0, -0.0]\n%y : f32[2] = Mul(%x, %c)" Y);
}

TEST(Simplify, LeavesConstantsThatGiveTheShape) {
  after(simplify, "input %x : f32[1]\nconstant %c : f32[2] = [3.0, 3.0]\n%y : f32[2] = Mul(%x, %c)" Y);
}

// 1 is f32, 7 i64, 10 f16, 11 f64, 16 bf16 in ONNX's numbering.
INSTANTIATE_TEST_SUITE_P(
    Casts, Simplify,
    ::testing::Values(
        Case{"to the same", X2 "%y : f32[2] = Cast(%x) {to = 1}" Y, {}},
        Case{"wider and back", X2 "%h : f64[2] = Cast(%x) {to = 11}\n%y : f32[2] = Cast(%h) {to = 1}" Y, {}},
        Case{"narrower and back",
             X2 "%h : bf16[2] = Cast(%x) {to = 16}\n%y : f32[2] = Cast(%h) {to = 1}" Y,
             {"Cast", "Cast"}},
        Case{"bf16 over f16",
             "input %x : bf16[2]\n%h : f16[2] = Cast(%x) {to = 10}\n%y : bf16[2] = Cast(%h) {to = 16}" Y,
             {"Cast", "Cast"}},
        Case{"bf16 over f32 to f64",
             "input %x : bf16[2]\n%h : f32[2] = Cast(%x) {to = 1}\n%y : f64[2] = Cast(%h) {to = 11}" Y,
             {"Cast"}},
        Case{"through integers",
             X2 "%h : i64[2] = Cast(%x) {to = 7}\n%y : f32[2] = Cast(%h) {to = 1}" Y,
             {"Cast", "Cast"}},
        Case{"i32 over f64",
             "input %x : i32[2]\n%h : f64[2] = Cast(%x) {to = 11}\n%y : i32[2] = Cast(%h) {to = 6}" Y,
             {}},
        Case{"i32 over f32",
             "input %x : i32[2]\n%h : f32[2] = Cast(%x) {to = 1}\n%y : i32[2] = Cast(%h) {to = 6}" Y,
             {"Cast", "Cast"}}));

INSTANTIATE_TEST_SUITE_P(
    Dropout, Simplify,
    ::testing::Values(
        Case{"at inference", X2 "constant %r : f32[] = [0.5]\n%y : f32[2] = Dropout(%x, %r)" Y, {}},
        Case{"told not to train",
             X2 "constant %r : f32[] = [0.5]\nconstant %t : bool[] = [false]\n%y : f32[2] = Dropout(%x, %r, "
                "%t)" Y,
             {}},
        Case{"training",
             X2 "constant %r : f32[] = [0.5]\nconstant %t : bool[] = [true]\n"
                "%y : f32[2] = Dropout(%x, %r, %t)" Y,
             {"Dropout"}},
        Case{"its mask is wanted",
             X2
             "constant %r : f32[] = [0.5]\n%y : f32[2], %m : bool[2] = Dropout(%x, %r)\noutput \"m\" = %m" Y,
             {"Dropout"}}));

#define ROWS                                                                                       \
  "input %d : f32[6,3]\ninput %u : f32[5,3]\ninput %i : i64[5,1]\nconstant %s : i64[2] = [5, 3]\n" \
  "%e : i64[5,3] = Expand(%i, %s)\n"

INSTANTIATE_TEST_SUITE_P(
    RowsByNumber, Simplify,
    ::testing::Values(
        Case{"rows are added by a number for each element",
             ROWS "%y : f32[6,3] = ScatterElements(%d, %e, %u) {axis = 0, reduction = \"add\"}" Y,
             {"ScatterND"}},
        Case{"rows are read by a number for each element",
             ROWS "%y : f32[5,3] = GatherElements(%d, %e)" Y,
             {"Reshape", "Gather"}},
        Case{"parts of rows",
             "input %d : f32[6,7]\ninput %u : f32[5,3]\ninput %i : i64[5,1]\nconstant %s : i64[2] = [5, 3]\n"
             "%e : i64[5,3] = Expand(%i, %s)\n%y : f32[6,7] = ScatterElements(%d, %e, %u)" Y,
             {"Expand", "ScatterElements"}},
        Case{"columns",
             ROWS "%y : f32[6,3] = ScatterElements(%d, %e, %u) {axis = 1}" Y,
             {"Expand", "ScatterElements"}},
        Case{"numbers that differ along a row",
             "input %d : f32[4,3]\ninput %i : i64[1,3]\nconstant %s : i64[2] = [5, 3]\n"
             "%e : i64[5,3] = Expand(%i, %s)\n%y : f32[5,3] = GatherElements(%d, %e)" Y,
             {"Expand", "GatherElements"}}));

TEST(Simplify, OneSweepGoesThroughChains) {
  const auto graph = after(simplify, R"(input %x : f32[2,3]
constant %zero : f32[] = [0.0]
%a : f32[3,2] = Transpose(%x)
%b : f32[3,2] = Add(%a, %zero)
%c : f32[3,2] = Identity(%b)
%d : f32[2,3] = Transpose(%c)
%y : f32[2,3] = Exp(%d)
output "y" = %y)");
  EXPECT_EQ(body_of(graph), "input %x : f32[2,3]\n%y : f32[2,3] = Exp(%x)\noutput \"y\" = %y\n");
}

TEST(Simplify, LeavesTheBorderAlone) {
  // The gradient %g stays a node of backward, and %u may not look through it to %x.
  const auto graph = after(simplify, R"(input %x : f32[2]
state %s : f32[2] = [0.0, 0.0]
%g : f32[2] = Neg(%x) @backward
%u : f32[2] = Neg(%g) @update
%h : f32[2] = Identity(%x) @backward
%v : f32[2] = Mul(%u, %h) @update
update %s = %v)");
  EXPECT_EQ(operators_of(graph), (std::vector<std::string>{"Neg", "Neg", "Identity", "Mul"}));
}

TEST(Simplify, WithinBackwardLooksThroughForward) {
  const auto graph = after(simplify, R"(input %x : f32[2]
%a : f32[2] = Neg(%x)
%b : f32[2] = Neg(%a) @backward
%y : f32[2] = Exp(%b) @backward
output "a" = %a
output "y" = %y)");
  EXPECT_EQ(operators_of(graph), (std::vector<std::string>{"Neg", "Exp"}));
}

}  // namespace
}  // namespace superstep::transform
