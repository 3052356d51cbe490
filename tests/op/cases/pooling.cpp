#include "superstep/op/window/pooling.h"

#include "tests/op/cases/case.h"

namespace superstep::op::test {
namespace {

const PoolAttributes plain = {.kernel_shape = {2, 3}};
const PoolAttributes strided = {.kernel_shape = {3, 2}, .strides = {2, 2}, .pads = {1, 0, 1, 1}};
const PoolAttributes rounded_up = {.kernel_shape = {2, 2}, .strides = {2, 2}, .ceil_mode = true};
const PoolAttributes dilated = {.kernel_shape = {2, 2}, .strides = {1, 2}, .dilations = {2, 1}};
const PoolAttributes same = {.kernel_shape = {3, 3}, .strides = {2, 2}, .auto_pad = "SAME_UPPER"};
const PoolAttributes line = {.kernel_shape = {3}, .strides = {2}, .pads = {1, 1}};
const PoolAttributes volume = {.kernel_shape = {2, 2, 2}, .strides = {1, 2, 1}};

PoolAttributes counting_pads(PoolAttributes attributes) {
  attributes.count_include_pad = true;
  return attributes;
}

}  // namespace

std::vector<Case> pooling_cases() {
  const Tensor image = random_tensor({2, 3, 5, 6}, 51), signal = random_tensor({2, 2, 7}, 52);
  const Tensor block = random_tensor({1, 2, 3, 4, 3}, 53);
  std::vector<Case> cases;
  const auto add = [&](const char* name, const PoolAttributes& attributes, const Tensor& input) {
    cases.push_back({"MaxPool", name, OF(max_pool(x[0], attributes).values), {input}});
    cases.push_back({"AveragePool", name, OF(average_pool(x[0], attributes)), {input}});
    cases.push_back({"AveragePool",
                     std::string(name) + ", counting pads",
                     OF(average_pool(x[0], counting_pads(attributes))),
                     {input}});
    cases.push_back({"LpPool", name, OF(lp_pool(x[0], attributes)), {input}});
  };
  add("plain", plain, image);
  add("strides and pads", strided, image);
  add("rounded up", rounded_up, image);
  add("dilations", dilated, image);
  add("SAME_UPPER", same, image);
  add("one dimension", line, signal);
  add("three dimensions", volume, block);
  cases.push_back({"LpPool", "p = 3", OF(lp_pool(x[0], strided, 3)), {image}});
  cases.push_back({"MaxPool",
                   "both outputs",
                   OF(max_pool(x[0], strided).values, max_pool(x[0], strided).indices),
                   {image}});
  cases.push_back({"MaxPool",
                   "columns first",
                   [](Builder& b, std::span<const Var> x) {
                     return b.node("MaxPool", x,
                                   {{"kernel_shape", std::vector<std::int64_t>{2, 2}},
                                    {"storage_order", std::int64_t{1}}},
                                   2);
                   },
                   {image}});
  cases.push_back({"superstep.MaxPoolGradient",
                   "of a pooling",
                   OF(max_pool_gradient(x[1], max_pool(x[0], rounded_up).indices, {2, 3, 5, 6})),
                   {image, random_tensor({2, 3, 3, 3}, 54)},
                   Smooth::twice,
                   false});
  cases.push_back(
      {"superstep.AveragePoolGradient",
       "strides and pads",
       OF(average_pool_gradient(
           x[0], {2, 3, 5, 6},
           {{"kernel_shape", strided.kernel_shape}, {"strides", strided.strides}, {"pads", strided.pads}})),
       {random_tensor({2, 3, 3, 3}, 55)}});
  cases.push_back({"superstep.AveragePoolGradient",
                   "rounded up",
                   OF(average_pool_gradient(x[0], {2, 3, 5, 6},
                                            {{"kernel_shape", rounded_up.kernel_shape},
                                             {"strides", rounded_up.strides},
                                             {"ceil_mode", std::int64_t{1}}})),
                   {random_tensor({2, 3, 3, 3}, 56)}});
  cases.push_back(
      {"superstep.AveragePoolGradient",
       "three dimensions",
       OF(average_pool_gradient(x[0], {1, 2, 3, 4, 3},
                                {{"kernel_shape", volume.kernel_shape}, {"strides", volume.strides}})),
       {random_tensor({1, 2, 2, 2, 2}, 57)}});
  cases.push_back({"GlobalAveragePool", "image", OF(global_average_pool(x[0])), {image}});
  cases.push_back({"GlobalAveragePool", "signal", OF(global_average_pool(x[0])), {signal}});
  cases.push_back({"GlobalMaxPool", "image", OF(global_max_pool(x[0])), {image}});
  return cases;
}

}  // namespace superstep::op::test
