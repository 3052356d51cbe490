#include "superstep/op/move/gather.h"
#include "superstep/op/move/segment.h"
#include "tests/op/support.h"

namespace superstep::op::test {
namespace {

const Tensor table = f64({3, 2}, {1, 2, 3, 4, 5, 6});

}  // namespace

TEST(Gather, ByHand) {
  expect_values(result(OF(gather(x[0], x[1])), {table, i64({2}, {-1, 0})}), {5, 6, 1, 2});
  expect_values(result(OF(gather(x[0], x[1], 1)), {table, i64({1, 1}, {1})}), {2, 4, 6});
  EXPECT_EQ(result(OF(gather(x[0], x[1], 1)), {table, i64({}, {1})}).shape(), Shape{3});
  expect_refusal(OF(gather(x[0], x[1])), {table, i64({1}, {3})},
                 "Gather: index 3 of input indices lies outside [-3, 2]");
  expect_refusal(OF(gather(x[0], x[1])), {table, f64({1}, {0})},
                 "Gather: input indices is f64[1], expected an integer type");
}

TEST(GatherElements, ByHand) {
  expect_values(result(OF(gather_elements(x[0], x[1], 1)), {table, i64({2, 2}, {1, 1, 0, -1})}),
                {2, 2, 3, 4});
  expect_refusal(OF(gather_elements(x[0], x[1], 0)), {table, i64({1, 3}, {0, 0, 0})},
                 "GatherElements: input indices has extent 3 in axis 1, data only 2");
}

TEST(GatherND, ByHand) {
  expect_values(result(OF(gather_nd(x[0], x[1])), {table, i64({2, 2}, {0, 1, 2, 0})}), {2, 5});
  expect_values(result(OF(gather_nd(x[0], x[1], 1)), {table, i64({3, 1}, {1, 0, 1})}), {2, 3, 6});
  expect_refusal(OF(gather_nd(x[0], x[1])), {table, i64({1, 3}, {0, 1, 2})},
                 "GatherND: index vectors of length 3 after 0 batch axes do not fit data of rank 2");
}

TEST(Scatter, ByHand) {
  const Tensor zeros(ElementType::f64, {3});
  const auto scattered = [&](const char* reduction) {
    return values(result(OF(scatter_elements(x[0], x[1], x[2], 0, reduction)),
                         {f64({3}, {1, 2, 3}), i64({3}, {1, 1, -1}), f64({3}, {5, 7, -2})}));
  };
  EXPECT_EQ(scattered("none"), (std::vector<double>{1, 7, -2}));
  EXPECT_EQ(scattered("add"), (std::vector<double>{1, 14, 1}));
  EXPECT_EQ(scattered("mul"), (std::vector<double>{1, 70, -6}));
  EXPECT_EQ(scattered("max"), (std::vector<double>{1, 7, 3}));
  EXPECT_EQ(scattered("min"), (std::vector<double>{1, 2, -2}));
  expect_values(result(OF(scatter_nd(x[0], x[1], x[2])), {table, i64({1, 1}, {1}), f64({1, 2}, {8, 9})}),
                {1, 2, 8, 9, 5, 6});
  expect_refusal(OF(scatter_elements(x[0], x[1], x[2], 0, "mean")), {zeros, i64({1}, {0}), f64({1}, {0})},
                 "ScatterElements: attribute 'reduction' is 'mean', expected none, add, mul, max or min");
  expect_refusal(OF(scatter_nd(x[0], x[1], x[2])), {table, i64({1, 1}, {1}), f64({2}, {8, 9})},
                 "ScatterND: input updates is f64[2], expected shape [1,2]");
}

TEST(Segments, ByHand) {
  const Tensor edges = i64({4}, {2, 0, -1, 2});
  expect_values(result(OF(gather_rows(x[0], x[1])), {table, edges}), {5, 6, 1, 2, 0, 0, 5, 6});
  expect_values(result(OF(segment_sum(x[0], x[1], 2)), {table, i64({3}, {1, -1, 1})}), {0, 0, 6, 8});
  // Entries (0, 2), (1, 0) and twice (1, 1); one without a target.
  expect_values(
      result(OF(sparse_product(x[0], x[1], x[2], x[3], 2)),
             {table, i64({5}, {2, 0, 1, 1, 0}), i64({5}, {0, 1, 1, 1, -1}), f64({5}, {2, 10, 1, -3, 7})}),
      {10, 12, 10 - 6, 20 - 8});
}

TEST(Segments, RefusalsNameWhatWasExpected) {
  expect_refusal(OF(gather_rows(x[0], x[1])), {table, i64({1}, {3})},
                 "superstep.GatherRows: index 3 is neither a row in [0, 3) nor -1, none");
  expect_refusal(OF(segment_sum(x[0], x[1], 2)), {table, i64({3}, {0, 1, -2})},
                 "superstep.SegmentSum: index -2 is neither a row in [0, 2) nor -1, none");
  expect_refusal(
      OF(gather_rows(x[0], x[1])), {table, i64({1, 1}, {0})},
      "superstep.GatherRows: input data has 2 axes, expected 3: those of input index, and the width "
      "of a row");
  expect_refusal(OF(segment_sum(x[0], x[1], 2)), {table, i64({2}, {0, 1})},
                 "superstep.SegmentSum: input data has 3 rows, index 2 entries");
  expect_refusal(OF(segment_sum(x[0], x[1], -1)), {table, i64({3}, {0, 1, 0})},
                 "superstep.SegmentSum: attribute 'count' is -1, expected 0 or more");
  expect_refusal(OF(sparse_product(x[0], x[1], x[2], x[3], 2)),
                 {table, i64({2}, {0, 1}), i64({2}, {0, 1}), f64({3}, {1, 1, 1})},
                 "superstep.SparseProduct: input weight is f64[3], expected shape [2]");
}

// <A x, y> = <x, A' y>, and A' is the product with source and target exchanged.
TEST(Segments, ASparseProductIsTheTransposeOfItsReverse) {
  const Tensor left = random_tensor({2, 4, 3}, 1), right = random_tensor({2, 6, 3}, 2),
               w = random_tensor({2, 5}, 3);
  const Tensor source = i64({2, 5}, {0, 3, 3, -1, 1, 2, 2, 0, 1, 0}),
               target = i64({2, 5}, {5, 0, 1, 2, -1, 3, 3, 4, 0, 1});
  const auto dot = [](const Tensor& a, const Tensor& b) {
    double sum = 0;
    for (std::int64_t i = 0; i < a.element_count(); ++i) sum += a.at(i) * b.at(i);
    return sum;
  };
  const Tensor forward = result(OF(sparse_product(x[0], x[1], x[2], x[3], 6)), {left, source, target, w});
  const Tensor back = result(OF(sparse_product(x[0], x[2], x[1], x[3], 4)), {right, source, target, w});
  EXPECT_NEAR(dot(forward, right), dot(left, back), 1e-12);
  EXPECT_GT(std::abs(dot(forward, right)), 0.1);
}

TEST(Scatter, OtherReductionsHaveNoDerivative) {
  const Status status = check_gradients(OF(scatter_elements(x[0], x[1], x[2], 0, "mul")),
                                        std::vector{f64({3}, {1, 2, 3}), i64({1}, {1}), f64({1}, {5})});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::unsupported);
  EXPECT_NE(std::string(status.error().what()).find("reduction 'mul' has no derivative rule"),
            std::string::npos);
}

}  // namespace superstep::op::test
