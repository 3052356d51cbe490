#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/product/attention.h"
#include "superstep/op/rows/cumulative.h"
#include "superstep/op/window/pooling.h"
#include "tests/op/cases/case.h"

namespace superstep::op::test {
namespace {

using Extents = std::vector<std::int64_t>;

Function node(const char* op, Attributes attributes, int outputs = 1) {
  return [=](Builder& builder, std::span<const Var> x) { return builder.node(op, x, attributes, outputs); };
}

Case linear_attention(const char* rule, std::vector<Tensor> inputs, bool past, std::int64_t query_heads = 2) {
  const std::string name = rule;
  const bool decays = name.starts_with("gated"), delta = name.ends_with("delta");
  const Attributes attributes{
      {"update_rule", name}, {"q_num_heads", query_heads}, {"kv_num_heads", std::int64_t{2}}};
  const Function function = [=](Builder& builder, std::span<const Var> x) {
    std::vector<Var> all(x.begin(), x.begin() + 3);
    std::size_t next = 3;
    all.push_back(past ? x[next++] : Var());
    all.push_back(decays ? x[next++] : Var());
    all.push_back(delta ? x[next++] : Var());
    return builder.node("LinearAttention", all, attributes, 2);
  };
  return {"LinearAttention", rule, function, std::move(inputs)};
}

std::vector<Case> linear_attention_cases() {
  // Two samples of three steps, two heads of two key and three value elements.
  const Tensor q = random_tensor({2, 3, 4}, 240), k = random_tensor({2, 3, 4}, 241, 0.5),
               v = random_tensor({2, 3, 6}, 242);
  const Tensor state = random_tensor({2, 2, 2, 3}, 243), decay = uniform_tensor({2, 3, 2}, 244, -1, 0);
  const Tensor decay_by_key = uniform_tensor({2, 3, 4}, 245, -1, 0),
               beta = uniform_tensor({2, 3, 2}, 246, 0, 1);
  return {
      linear_attention("linear", {q, k, v}, false),
      linear_attention("gated", {q, k, v, state, decay_by_key}, true),
      linear_attention("delta", {q, k, v, uniform_tensor({2, 3, 1}, 247, 0, 1)}, false),
      linear_attention("gated_delta", {q, k, v, state, decay, beta}, true),
      linear_attention("gated", {random_tensor({2, 3, 8}, 248), k, v, decay}, false, 4),
  };
}

}  // namespace

std::vector<Case> state_cases() {
  const Tensor sequence = random_tensor({2, 3, 5}, 250), kernel = random_tensor({3, 1, 3}, 251);
  const Tensor cache = random_tensor({2, 4, 3}, 252), update = random_tensor({2, 2, 3}, 253);
  const Tensor image = uniform_tensor({2, 3, 2, 2}, 254, 0.2, 2);
  const Attributes grams{{"mode", std::string("TFIDF")},
                         {"min_gram_length", std::int64_t{1}},
                         {"max_gram_length", std::int64_t{2}},
                         {"max_skip_count", std::int64_t{1}},
                         {"ngram_counts", Extents{0, 2}},
                         {"ngram_indexes", Extents{0, 1, 2, 3}},
                         {"pool_int64s", Extents{2, 3, 5, 4, 6, 2}},
                         {"weights", std::vector<double>{1, 2, 0.5, 4}}};
  std::vector<Case> cases = {
      {"CausalConvWithState", "zeros before", node("CausalConvWithState", {}, 2), {sequence, kernel}},
      {"CausalConvWithState",
       "a past, bias and activation",
       node("CausalConvWithState", {{"activation", std::string("silu")}}, 2),
       {sequence, kernel, random_tensor({3}, 255), random_tensor({2, 3, 2}, 256)}},
      {"CausalConvWithState",
       "one tap",
       node("CausalConvWithState", {}, 2),
       {sequence, random_tensor({3, 1, 1}, 257)}},
      {"TensorScatter", "from the front", OF(tensor_scatter(x[0], x[1])), {cache, update}},
      {"TensorScatter", "linear", OF(tensor_scatter(x[0], x[1], x[2])), {cache, update, i64({2}, {1, 2})}},
      {"TensorScatter",
       "circular",
       OF(tensor_scatter(x[0], x[1], x[2], 1, true)),
       {cache, update, i64({2}, {3, 7})}},
      {"CumProd", "first axis", OF(cumprod(x[0], 0)), {sequence}},
      {"CumProd", "exclusive", OF(cumprod(x[0], -1, true)), {sequence}},
      {"CumProd", "reversed", OF(cumprod(x[0], 2, false, true)), {sequence}},
      {"CumProd", "exclusive and reversed", OF(cumprod(x[0], 1, true, true)), {sequence}},
      {"CumProd", "with a zero", OF(cumprod(x[0], 0)), {f64({5}, {2, 0, 3, -1, 4})}},
      {"CumProd", "integers", OF(cumprod(x[0], 0)), {i64({4}, {2, -3, 4, 5})}, Smooth::no},
      {"SwiGLU", "plain", OF(swiglu(x[0], x[1])), {update, random_tensor({2, 2, 3}, 258)}},
      {"SwiGLU", "alpha", OF(swiglu(x[0], x[1], 1.7)), {update, random_tensor({2, 2, 3}, 258)}},
      {"BitCast",
       "integers",
       OF(bit_cast(x[0], ElementType::f64)),
       {i64({2}, {4607182418800017408, 0})},
       Smooth::no},
      {"GlobalLpPool", "1-norm", OF(global_lp_pool(x[0], 1)), {image}},
      {"GlobalLpPool", "2-norm", OF(global_lp_pool(x[0])), {image}},
      {"GlobalLpPool", "3-norm", OF(global_lp_pool(x[0], 3)), {image}},
      {"TfIdfVectorizer",
       "rows",
       node("TfIdfVectorizer", grams),
       {i64({2, 5}, {2, 5, 4, 2, 6, 3, 5, 2, 4, 6})},
       Smooth::no},
  };
  for (Case& item : linear_attention_cases()) cases.push_back(std::move(item));
  return cases;
}

}  // namespace superstep::op::test
