// Graphs out of text, passes run on them, and results compared.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <string>
#include <vector>

#include "superstep/base/random.h"
#include "superstep/graph/text.h"
#include "superstep/graph/verify.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/core/evaluate.h"
#include "tests/contains.h"

namespace superstep::transform {

inline graph::Graph verified(graph::Graph graph) {
  value_or_throw(graph::verify(graph, op::infer_types));
  return graph;
}

// The graph with these statements.
inline graph::Graph graph_of(const std::string& body) {
  return verified(value_or_throw(graph::parse("graph \"g\" {\n" + body + "\n}")));
}

// graph_of, where "f32[2,3] = splat(0.1)" stands for six times 0.1.
inline graph::Graph splat_graph(std::string body) {
  static const std::regex pattern(R"((f\d+)\[([\d,]+)\] = splat\(([\d.]+)\))");
  std::smatch match;
  while (std::regex_search(body, match, pattern)) {
    std::int64_t count = 1;
    const std::string extents = match[2], value = match[3];
    for (std::size_t at = 0; at < extents.size(); at = extents.find(',', at) + 1) {
      count *= std::stol(extents.substr(at));
      if (extents.find(',', at) == std::string::npos) break;
    }
    std::string elements = value;
    for (std::int64_t i = 1; i < count; ++i) elements += ", " + value;
    body = match.prefix().str() + match[1].str() + "[" + extents + "] = [" + elements + "]" +
           match.suffix().str();
  }
  return graph_of(body);
}

// The statements of a graph, a line each, without indentation.
inline std::string body_of(const graph::Graph& graph) {
  std::string text = graph::to_text(graph), body;
  text = text.substr(text.find('\n') + 1);
  for (std::size_t at = 0; at + 2 < text.size();) {
    const std::size_t end = text.find('\n', at);
    body += text.substr(at + 2, end - at - 1);
    at = end + 1;
  }
  return body;
}

inline std::vector<std::string> operators_of(const graph::Graph& graph) {
  std::vector<std::string> result;
  for (const graph::Node& node : graph.nodes()) result.push_back(node.op);
  return result;
}

inline long count_of(const graph::Graph& graph, std::string_view op) {
  return std::ranges::count(graph.nodes(), op, &graph::Node::op);
}

// Numbers in [-1, 1); small integers for integer types.
inline Tensor random_tensor(ElementType type, const Shape& shape, std::uint64_t seed) {
  Tensor tensor(type, shape);
  RandomStream random(seed);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, is_floating(type) ? random.uniform(-1, 1) : static_cast<double>(random.below(2)));
  return tensor;
}

// Random parameters in place of those of the text.
inline graph::Graph with_random_states(graph::Graph graph, std::uint64_t seed) {
  for (graph::ValueId id : graph.states())
    graph.set_data(id, random_tensor(ElementType::f32, graph.type(id).shape, seed++));
  return graph;
}

inline std::vector<Tensor> random_inputs(const graph::Graph& graph, std::uint64_t seed = 1) {
  std::vector<Tensor> inputs;
  for (graph::ValueId id : graph.inputs())
    inputs.push_back(random_tensor(graph.type(id).element, graph.type(id).shape, seed + id.index()));
  return inputs;
}

inline void expect_close(const Tensor& a, const Tensor& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.type(), b.type()) << what;
  ASSERT_EQ(a.shape(), b.shape()) << what;
  for (std::int64_t i = 0; i < a.element_count(); ++i) {
    if (a.at(i) == b.at(i) || (std::isnan(a.at(i)) && std::isnan(b.at(i)))) continue;
    ASSERT_NEAR(a.at(i), b.at(i), tolerance * std::max(1.0, std::abs(a.at(i)))) << what << " element " << i;
  }
}

// Both graphs give the same outputs and states on the same random inputs.
inline void expect_same_results(const graph::Graph& a, const graph::Graph& b, double tolerance = 0) {
  const std::vector<Tensor> inputs = random_inputs(a);
  const op::Evaluation left = op::evaluate(a, inputs), right = op::evaluate(b, inputs);
  ASSERT_EQ(left.outputs.size(), right.outputs.size());
  for (std::size_t i = 0; i < left.outputs.size(); ++i)
    expect_close(left.outputs[i], right.outputs[i], tolerance, a.outputs()[i].name);
  ASSERT_EQ(left.states.size(), right.states.size());
  for (const auto& [name, tensor] : left.states) expect_close(tensor, right.states.at(name), tolerance, name);
}

// Runs a pass: what it says must be true, its graph must verify and compute the same.
inline graph::Graph after(bool (*pass)(graph::Graph&), const graph::Graph& before) {
  graph::Graph graph = before;
  const bool changed = pass(graph);
  EXPECT_EQ(changed, graph::to_text(graph) != graph::to_text(before)) << graph::to_text(graph);
  verified(graph);
  expect_same_results(before, graph);
  return graph;
}

inline graph::Graph after(bool (*pass)(graph::Graph&), const std::string& body) {
  return after(pass, graph_of(body));
}

}  // namespace superstep::transform
