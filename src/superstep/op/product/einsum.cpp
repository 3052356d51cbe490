#include "superstep/op/product/einsum.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "superstep/base/text.h"
#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/view.h"

namespace superstep::op {
namespace {

using Extents = std::vector<std::int64_t>;

std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

std::string ellipsis_labels(int count) {
  require(count <= 10, "\"...\" stands for more than ten axes");
  std::string labels;
  for (int i = count; i-- > 0;) labels += static_cast<char>('0' + i);
  return labels;
}

std::string expand_ellipsis(const std::string& labels, int count, const std::string& equation) {
  for (char c : labels)
    require(std::isalpha(static_cast<unsigned char>(c)) || c == '.',
            fmt::format("equation '{}' is not made of letters, commas, '...' and '->'", equation));
  const std::size_t dots = labels.find("...");
  std::string result = dots == std::string::npos
                           ? labels
                           : labels.substr(0, dots) + ellipsis_labels(count) + labels.substr(dots + 3);
  require(result.find('.') == std::string::npos, fmt::format("equation '{}' has stray dots", equation));
  return result;
}

// Labels that appear once, in order; those of "..." first.
std::string implied_result(const std::vector<std::string>& operands, int ellipsis) {
  std::map<char, int> counts;
  for (const std::string& labels : operands)
    for (char label : labels) ++counts[label];
  std::string result = ellipsis_labels(ellipsis);
  for (const auto& [label, count] : counts)
    if (count == 1 && std::isalpha(static_cast<unsigned char>(label))) result += label;
  return result;
}

}  // namespace

Equation parse_equation(const Attributes& attributes, const std::vector<Shape>& shapes) {
  const std::string text = without_spaces(attributes.text("equation"));
  const std::size_t arrow = text.find("->");
  const std::vector<std::string> terms = superstep::split(text.substr(0, arrow), ',');
  require(terms.size() == shapes.size(),
          fmt::format("equation '{}' has {} operands, the node has {}", text, terms.size(), shapes.size()));
  Equation equation;
  int most = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const bool dots = terms[i].find("...") != std::string::npos;
    const int letters = static_cast<int>(terms[i].size()) - (dots ? 3 : 0);
    const int hidden = dots ? shapes[i].rank() - letters : 0;
    require(hidden >= 0, fmt::format("term '{}' has more labels than input {} {} has axes", terms[i], i,
                                     to_string(shapes[i])));
    most = std::max(most, hidden);
    equation.operands.push_back(expand_ellipsis(terms[i], hidden, text));
    require(static_cast<int>(equation.operands.back().size()) == shapes[i].rank(),
            fmt::format("term '{}' does not label the {} axes of input {}", terms[i], shapes[i].rank(), i));
  }
  equation.result = arrow == std::string::npos ? implied_result(equation.operands, most)
                                               : expand_ellipsis(text.substr(arrow + 2), most, text);
  return equation;
}

namespace {

// The extent of every label; only those of "..." may be 1 in one operand and more in another.
std::map<char, std::int64_t> extents_of(const Equation& equation, const std::vector<Shape>& shapes) {
  std::map<char, std::int64_t> extents;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    for (int axis = 0; axis < shapes[i].rank(); ++axis) {
      const char label = equation.operands[i][static_cast<std::size_t>(axis)];
      const auto [known, is_new] = extents.emplace(label, shapes[i][axis]);
      const bool broadcasts =
          std::isdigit(static_cast<unsigned char>(label)) && (known->second == 1 || shapes[i][axis] == 1);
      require(is_new || broadcasts || known->second == shapes[i][axis],
              fmt::format("label '{}' has extents {} and {}", label, known->second, shapes[i][axis]));
      if (broadcasts && known->second == 1) known->second = shapes[i][axis];
    }
  for (char label : equation.result)
    require(extents.contains(label), fmt::format("label '{}' of the result is in no operand", label));
  std::string sorted = equation.result;
  std::ranges::sort(sorted);
  require(std::ranges::adjacent_find(sorted) == sorted.end(), "a label appears twice in the result");
  return extents;
}

Shape labelled_shape(const std::string& labels, const std::map<char, std::int64_t>& extents) {
  Extents result;
  for (char label : labels) result.push_back(extents.at(label));
  return Shape(result);
}

std::vector<ValueType> infer_einsum(const InferContext& context) {
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < context.inputs.size(); ++i) {
    const std::string name = fmt::format("Inputs[{}]", i);
    require_numeric(context, i, name);
    require_same_element(context, i, name, 0, "Inputs[0]");
    shapes.push_back(context.input(i).shape);
  }
  const Equation equation = parse_equation(context.attributes, shapes);
  const auto extents = extents_of(equation, shapes);
  return {{context.input(0).element, labelled_shape(equation.result, extents)}};
}

