// Operators that carry something along a sequence, and small ones of their neighbourhood.
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/integer.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/product/attention.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/product/spectral.h"
#include "superstep/op/rows/cumulative.h"
#include "superstep/op/window/pooling.h"
#include "superstep/op/window/resize.h"
#include "tests/op/support.h"

namespace superstep::op::test {
namespace {

using Extents = std::vector<std::int64_t>;

Function node(const char* op, Attributes attributes, int outputs = 1) {
  return [=](Builder& builder, std::span<const Var> x) { return builder.node(op, x, attributes, outputs); };
}

Attributes heads(const char* rule) {
  return {{"update_rule", std::string(rule)},
          {"q_num_heads", std::int64_t{1}},
          {"kv_num_heads", std::int64_t{1}}};
}

Attributes grams(const char* mode, Extents pool, Extents starts, Extents indexes) {
  return {{"mode", std::string(mode)},          {"min_gram_length", std::int64_t{2}},
          {"max_gram_length", std::int64_t{2}}, {"max_skip_count", std::int64_t{0}},
          {"ngram_counts", std::move(starts)},  {"ngram_indexes", std::move(indexes)},
          {"pool_int64s", std::move(pool)}};
}

}  // namespace

TEST(LinearAttention, WithoutGatesIsCausalAttentionWithoutSoftmax) {
  const Tensor q = random_tensor({1, 4, 3}, 1), k = random_tensor({1, 4, 3}, 2),
               v = random_tensor({1, 4, 2}, 3);
  const Function closed =
      OF(matmul(trilu(matmul(x[0], transpose(x[1], {0, 2, 1})), 0, false) * (1 / std::sqrt(3.0)), x[2]));
  expect_equal(results(node("LinearAttention", heads("linear"), 2), {q, k, v})[0], result(closed, {q, k, v}),
               1e-12);
}

TEST(LinearAttention, TwoHalvesWithTheStateBetweenAreTheWhole) {
  const Tensor q = random_tensor({1, 4, 2}, 4), k = random_tensor({1, 4, 2}, 5),
               v = random_tensor({1, 4, 2}, 6);
  const Tensor decay = uniform_tensor({1, 4, 1}, 7, -1, 0), beta = uniform_tensor({1, 4, 1}, 8, 0, 1);
  const auto run = [](bool halves) {
    return [halves](Builder& b, std::span<const Var> x) {
      Var state;
      std::vector<Var> parts;
      for (std::int64_t t = 0; t < 4; t += halves ? 2 : 4) {
        const auto part = [&](Var sequence) { return slice(sequence, {t}, {t + (halves ? 2 : 4)}, {1}); };
        const Var inputs[] = {part(x[0]), part(x[1]), part(x[2]), state, part(x[3]), part(x[4])};
        const auto outputs = b.node("LinearAttention", inputs, heads("gated_delta"), 2);
        parts.push_back(outputs[0]);
        state = outputs[1];
      }
      return std::vector{parts.size() == 1 ? parts[0] : concat(parts, 1), state};
    };
  };
  const auto whole = results(run(false), {q, k, v, decay, beta}),
             joined = results(run(true), {q, k, v, decay, beta});
  for (std::size_t i = 0; i < 2; ++i) expect_equal(joined[i], whole[i], 1e-12);
}

TEST(LinearAttention, Refuses) {
  const Tensor q = random_tensor({1, 2, 2}, 9);
  expect_refusal(node("LinearAttention", heads("gated"), 2), {q, q, q},
                 "input decay belongs to the update rules gated");
  expect_refusal(node("LinearAttention", heads("delta"), 2), {q, q, q},
                 "input beta belongs to the update rules delta");
  expect_refusal(node("LinearAttention", heads("retention"), 2), {q, q, q},
                 "attribute 'update_rule' is 'retention'");
  expect_refusal(node("LinearAttention", heads("linear"), 2), {q, random_tensor({1, 2, 3}, 9), q},
                 "input key is [1,2,3], expected [1,2,2]");
}

TEST(CausalConvWithState, IsAConvolutionOfThePaddedSequence) {
  const Tensor x0 = random_tensor({2, 3, 5}, 10), w = random_tensor({3, 1, 4}, 11);
  const auto outputs = results(node("CausalConvWithState", {}, 2), {x0, w});
  expect_equal(outputs[0], result(OF(conv(x[0], x[1], {}, {.pads = {3, 0}, .group = 3})), {x0, w}), 1e-12);
  expect_equal(outputs[1], result(OF(slice(x[0], {2}, {5}, {2})), {x0}));
  expect_refusal(node("CausalConvWithState", {{"activation", std::string("relu")}}, 2), {x0, w},
                 "attribute 'activation' is 'relu'");
  expect_refusal(node("CausalConvWithState", {}, 2), {x0, random_tensor({2, 1, 4}, 11)},
                 "input weight is f64[2,1,4]");
}

TEST(TensorScatter, WritesWhereItIsTold) {
  const Tensor cache = f64({2, 3, 1}, {1, 2, 3, 4, 5, 6}), update = f64({2, 2, 1}, {10, 20, 30, 40});
  expect_values(result(OF(tensor_scatter(x[0], x[1], x[2])), {cache, update, i64({2}, {1, 0})}),
                {1, 10, 20, 30, 40, 6});
  expect_values(result(OF(tensor_scatter(x[0], x[1], x[2], 1, true)), {cache, update, i64({2}, {2, 4})}),
                {20, 2, 10, 4, 30, 40});
  expect_refusal(OF(tensor_scatter(x[0], x[1], x[2])), {cache, update, i64({2}, {2, 0})},
                 "input write_indices holds 2, expected 0 to 1");
  expect_refusal(OF(tensor_scatter(x[0], x[1], {}, 0)), {cache, update},
                 "attribute 'axis' names the batch axis");
  expect_refusal(OF(tensor_scatter(x[0], x[1])), {cache, f64({2, 4, 1}, std::vector<double>(8))},
                 "input update is [2,4,1]");
}

TEST(CumProd, ByHand) {
  const Tensor row = f64({4}, {2, 3, 0.5, 4});
  expect_values(result(OF(cumprod(x[0], 0)), {row}), {2, 6, 3, 12});
  expect_values(result(OF(cumprod(x[0], 0, true)), {row}), {1, 2, 6, 3});
  expect_values(result(OF(cumprod(x[0], 0, false, true)), {row}), {12, 6, 2, 4});
  expect_values(result(OF(cumprod(x[0], 0, true, true)), {row}), {6, 2, 4, 1});
  expect_refusal(OF(cumprod(x[0], 1)), {row}, "input axis 1 lies outside [-1, 0]");
}

TEST(BitCast, KeepsTheBits) {
  const Tensor x0 = f64({2}, {1, -2}).converted(ElementType::f32);
  expect_values(result(OF(bit_cast(x[0], ElementType::i32)), {x0}), {1065353216, -1073741824});
  expect_refusal(OF(bit_cast(x[0], ElementType::i64)), {x0}, "expected a type of as many bits as i64");
}

TEST(BitShift, SignedNumbersKeepTheirSign) {
  const Tensor a = i64({5}, {-128, 127, -1, 64, -7}).converted(ElementType::i8),
               by = i64({5}, {2, 1, 9, 1, -3}).converted(ElementType::i8);
  expect_values(result(OF(bit_shift(x[0], x[1], "RIGHT")), {a, by}), {-32, 63, -1, 32, -1});
  expect_values(result(OF(bit_shift(x[0], x[1], "LEFT")), {a, by}), {0, -2, 0, -128, 0});
  expect_refusal(OF(bit_shift(x[0], x[1], "UP")), {a, by}, "attribute 'direction' is 'UP'");
  expect_refusal(OF(bit_shift(x[0], x[0], "LEFT")), {f64({1}, {1})}, "expected an integer type");
}

TEST(Mod, FloatingRemaindersTakeTheSignOfTheDivisor) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor a = f64({5}, {-4.3, 4.3, 5, -3, 3}), b0 = f64({5}, {2, -2, 2.5, infinity, -infinity});
  expect_values(result(OF(mod(x[0], x[1])), {a, b0}), {1.7, -1.7, 0, infinity, -infinity}, 1e-14);
  expect_values(result(OF(mod(x[0], x[1], true)), {a, b0}), {-0.3, 0.3, 0, -3, 3}, 1e-14);
}

