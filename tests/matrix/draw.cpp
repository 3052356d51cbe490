#include "tests/matrix/draw.h"

#include <iterator>

namespace superstep::matrix {

Case node_case(const char* op, std::vector<Tensor> inputs, op::Attributes attributes, int outputs,
               Smooth smooth) {
  std::vector<bool> given;
  std::vector<Tensor> present;
  std::string name;
  for (const Tensor& input : inputs) {
    given.push_back(!(input.type() == ElementType::f64 && input.shape() == Shape{0}));
    if (given.back()) present.push_back(input);
    name += (name.empty() ? "" : " ") + (given.back() ? to_string(input.shape()) : std::string("-"));
  }
  const op::Function function = [=](op::Builder& builder, std::span<const op::Var> x) {
    std::vector<op::Var> all;
    std::size_t next = 0;
    for (const bool here : given) all.push_back(here ? x[next++] : op::Var());
    return builder.node(op, all, attributes, outputs);
  };
  return {op, name, function, std::move(present), smooth};
}

const Generator* generator_of(std::string_view op) {
  static const std::vector<Generator> all = [] {
    std::vector<Generator> list;
    for (auto family : {elementwise_generators, product_generators, window_generators, line_generators,
                        index_generators, sequence_generators, other_generators})
      std::ranges::move(family(), std::back_inserter(list));
    return list;
  }();
  for (const Generator& generator : all)
    if (std::ranges::find(generator.operators, op) != generator.operators.end()) return &generator;
  return nullptr;
}

}  // namespace superstep::matrix