// Result labels, then the summed ones.
std::string loop_labels(const Equation& equation, const std::map<char, std::int64_t>& extents) {
  std::string labels = equation.result;
  for (const auto& [label, extent] : extents)
    if (equation.result.find(label) == std::string::npos) labels += label;
  return labels;
}

// Strides of an operand along each loop label: the sum over the axes with that label.
Extents loop_strides(const std::string& labels, const std::string& operand, const Shape& shape) {
  const Extents dense = shape.row_major_strides();
  Extents strides(labels.size(), 0);
  for (std::size_t axis = 0; axis < operand.size(); ++axis)
    if (shape[static_cast<int>(axis)] != 1) strides[labels.find(operand[axis])] += dense[axis];
  return strides;
}

// The loop of an equation: strides of each operand along the result's labels and along the summed ones.
struct EinsumLoop {
  Shape result, group;
  std::vector<Extents> outer, inner;
};

EinsumLoop einsum_loop(const Attributes& attributes, const std::vector<Shape>& shapes) {
  const Equation equation = parse_equation(attributes, shapes);
  const auto extents = extents_of(equation, shapes);
  const std::string labels = loop_labels(equation, extents);
  Extents result, group;
  for (std::size_t i = 0; i < labels.size(); ++i)
    (i < equation.result.size() ? result : group).push_back(extents.at(labels[i]));
  EinsumLoop loop{Shape(result), Shape(group), {}, {}};
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    const Extents strides = loop_strides(labels, equation.operands[k], shapes[k]);
    const auto cut = strides.begin() + static_cast<std::ptrdiff_t>(result.size());
    loop.outer.emplace_back(strides.begin(), cut);
    loop.inner.emplace_back(cut, strides.end());
  }
  return loop;
}

void evaluate_einsum(const EvaluateContext& context) {
  std::vector<Shape> shapes;
  for (const Tensor* input : context.inputs) shapes.push_back(input->shape());
  const EinsumLoop loop = einsum_loop(context.attributes, shapes);
  dispatch_wide(context.output(0).type(), [&]<class Wide>() {
    using W = std::conditional_t<std::is_same_v<Wide, double>, double, std::uint64_t>;
    std::vector<std::vector<W>> operands;
    std::vector<Extents> starts(shapes.size());
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      operands.push_back(widen<W>(*context.inputs[k]));
      for_each_strided(loop.result, loop.outer[k], 0,
                       [&](std::int64_t, std::int64_t start) { starts[k].push_back(start); });
    }
    std::vector<W> y(static_cast<std::size_t>(loop.result.element_count()));
    std::vector<W> product(static_cast<std::size_t>(loop.group.element_count()));
    for (std::size_t i = 0; i < y.size(); ++i) {
      std::ranges::fill(product, W{1});
      for (std::size_t k = 0; k < shapes.size(); ++k)
        for_each_strided(loop.group, loop.inner[k], starts[k][i], [&](std::int64_t j, std::int64_t offset) {
          product[static_cast<std::size_t>(j)] *= operands[k][static_cast<std::size_t>(offset)];
        });
      for (const W value : product) y[i] += value;
    }
    narrow(y, context.output(0));
  });
}

// Labels as letters again: digits become letters that the equation does not use.
std::string lettered(const std::string& labels, const std::string& used) {
  std::string result = labels;
  for (char& label : result) {
    if (std::isalpha(static_cast<unsigned char>(label))) continue;
    int skip = label - '0';
    for (char c = 'A'; c <= 'z'; ++c)
      if (std::isalpha(static_cast<unsigned char>(c)) && used.find(c) == std::string::npos && skip-- == 0) {
        label = c;
        break;
      }
  }
  return result;
}

Var einsum_of(const std::vector<std::string>& operands, const std::string& result,
              std::span<const Var> inputs, const std::string& used) {
  std::vector<std::string> terms;
  for (const std::string& operand : operands) terms.push_back(lettered(operand, used));
  return einsum(join(terms, ",") + "->" + lettered(result, used), inputs);
}

std::string distinct(const std::string& labels) {
  std::string result;
  for (char label : labels)
    if (result.find(label) == std::string::npos) result += label;
  return result;
}

