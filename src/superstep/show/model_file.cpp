#include "superstep/show/model_file.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "superstep/base/text.h"
#include "superstep/onnx/model.h"
#include "superstep/show/network_drawing.h"
#include "superstep/show/tensor_arrays.h"

namespace superstep::show {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t most_nodes = 400;  // on the page

void add_ports(page::Page& page, const onnx::Model& model) {
  Rows rows;
  for (const onnx::Port& port : model.inputs())
    rows.push_back({"input", port.name, onnx::to_string(port), port.doc});
  for (const onnx::Port& port : model.outputs())
    rows.push_back({"output", port.name, onnx::to_string(port), port.doc});
  page.heading("Inputs and outputs").table({"", "name", "type", "meaning"}, rows);
}

void add_operators(page::Page& page, const onnx::Findings& findings) {
  Rows rows;
  for (const onnx::OperatorCount& count : findings.operators)
    rows.push_back({count.op, format_count(static_cast<double>(count.count))});
  page.heading("Operators").table({"operator", "nodes"}, rows);
  if (findings.importable()) return;
  Rows reasons;
  for (const onnx::Finding& finding : findings.unsupported) reasons.push_back({onnx::to_string(finding)});
  page.heading("What keeps it from being imported").table({"finding"}, reasons);
}

std::string results_of(const graph::Graph& graph, const graph::Node& node) {
  std::vector<std::string> results;
  for (const graph::ValueId id : node.outputs)
    if (id.valid()) results.push_back(fmt::format("{} {}", graph.value(id).name, to_string(graph.type(id))));
  return join(results, ", ");
}

std::string operands_of(const graph::Graph& graph, const graph::Node& node) {
  std::vector<std::string> operands;
  for (const graph::ValueId id : node.inputs)
    if (id.valid()) operands.push_back(graph.value(id).name);
  return join(operands, ", ");
}

void add_drawing(page::Page& page, const graph::Graph& graph) {
  const std::vector<page::NetworkNode> boxes = network_of(graph);
  page.heading("The network");
  if (boxes.size() < graph.node_count())
    page.paragraph(fmt::format("{} nodes in {} boxes, cut where the fewest values pass from one to the next.",
                               format_count(static_cast<double>(graph.node_count())), boxes.size()));
  page.raw(page::network_figure(boxes));
}

void add_nodes(page::Page& page, const graph::Graph& graph) {
  Rows rows;
  for (const graph::Node& node : graph.nodes()) {
    if (rows.size() == most_nodes) break;
    rows.push_back(
        {std::to_string(rows.size() + 1), node.op, operands_of(graph, node), results_of(graph, node)});
  }
  page.heading("Nodes, in the order in which they run").table({"", "operator", "from", "result"}, rows);
  if (graph.node_count() > most_nodes)
    page.paragraph(fmt::format("The first {} of {}.", most_nodes,
                               format_count(static_cast<double>(graph.node_count()))));
}

}  // namespace

bool is_shown_as_model(const std::filesystem::path& path) { return onnx::is_model_file(path.string()); }

std::unique_ptr<ArrayFile> open_model_parameters(const std::filesystem::path& path) {
  const onnx::Model model = onnx::Model::open(path);
  std::map<std::string, Tensor> parameters;
  if (const onnx::ImportOptions options{.parameters_as_state = true}; model.check(options).importable()) {
    const graph::Graph graph = model.import(options);
    for (const graph::ValueId id : graph.states())
      parameters.emplace(graph.value(id).name, graph.value(id).data);
  }
  return std::make_unique<TensorArrays>(std::move(parameters), model.metadata());
}

void add_model(page::Page& page, const std::filesystem::path& path) {
  const onnx::Model model = onnx::Model::open(path);
  const onnx::Findings findings = model.check();
  page.paragraph(fmt::format(
      "{}: graph '{}', written by {}. {} parameters{}.",
      path.extension() == ".onnx" ? "An ONNX model" : "An archive of torch.export, as ONNX",
      model.graph_name(), model.producer().empty() ? "an unnamed program" : model.producer(),
      format_count(static_cast<double>(findings.parameters)),
      findings.importable() ? fmt::format(", {} a run", format_si(findings.flops, "FLOP")) : std::string()));
  if (!model.doc().empty()) page.paragraph(model.doc());
  add_ports(page, model);
  add_operators(page, findings);
  if (!findings.importable()) return;
  const graph::Graph graph = model.import();
  add_drawing(page, graph);
  add_nodes(page, graph);
}

}  // namespace superstep::show
