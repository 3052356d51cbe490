// How PrintTensor writes: digits, widths, brackets, long lines and long tensors.
#include "tests/poplar/machine.h"

using namespace poplar;
using namespace poplar::program;

namespace {

template <class T>
std::string printed(const Type& type, std::vector<std::size_t> shape, std::vector<T> values,
                    const PrintTensorFmt& format = {}) {
  Machine machine;
  Tensor t = machine.variable(type, shape, "t");
  machine.graph.setInitialValue(t, ArrayRef<T>(values));
  return machine.printed(PrintTensor("t", t, format));
}

}  // namespace

TEST(PoplarPrint, EightDigitsOfTheLargestNumber) {
  EXPECT_EQ(printed<float>(FLOAT, {3}, {1, 1.5f, 2.25f}), "t: [1.0000000 1.5000000 2.2500000]\n");
  EXPECT_EQ(printed<float>(FLOAT, {2}, {-123.5f, 7}), "t: [-123.50000    7.00000]\n");
  EXPECT_EQ(printed<float>(HALF, {2}, {0.5f, 1}), "t: [0.5000000 1.0000000]\n");
}

TEST(PoplarPrint, ScientificWhereDigitsWouldBeLost) {
  EXPECT_EQ(printed<float>(FLOAT, {2}, {1e9f, 1}), "t: [1.0000000e+09 1.0000000e+00]\n");
  EXPECT_EQ(printed<float>(FLOAT, {2}, {1e-6f, 1}), "t: [1.0000000e-06 1.0000000e+00]\n");
  EXPECT_EQ(printed<float>(FLOAT, {2}, {1e9f, 1}, PrintTensorFmt(10, 3, 75, 8, FloatFormat::Fixed)),
            "t: [1000000000          1]\n");
}

TEST(PoplarPrint, IntegersStandBareInOneWidth) {
  EXPECT_EQ(printed<int>(INT, {3}, {5, -10, 100}), "t: [  5 -10 100]\n");
  EXPECT_EQ(printed<char>(BOOL, {2}, {1, 0}), "t: [1 0]\n");
  EXPECT_EQ(printed<int>(INT, {3}, {5, -10, 100}, PrintTensorFmt(1000, 3, 75, 0)), "t: [5 -10 100]\n");
}

TEST(PoplarPrint, MatricesHaveTheirOuterBracketsOnLinesOfTheirOwn) {
  EXPECT_EQ(printed<int>(INT, {2, 2}, {1, 2, 3, 4}), "t: [\n [1 2]\n [3 4]\n]\n");
  EXPECT_EQ(printed<int>(INT, {1, 2, 1}, {1, 2}), "t: [\n [\n  [1]\n  [2]\n ]\n]\n");
  EXPECT_EQ(printed<int>(INT, {}, {7}), "t: 7\n");
}

TEST(PoplarPrint, LongTensorsShowTheirEdges) {
  std::vector<int> values(8);
  for (int i = 0; i < 8; ++i) values[static_cast<std::size_t>(i)] = i;
  EXPECT_EQ(printed<int>(INT, {8}, values, PrintTensorFmt(4, 2)), "t: [0 1 ... 6 7]\n");
  EXPECT_EQ(printed<int>(INT, {8}, values, PrintTensorFmt(8, 2)), "t: [0 1 2 3 4 5 6 7]\n");
  EXPECT_EQ(printed<int>(INT, {4, 2}, values, PrintTensorFmt(4, 1)), "t: [\n [0 1]\n ...\n [6 7]\n]\n");
}

TEST(PoplarPrint, LongLinesAreBroken) {
  EXPECT_EQ(printed<int>(INT, {5}, {10, 11, 12, 13, 14}, PrintTensorFmt(1000, 3, 7)),
            "t: [10 11\n 12 13\n 14]\n");
}

TEST(PoplarPrint, BracketsAndSeparatorsCanBeChosen) {
  EXPECT_EQ(
      printed<int>(INT, {3}, {1, 2, 3}, PrintTensorFmt(1000, 3, 75, 8, FloatFormat::Auto, ',', '(', ')')),
      "t: (1,2,3)\n");
}

TEST(PoplarPrint, ATitleThatIsLeftOutIsTheTensorsName) {
  Machine machine;
  Tensor t = machine.counting({2}, "weights");
  EXPECT_EQ(machine.printed(PrintTensor(t)), "weights: [0 1]\n");
}
