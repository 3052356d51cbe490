#include "superstep/op/rows/reduction.h"

#include "tests/op/cases/case.h"

namespace superstep::op::test {
namespace {

using Reduce = Var (*)(Var, const Axes&, bool);

void add(std::vector<Case>& cases, const char* op, Reduce reduce, const Tensor& input, bool integers = true) {
  cases.push_back({op, "one axis", OF(reduce(x[0], {1}, false)), {input}});
  cases.push_back({op, "two axes, kept", OF(reduce(x[0], {0, -1}, true)), {input}});
  cases.push_back({op, "all axes", OF(reduce(x[0], {}, false)), {input}});
  if (integers)
    cases.push_back(
        {op, "integers", OF(reduce(x[0], {0}, false)), {i64({2, 3}, {4, -2, 3, 1, 5, -6})}, Smooth::no});
}

Function with_attributes(const char* op, Attributes attributes) {
  return [op, attributes](Builder& b, std::span<const Var> x) { return b.node(op, x, attributes); };
}

}  // namespace

std::vector<Case> reduction_cases() {
  const Tensor a = random_tensor({2, 3, 4}, 61), positive = uniform_tensor({2, 3, 4}, 62, 0.5, 2);
  std::vector<Case> cases;
  add(cases, "ReduceSum", reduce_sum, a);
  add(cases, "ReduceMean", reduce_mean, a);
  add(cases, "ReduceProd", reduce_prod, a);
  add(cases, "ReduceMax", reduce_max, a);
  add(cases, "ReduceMin", reduce_min, a);
  add(cases, "ReduceL1", reduce_l1, a);
  add(cases, "ReduceL2", reduce_l2, a, false);
  add(cases, "ReduceSumSquare", reduce_sum_square, a);
  add(cases, "ReduceLogSum", reduce_log_sum, positive, false);
  add(cases, "ReduceLogSumExp", reduce_log_sum_exp, a, false);
  cases.push_back({"ReduceSum",
                   "no axes, nothing to do",
                   with_attributes("ReduceSum", {{"noop_with_empty_axes", std::int64_t{1}}}),
                   {a}});
  cases.push_back(
      {"ReduceMax", "any", OF(reduce_max(x[0], {1})), {booleans({2, 2}, {0, 0, 0, 1})}, Smooth::no});
  cases.push_back(
      {"ReduceMin", "every", OF(reduce_min(x[0], {1})), {booleans({2, 2}, {1, 1, 0, 1})}, Smooth::no});
  cases.push_back({"ReduceMax",
                   "axes as an attribute",
                   with_attributes("ReduceMax", {{"axes", std::vector<std::int64_t>{2}}}),
                   {a}});
  cases.push_back({"ReduceProd",
                   "with a zero",
                   OF(reduce_prod(x[0], {0}, false)),
                   {f64({3, 2}, {2, 0, 3, 5, -1, 4})},
                   Smooth::twice});
  cases.push_back({"ArgMax", "an axis", OF(argmax(x[0], 1)), {a}, Smooth::no});
  cases.push_back({"ArgMax", "kept", OF(argmax(x[0], -1, true)), {a}, Smooth::no});
  cases.push_back({"ArgMin", "an axis", OF(argmin(x[0], 0)), {a}, Smooth::no});
  return cases;
}

}  // namespace superstep::op::test