TEST(SwiGLU, ByHand) {
  const double half = 1 / (1 + std::exp(-1.0));
  expect_values(result(OF(swiglu(x[0], x[1], 2)), {f64({1}, {0.5}), f64({1}, {4})}), {2 * half}, 1e-14);
  expect_refusal(OF(swiglu(x[0], x[1])), {f64({1}, {1}), f64({2}, {1, 2})},
                 "input B is f64[2], expected shape [1]");
}

TEST(GlobalLpPool, ByHand) {
  const Tensor x0 = f64({1, 1, 2}, {-3, 4});
  expect_values(result(OF(global_lp_pool(x[0], 1)), {x0}), {7});
  expect_values(result(OF(global_lp_pool(x[0])), {x0}), {5});
  expect_values(result(OF(global_lp_pool(x[0], 3)), {x0}), {std::cbrt(91.0)}, 1e-14);
  expect_refusal(OF(global_lp_pool(x[0], 0)), {x0}, "attribute 'p' is 0, expected 1 or more");
}

TEST(Dft, TheInverseOfOneSideGivesTheSignalBack) {
  for (std::int64_t length : {6, 7}) {
    const Tensor signal = random_tensor({2, length, 1}, 20);
    expect_equal(result(OF(dft(dft(x[0], 1, false, true), 1, true, true, length)), {signal}), signal, 1e-12);
  }
}

