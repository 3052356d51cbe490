#include "superstep/op/move/gather.h"
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

TEST(Scatter, OtherReductionsHaveNoDerivative) {
  const Status status = check_gradients(OF(scatter_elements(x[0], x[1], x[2], 0, "mul")),
                                        std::vector{f64({3}, {1, 2, 3}), i64({1}, {1}), f64({1}, {5})});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::unsupported);
  EXPECT_NE(std::string(status.error().what()).find("reduction 'mul' has no derivative rule"),
            std::string::npos);
}

}  // namespace superstep::op::test
