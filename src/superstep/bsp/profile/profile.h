// What a compiled program takes (memory, tile by tile, step by step) and what its runs took (cycles).
//
// Cycles are modelled: compute by the vertices' cost functions, exchange, sync and links by the formulas of
// docs/bsp.md. Nothing here is measured on hardware.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "superstep/bsp/compile/device.h"
#include "superstep/bsp/graph/program.h"

#pragma GCC visibility push(default)  // installed: what is declared here is exported

namespace superstep::bsp {

// Bytes of one tile, by what they hold.
struct TileMemory {
  std::uint64_t variables = 0;  // always live
  std::uint64_t constants = 0;
  std::uint64_t vertex_state = 0;
  std::uint64_t vertex_code = 0;
  std::uint64_t exchange_code = 0;
  std::uint64_t control_code = 0;
  std::uint64_t runtime = 0;          // run-time library and stacks
  std::uint64_t host_buffers = 0;     // messages to and from host and remote memory
  std::uint64_t not_always_live = 0;  // the largest over the program's steps, temporaries included
  std::uint64_t gaps = 0;             // alignment

  std::uint64_t always_live() const {
    return variables + constants + vertex_state + vertex_code + exchange_code + control_code + runtime +
           host_buffers;
  }
  std::uint64_t excluding_gaps() const { return always_live() + not_always_live; }
  std::uint64_t including_gaps() const { return excluding_gaps() + gaps; }
};

struct LivenessStep {
  std::string name;
  ProgramKind kind = ProgramKind::execute;
  std::uint64_t not_always_live_bytes = 0;                     // of all tiles
  std::uint64_t max_tile_bytes = 0;                            // of the fullest tile
  std::vector<std::pair<std::string, std::uint64_t>> largest;  // variables live at it, the ten largest
};

struct VertexKindProfile {
  std::string name;
  std::uint64_t instances = 0;
  std::uint64_t state_bytes = 0, code_bytes = 0;
  bool default_estimate = false;  // no cost function: cycles are the stand-in's
  bool counted = false;           // which goes by the instructions of its code
};

// Cycles of one step, the parts of a superstep one after the other.
struct StepCost {
  std::uint64_t sync = 0;
  std::uint64_t exchange = 0;         // inside the chips
  std::uint64_t global_exchange = 0;  // between chips
  std::uint64_t host_exchange = 0;    // streams and remote buffers
  std::uint64_t compute = 0;          // the slowest tile, on-tile copies included
  std::uint64_t control = 0;
  std::uint64_t total() const {
    return sync + exchange + global_exchange + host_exchange + compute + control;
  }
};

// One step of the compiled program: the same every time it runs.
struct StepProfile {
  std::string name;
  ProgramKind kind = ProgramKind::execute;
  StepCost cost;
  std::uint64_t vertices = 0;
  std::uint64_t compute_tiles = 0;        // tiles with something to compute
  std::uint64_t compute_cycles_all = 0;   // summed over tiles, threads that idle included
  std::uint64_t compute_cycles_busy = 0;  // the same, threads that idle left out
  std::uint64_t exchange_cycles_all = 0;  // summed over tiles: cycles that they send or receive
  std::uint64_t exchanged_bytes = 0;      // received by tiles from other tiles
  std::uint64_t link_bytes = 0, host_bytes = 0;
  std::uint64_t max_bytes_in = 0, max_bytes_out = 0;
  std::uint64_t max_fragments = 0;  // of the tile with most
  std::uint64_t flops = 0;
  std::map<std::string, std::uint64_t> cycles_by_vertex;  // worker cycles x workers (tile time), all tiles
  // Chips that take part, in order; empty: all of them. What leaves a chip (links, host) is a step of all.
  std::vector<std::uint32_t> chips;
  bool has_chip(std::uint32_t chip) const {
    return chips.empty() || std::find(chips.begin(), chips.end(), chip) != chips.end();
  }
};

// One step as it ran.
struct Event {
  std::uint32_t step = 0;
  std::uint64_t begin = 0;  // cycles from the start of the run
};

struct RunProfile {
  int program = 0;
  std::uint64_t cycles = 0;
  StepCost cost;                      // sums of all steps that ran
  std::vector<std::uint64_t> times;   // how often each step ran
  std::vector<std::uint64_t> active;  // cycles of the steps that each chip took part in
  std::vector<Event> events;          // the first ones, up to EngineOptions::trace_events
  bool truncated = false;             // there were more
  bool assumed = false;               // timing only: a data-dependent branch was assumed
};

struct CompilationProfile {
  Device device;  // of one replica
  std::uint32_t replicas = 1;
  std::uint64_t variables = 0, variable_bytes = 0, constants = 0;
  std::uint64_t compute_sets = 0, vertices = 0, edges = 0, programs = 0;
  std::vector<std::string> compute_set_names;
  std::vector<VertexKindProfile> vertex_kinds;
  std::vector<TileMemory> tiles;
  std::vector<StepProfile> steps;
  std::vector<LivenessStep> liveness;
  std::string too_full;        // what does not fit, with the largest tenants; empty: everything fits
  std::string planned;         // not empty: no program was compiled; says where the figures come from
  double compile_seconds = 0;  // measured
};

struct Profile {
  CompilationProfile compilation;
  std::uint64_t run_count = 0;
  RunProfile total;              // sums of all runs; no events
  std::vector<RunProfile> runs;  // the first ones, one by one

  std::uint64_t total_cycles() const { return total.cycles; }
};

struct SummaryOptions {
  bool show_execution_steps = false;
  bool show_variables = false;  // the largest at the step with most live memory
};

// Text: Target (the device), Graph, Memory Usage, Execution.
void print_profile_summary(std::ostream& out, const Profile& profile, const SummaryOptions& options = {});
std::string profile_to_json(const Profile& profile);  // schema "superstep-bsp-profile/1": docs/bsp.md
// One self-contained page; `what` was compiled, for its title: "braggnn, infer, f32, batch 16".
std::string profile_to_html(const Profile& profile, const std::string& what = {});
std::string profile_to_chrome_trace(const Profile& profile);  // for chrome://tracing and Perfetto

}  // namespace superstep::bsp

#pragma GCC visibility pop