TEST(TfIdfVectorizer, CountsPairs) {
  const Tensor row = i64({6}, {5, 4, 5, 4, 7, 5});
  const Extents pool = {5, 4, 7, 5, 4, 7};
  expect_values(result(node("TfIdfVectorizer", grams("TF", pool, {0, 0}, {2, 0, 1})), {row}), {1, 1, 2});
  expect_values(result(node("TfIdfVectorizer", grams("IDF", pool, {0, 0}, {2, 0, 1})), {row}), {1, 1, 1});
  expect_refusal(node("TfIdfVectorizer", grams("BM25", pool, {0, 0}, {0, 1, 2})), {row},
                 "attribute 'mode' is 'BM25'");
  expect_refusal(node("TfIdfVectorizer", grams("TF", pool, {0, 1}, {0, 1, 2})), {row},
                 "does not divide a pool of 6");
  expect_refusal(node("TfIdfVectorizer", grams("TF", pool, {0, 0}, {0, 1})), {row},
                 "'ngram_indexes' has fewer elements");
  expect_refusal(node("TfIdfVectorizer", grams("TF", pool, {0, 0}, {0, 1, -1})), {row},
                 "attribute 'ngram_indexes' holds -1");
}

TEST(Attention, AQueryThatSeesNothingGetsZeros) {
  const Tensor q = random_tensor({1, 1, 2, 2}, 21), mask = booleans({2, 2}, {1, 1, 0, 0});
  const Tensor y = result(OF(attention(x[0], x[0], x[0], x[1])), {q, mask});
  EXPECT_NE(y.at(0), 0);
  EXPECT_EQ(y.at(2), 0);
  EXPECT_EQ(y.at(3), 0);
  expect_refusal(node("Attention", {{"left_window_size", std::int64_t{-2}}}), {q, q, q},
                 "attribute 'left_window_size' is -2, expected -1 or more");
}

TEST(Resize, TensorFlowsNearestOfOperatorSet11) {
  // Output o reads floor((o + 0.5) * 7 / 3).
  expect_values(
      result(OF(resize(x[0], {1, 1, 3}, {.coordinates = "tf_half_pixel_for_nn", .nearest = "floor"})),
             {f64({1, 1, 7}, {0, 1, 2, 3, 4, 5, 6})}),
      {1, 3, 5});
}

}  // namespace superstep::op::test
