#include "superstep/cli/shared/onnx_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "superstep/base/printable.h"
#include "superstep/base/text.h"

namespace superstep::cli {
namespace {

std::string opsets_text(const onnx::Model& model) {
  std::vector<std::string> parts;
  for (const auto& [domain, version] : model.opsets())
    parts.push_back(domain.empty() ? std::to_string(version) : fmt::format("{} {}", domain, version));
  return join(parts, ", ");
}

void print_ports(const char* kind, const std::vector<onnx::Port>& ports) {
  for (const onnx::Port& port : ports)
    fmt::print("  {:<7} {:<24} {}{}\n", kind, printable(port.name), printable(onnx::to_string(port)),
               port.doc.empty() ? "" : "  " + printable(port.doc));
}

}  // namespace

void print_model(const onnx::Model& model, bool metadata) {
  fmt::print("{}\n", model.path());
  fmt::print("  graph '{}', IR version {}, operator set {}, written by {}\n", printable(model.graph_name()),
             model.ir_version(), opsets_text(model),
             model.producer().empty() ? "?" : printable(model.producer()));
  if (!model.doc().empty()) fmt::print("  {}\n", printable(model.doc()));
  print_ports("input", model.inputs());
  print_ports("output", model.outputs());
  if (!metadata) return;
  for (const auto& [key, value] : model.metadata())
    fmt::print("  {}: {}\n", printable(key), printable(value));
}

void print_open_extents(const onnx::Model& model, const onnx::ImportOptions& options) {
  std::set<std::string> open;
  for (const onnx::Port& port : model.inputs()) {
    const auto given = options.shapes.find(port.name);
    for (std::size_t i = 0; i < port.extents.size(); ++i) {
      const onnx::Extent& extent = port.extents[i];
      const bool bound = given != options.shapes.end() && i < given->second.size() && given->second[i] >= 0;
      if (extent.value < 0 && !bound && !options.symbols.contains(extent.symbol))
        open.insert(onnx::to_string(extent));
    }
  }
  if (!open.empty()) fmt::print("  extents taken as {}: {}\n", options.default_extent, fmt::join(open, ", "));
}

void print_findings(const onnx::Findings& findings) {
  std::vector<std::string> operators;
  for (const onnx::OperatorCount& count : findings.operators)
    operators.push_back(fmt::format("{} {}", count.count, printable(count.op)));
  fmt::print("  operators: {}\n", join(operators, ", "));
  fmt::print("  parameters: {} ({})\n", format_count(static_cast<double>(findings.parameters)),
             format_bytes(static_cast<double>(findings.parameter_bytes)));
  if (findings.importable()) {
    fmt::print("  one run: {} nodes, {}, {} moved\n", findings.nodes, format_si(findings.flops, "FLOP"),
               format_bytes(findings.bytes));
    fmt::print("  can be imported\n");
    return;
  }
  fmt::print("  cannot be imported:\n");
  for (const std::string& line : onnx::told(findings.unsupported)) fmt::print("    {}\n", line);
}

}  // namespace superstep::cli
