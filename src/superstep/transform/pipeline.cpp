#include "superstep/transform/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/graph/text.h"
#include "superstep/graph/verify.h"
#include "superstep/op/core/definition.h"
#include "superstep/transform/passes.h"

namespace superstep::transform {
namespace {

bool is_named(const Pass& pass, std::span<const std::string> names) {
  return std::ranges::find(names, pass.name) != names.end();
}

void require_optional(std::span<const Pass> passes, std::span<const std::string> names) {
  for (const Pass& pass : passes)
    if (!pass.required.empty() && is_named(pass, names))
      throw Error(ErrorCode::invalid_argument, fmt::format("this pass cannot be left out: {}", pass.required),
                  std::string(pass.name));
}

void dump(const graph::Graph& graph, const std::filesystem::path& folder, std::size_t number,
          std::string_view name) {
  if (folder.empty()) return;
  make_folder(folder);
  write_file_atomically(folder / fmt::format("{:02}-{}.graph", number, name),
                        graph::to_text(graph, {.data = false}));
}

PassRecord run_pass(graph::Graph& graph, const Pass& pass, std::size_t position) {
  PassRecord record{.pass = std::string(pass.name), .position = position, .nodes_before = graph.node_count()};
  const auto begun = std::chrono::steady_clock::now();
  record.changed = pass.run(graph);
  record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  record.nodes_after = graph.node_count();
  return record;
}

void verify_after(const graph::Graph& graph, std::string_view pass) {
  if (const Status status = graph::verify(graph, op::infer_types); !status)
    throw status.error().in(fmt::format("failed after {}", pass));
}

}  // namespace

std::span<const Pass> standard_passes() {
  static const Pass fold{"fold_constants", fold_constants, "computes what depends on constants alone"};
  static const Pass rules{"simplify", simplify, "x + 0, double transposes and other local rules"};
  static const std::array passes{
      fold,
      rules,  // leaves fewer different nodes
      Pass{"eliminate_common", eliminate_common, "the same node twice becomes one"},
      rules,  // what became visible by merging
      fold,
      // Last: earlier passes leave dead nodes behind.
      Pass{"eliminate_dead", eliminate_dead, "drops what nothing needs"},
  };
  return passes;
}

void check_left_out(std::span<const Pass> passes, std::span<const std::string> names) {
  std::vector<std::string> known;
  for (const Pass& pass : passes)
    if (std::ranges::find(known, pass.name) == known.end()) known.emplace_back(pass.name);
  for (const std::string& name : names)
    if (std::ranges::find(known, name) == known.end())
      throw Error(ErrorCode::invalid_argument, "there is no such pass to leave out", name,
                  unknown_name_hint(name, known));
  require_optional(passes, names);
}

std::vector<Pass> without(std::vector<Pass> passes, std::span<const std::string> names) {
  require_optional(passes, names);
  std::erase_if(passes, [&](const Pass& pass) { return is_named(pass, names); });
  return passes;
}

PipelineReport run_pipeline(graph::Graph& graph, std::span<const Pass> passes,
                            const PipelineOptions& options) {
  check_left_out(passes, options.disabled);
  PipelineReport report;
  dump(graph, options.dump_folder, 0, "input");
  for (std::size_t i = 0; i < passes.size(); ++i) {
    if (is_named(passes[i], options.disabled)) continue;
    report.records.push_back(run_pass(graph, passes[i], i));
    const PassRecord& record = report.records.back();
    if (record.changed) {
      verify_after(graph, passes[i].name);
      dump(graph, options.dump_folder, i + 1, passes[i].name);
    }
    if (options.after) options.after(graph, record);
  }
  return report;
}

graph::Graph run_passes(graph::Graph graph, std::span<const Pass> passes, const PipelineOptions& options) {
  run_pipeline(graph, passes, options);
  return graph;
}

std::string PipelineReport::to_string() const {
  TextTable table({"pass", "changed", "time", "nodes before", "nodes after"});
  for (const PassRecord& record : records)
    table.add_row({record.pass, record.changed ? "yes" : "no", format_seconds(record.seconds),
                   fmt::format("{}", record.nodes_before), fmt::format("{}", record.nodes_after)});
  return table.to_string();
}

}  // namespace superstep::transform
