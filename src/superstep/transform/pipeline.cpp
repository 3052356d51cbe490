#include "superstep/transform/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/graph/text.h"
#include "superstep/graph/verify.h"
#include "superstep/op/core/definition.h"
#include "superstep/transform/passes.h"

// In the order in which they run: one line each, the function that a pass's own file defines, its summary,
// and where it has them `.required` and `.rounding` (transform/pass.h). The function's declaration and its
// place in the list are both made of this line. Merging comes after rules, which leave fewer different nodes;
// rules and folding come again for what became visible by merging; dead nodes are dropped last, since all
// leave some.
// clang-format off
#define SUPERSTEP_STANDARD_PASSES(pass)                                      \
  pass(fold_constants, "computes what depends on constants alone")           \
  pass(simplify, "x + 0, double transposes and other local rules")           \
  pass(eliminate_common, "the same node twice becomes one")                  \
  pass(simplify, "x + 0, double transposes and other local rules")           \
  pass(fold_constants, "computes what depends on constants alone")           \
  pass(eliminate_dead, "drops what nothing needs")
// clang-format on

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

#define SUPERSTEP_DECLARED(function, ...) bool function(graph::Graph&);
SUPERSTEP_STANDARD_PASSES(SUPERSTEP_DECLARED)
#undef SUPERSTEP_DECLARED

std::span<const Pass> standard_passes() {
#define SUPERSTEP_LISTED(function, ...) Pass{.name = #function, .run = function, .summary = __VA_ARGS__},
  static const Pass passes[] = {SUPERSTEP_STANDARD_PASSES(SUPERSTEP_LISTED)};
#undef SUPERSTEP_LISTED
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

#undef SUPERSTEP_STANDARD_PASSES
