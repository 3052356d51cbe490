// Summaries of reports, as text.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <poplar/Engine.hpp>

namespace poplar {
namespace {

std::uint64_t number(const ProfileValue& value) {
  return value.type() == ProfileValue::Type::NUMBER ? value.asUint() : 0;
}

void memory_line(std::ostream& out, const char* name, const std::vector<std::uint64_t>& bytes) {
  if (bytes.empty()) return;
  const auto most = std::max_element(bytes.begin(), bytes.end());
  out << fmt::format("  {:<28}{:>16} B of all tiles, {} B of the fullest (tile {})\n", name,
                     std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0}), *most,
                     most - bytes.begin());
}

}  // namespace

void printGraphSummary(std::ostream& out, const ProfileValue& profile, const OptionFlags&) {
  const ProfileValue &target = profile["target"], &graph = profile["graph"], &memory = profile["memory"];
  out << "Target:\n"
      << fmt::format("  {:<28}{:>16}\n", "Number of IPUs:", number(target["numIPUs"]))
      << fmt::format("  {:<28}{:>16}\n", "Number of tiles:", number(target["numTiles"]))
      << fmt::format("  {:<28}{:>16} B\n", "Memory of a tile:", number(target["bytesPerTile"]));
  out << "Graph:\n"
      << fmt::format("  {:<28}{:>16}\n", "Number of vertices:", number(graph["numVertices"]))
      << fmt::format("  {:<28}{:>16}\n", "Number of edges:", number(graph["numEdges"]))
      << fmt::format("  {:<28}{:>16}\n", "Number of variables:", number(graph["numVars"]))
      << fmt::format("  {:<28}{:>16}\n", "Number of compute sets:", number(graph["numComputeSets"]));
  out << "Memory Usage:\n";
  memory_line(out, "Including gaps:", memory["byTile"]["totalIncludingGaps"].toUintVector());
  memory_line(out, "Excluding gaps:", memory["byTile"]["total"].toUintVector());
  memory_line(out, "Always live:", memory["liveness"]["alwaysLive"]["bytesByTile"].toUintVector());
}

void printExecutionSummary(std::ostream& out, const ProfileValue& graph, const ProfileValue& execution,
                           const OptionFlags& options) {
  const ProfileValue& simulation = execution["simulation"];
  out << "Execution:\n" << fmt::format("  {:<28}{:>16}\n", "Total cycles:", number(simulation["cycles"]));
  const ProfileValue& names = graph["vertexTypes"]["names"];
  if (names.size() > 0) out << "  Cycles by vertex type:\n";
  for (std::size_t i = 0; i < names.size(); ++i)
    out << fmt::format("    {} ({} instances): {}\n", names[i].asString(),
                       number(graph["vertexTypes"]["counts"][i]),
                       number(execution["cyclesByVertexType"][names[i].asString()]));
  const auto shown = options.find("showExecutionSteps");
  if (shown == options.end() || shown->second != "true") return;
  for (const ProfileValue& step : simulation["steps"].asVector())
    out << fmt::format("  {:>16} cycles  {} {}\n", number(step["cycles"]), step["type"].asString(),
                       step["name"].asString());
}

void printProfileSummary(std::ostream& out, const ProfileValue& graph, const ProfileValue& execution,
                         const OptionFlags& options) {
  printGraphSummary(out, graph, options);
  printExecutionSummary(out, graph, execution, options);
}

}  // namespace poplar
