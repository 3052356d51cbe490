// Runs passes one after the other, watching each.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "superstep/transform/pass.h"

namespace superstep::transform {

// The passes every graph goes through before a target compiles it, in order. They keep the meaning of the
// graph, its inputs, states, outputs and updates, and which values pass from backward to update
// (transform/border.h).
std::span<const Pass> standard_passes();

struct PipelineOptions {
  std::vector<std::string> disabled;  // passes to leave out, by name
  // Where to write the graph before the first pass and after each that changed it, as
  // NUMBER-PASS.graph (textual form without large tensors); empty: nowhere.
  std::filesystem::path dump_folder;
};

struct PassRecord {
  std::string pass;
  bool changed = false;
  double seconds = 0;  // of the pass, without verifying and dumping
  std::size_t nodes_before = 0, nodes_after = 0;
};

struct PipelineReport {
  std::vector<PassRecord> records;  // of the passes that ran, in order
  std::string to_string() const;    // a table for people
};

// Runs `passes` on the graph, in order. After every pass that changed something the graph is verified:
// Error "failed after PASS" otherwise. Throws Error (invalid_argument) when `disabled` names a pass that is
// not in the list, with the nearest name; Error (io) when a dump cannot be written.
PipelineReport run_pipeline(graph::Graph& graph, std::span<const Pass> passes,
                            const PipelineOptions& options = {});

}  // namespace superstep::transform
