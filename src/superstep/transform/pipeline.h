// Runs passes one after the other, watching each.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "superstep/transform/pass.h"

namespace superstep::transform {

// The passes every graph goes through before a target compiles it, in order. They keep the meaning of the
// graph, its inputs, states, outputs and updates, and which values pass from backward to update
// (transform/border.h).
std::span<const Pass> standard_passes();

struct PassRecord {
  std::string pass;
  std::size_t position = 0;  // in the list that was given
  bool changed = false;
  double seconds = 0;  // of the pass, without verifying and dumping
  std::size_t nodes_before = 0, nodes_after = 0;
};

struct PipelineOptions {
  std::vector<std::string> disabled;  // passes to leave out, by name
  // Where to write the graph before the first pass and after each that changed it, as
  // NUMBER-PASS.graph (textual form without large tensors); empty: nowhere.
  std::filesystem::path dump_folder;
  // Told after every pass that ran, changed or not, when the graph has been verified.
  std::function<void(const graph::Graph& graph, const PassRecord& record)> after = nullptr;
};

struct PipelineReport {
  std::vector<PassRecord> records;  // of the passes that ran, in order
  std::string to_string() const;    // a table for people
};

// The passes with none of these names. Throws Error (invalid_argument) on a required one, with the reason;
// names of no pass of this list are left to the caller.
std::vector<Pass> without(std::vector<Pass> passes, std::span<const std::string> names);

// Throws Error (invalid_argument) when one of the names is of no pass in the list, with the nearest, or of
// one that is required, with the reason.
void check_left_out(std::span<const Pass> passes, std::span<const std::string> names);

// Runs `passes` on the graph, in order. After every pass that changed something the graph is verified:
// Error "failed after PASS" otherwise. Throws Error (invalid_argument) when `disabled` names a pass that is
// not in the list, with the nearest name, or one that is required, with the reason; Error (io) when a dump
// cannot be written.
PipelineReport run_pipeline(graph::Graph& graph, std::span<const Pass> passes,
                            const PipelineOptions& options = {});

// The same for callers that want the graph.
graph::Graph run_passes(graph::Graph graph, std::span<const Pass> passes,
                        const PipelineOptions& options = {});

}  // namespace superstep::transform
