#include "superstep/transform/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/graph/text.h"
#include "superstep/graph/verify.h"
#include "superstep/op/definition.h"
#include "superstep/transform/passes.h"

namespace superstep::transform {
namespace {

constexpr Pass standard[] = {
    {"fold_constants", fold_constants},      //
    {"simplify", simplify},                  // x + 0, double transposes: leaves fewer different nodes
    {"eliminate_common", eliminate_common},  // the same node twice
    {"simplify", simplify},                  // what became visible by merging
    {"fold_constants", fold_constants},      //
    {"eliminate_dead", eliminate_dead},      // last: earlier passes leave dead nodes behind
};

void check_disabled(std::span<const Pass> passes, const std::vector<std::string>& disabled) {
  std::vector<std::string> names;
  for (const Pass& pass : passes)
    if (std::ranges::find(names, pass.name) == names.end()) names.emplace_back(pass.name);
  for (const std::string& name : disabled)
    if (std::ranges::find(names, name) == names.end())
      throw Error(ErrorCode::invalid_argument, "there is no such pass to switch off", name,
                  unknown_name_hint(name, names));
}

void dump(const graph::Graph& graph, const std::filesystem::path& folder, std::size_t number,
          std::string_view name) {
  if (folder.empty()) return;
  make_folder(folder);
  write_file_atomically(folder / fmt::format("{:02}-{}.graph", number, name),
                        graph::to_text(graph, {.data = false}));
}

PassRecord run_pass(graph::Graph& graph, const Pass& pass) {
  PassRecord record{.pass = std::string(pass.name), .nodes_before = graph.node_count()};
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

std::span<const Pass> standard_passes() { return standard; }

PipelineReport run_pipeline(graph::Graph& graph, std::span<const Pass> passes,
                            const PipelineOptions& options) {
  check_disabled(passes, options.disabled);
  PipelineReport report;
  dump(graph, options.dump_folder, 0, "input");
  for (std::size_t i = 0; i < passes.size(); ++i) {
    if (std::ranges::find(options.disabled, passes[i].name) != options.disabled.end()) continue;
    report.records.push_back(run_pass(graph, passes[i]));
    if (!report.records.back().changed) continue;
    verify_after(graph, passes[i].name);
    dump(graph, options.dump_folder, i + 1, passes[i].name);
  }
  return report;
}

std::string PipelineReport::to_string() const {
  TextTable table({"pass", "changed", "time", "nodes before", "nodes after"});
  for (const PassRecord& record : records)
    table.add_row({record.pass, record.changed ? "yes" : "no", format_seconds(record.seconds),
                   fmt::format("{}", record.nodes_before), fmt::format("{}", record.nodes_after)});
  return table.to_string();
}

}  // namespace superstep::transform