// Puts a result with distinct labels back on the diagonal of the operand's axes.
Var on_diagonal(Var t, const std::string& labels, const std::string& operand) {
  Builder& builder = t.builder();
  Extents first(operand.size(), 1);
  for (std::size_t axis = 0; axis < operand.size(); ++axis)
    if (operand.find(operand[axis]) == axis)
      first[axis] = t.shape()[static_cast<int>(labels.find(operand[axis]))];
  Var result = reshape(t, Shape(first));  // distinct labels keep their order
  for (std::size_t axis = 0; axis < operand.size(); ++axis) {
    const std::size_t original = operand.find(operand[axis]);
    if (original == axis) continue;
    const std::int64_t n = first[original];
    Extents mask(operand.size(), 1);
    mask[original] = mask[axis] = n;
    const Var eye = builder.node1("EyeLike", {constant_of_shape(builder, t.element(), {n, n})});
    result = result * reshape(eye, Shape(mask));
  }
  return result;
}

// The cotangent of operand `k`: the other operands and the result's cotangent, summed to its labels.
Var operand_cotangent(const DerivativeContext& context, std::size_t k, Var t) {
  std::vector<Shape> shapes;
  for (Var input : context.inputs) shapes.push_back(input.shape());
  const Equation equation = parse_equation(context.attributes, shapes);
  const auto extents = extents_of(equation, shapes);
  std::string used;
  for (const auto& [label, extent] : extents) used += label;
  std::vector<std::string> terms = {equation.result};
  std::vector<Var> inputs = {t};
  for (std::size_t i = 0; i < shapes.size(); ++i)
    if (i != k) {
      terms.push_back(equation.operands[i]);
      inputs.push_back(expand_to(context.inputs[i], labelled_shape(equation.operands[i], extents)));
    }
  // A label that no other term has was summed alone: its cotangent is the same everywhere.
  const std::string wanted = distinct(equation.operands[k]);
  std::string present;
  for (char label : wanted)
    if (std::ranges::any_of(terms,
                            [&](const std::string& term) { return term.find(label) != std::string::npos; }))
      present += label;
  Var result = einsum_of(terms, present, inputs, used);
  Extents kept, full;
  std::size_t next = 0;
  for (char label : wanted) {
    const bool here = present.find(label) != std::string::npos;
    kept.push_back(here ? result.shape()[static_cast<int>(next++)] : 1);
    full.push_back(extents.at(label));
  }
  result = expand_to(reshape(result, Shape(kept)), Shape(full));
  if (wanted != equation.operands[k]) result = on_diagonal(result, wanted, equation.operands[k]);
  return sum_to(result, shapes[k]);
}

std::vector<Var> vjp_einsum(const DerivativeContext& context, std::span<const Var> cotangents,
                            const std::vector<bool>& wanted) {
  std::vector<Var> result(context.inputs.size());
  for (std::size_t k = 0; k < result.size(); ++k)
    if (wanted[k]) result[k] = operand_cotangent(context, k, cotangents[0]);
  return result;
}

std::vector<Var> jvp_einsum(const DerivativeContext& context, std::span<const Var> tangents) {
  Var total;
  for (std::size_t k = 0; k < tangents.size(); ++k) {
    if (!tangents[k].valid()) continue;
    std::vector<Var> inputs = context.inputs;
    inputs[k] = tangents[k];
    total = sum_valid(total, context.builder.node("Einsum", inputs, context.attributes).at(0));
  }
  return {total};
}

// One multiply-add an operand for every combination of labels.
double einsum_flops(const Attributes& attributes, std::span<const ValueType> inputs,
                    std::span<const ValueType>) {
  std::vector<Shape> shapes;
  for (const ValueType& input : inputs) shapes.push_back(input.shape);
  double flops = static_cast<double>(inputs.size());
  for (const auto& [label, extent] : extents_of(parse_equation(attributes, shapes), shapes))
    flops *= static_cast<double>(extent);
  return flops;
}

}  // namespace

Var einsum(const std::string& equation, std::span<const Var> operands) {
  if (operands.empty()) throw Error(ErrorCode::bad_graph, "takes one input or more", "Einsum");
  return operands[0].builder().node("Einsum", operands, {{"equation", equation}}).at(0);
}

std::span<const Definition> einsum_operators() {
  static const Definition definitions[] = {
      {.name = "Einsum",
       .since_opset = 12,
       .max_inputs = -1,
       .traits = {.elements = Elements::numeric, .work = WorkKind::product, .attributes = "equation"},
       .infer = infer_einsum,
       .flops = einsum_flops,
       .evaluate = evaluate_einsum,
       .vjp = vjp_einsum,
       .jvp = jvp_einsum,
       .decompose = decompose_einsum}};
  return definitions;
}

}  // namespace superstep::op
