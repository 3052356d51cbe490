#include "superstep/poplar/profile/profile_tree.h"

#include <sstream>

#include "superstep/bsp/profile/profile_sums.h"

namespace poplar::core {
namespace {

namespace bsp = superstep::bsp;
using Map = ProfileValue::Map;
using Vector = ProfileValue::Vector;

template <class List, class F>
Vector each(const List& list, F&& f) {
  Vector values;
  for (const auto& item : list) values.emplace_back(f(item));
  return values;
}

// A category of memory by tile. The model has no places in memory: nothing overlaps, and all counts as not
// interleaved.
ProfileValue category(const std::vector<bsp::TileMemory>& tiles, std::uint64_t bsp::TileMemory::*bytes) {
  const Map none{{"nonOverlapped", Vector{}}, {"overlapped", Vector{}}};
  return Map{
      {"nonInterleaved",
       Map{{"nonOverlapped", each(tiles, [bytes](const bsp::TileMemory& tile) { return tile.*bytes; })},
           {"overlapped", Vector{}}}},
      {"interleaved", none},
      {"overflowed", none}};
}

ProfileValue memory_of(const bsp::CompilationProfile& compilation) {
  const std::vector<bsp::TileMemory>& tiles = compilation.tiles;
  const auto sum = [&](auto&& bytes) { return each(tiles, bytes); };
  return Map{{"byTile",
              Map{{"total", sum([](const bsp::TileMemory& t) { return t.excluding_gaps(); })},
                  {"totalIncludingGaps", sum([](const bsp::TileMemory& t) { return t.including_gaps(); })}}},
             {"liveness",
              Map{{"alwaysLive",
                   Map{{"bytesByTile", sum([](const bsp::TileMemory& t) { return t.always_live(); })}}},
                  {"notAlwaysLive", Map{{"maxBytesByTile",
                                         sum([](const bsp::TileMemory& t) { return t.not_always_live; })}}}}},
             {"byCategory", Map{{"variable", category(tiles, &bsp::TileMemory::variables)},
                                {"constant", category(tiles, &bsp::TileMemory::constants)},
                                {"vertexInstanceState", category(tiles, &bsp::TileMemory::vertex_state)},
                                {"vertexCode", category(tiles, &bsp::TileMemory::vertex_code)},
                                {"internalExchangeCode", category(tiles, &bsp::TileMemory::exchange_code)},
                                {"controlCode", category(tiles, &bsp::TileMemory::control_code)},
                                {"stack", category(tiles, &bsp::TileMemory::runtime)},
                                {"message", category(tiles, &bsp::TileMemory::host_buffers)}}}};
}

ProfileValue target_of(const bsp::CompilationProfile& compilation) {
  const bsp::Device& device = compilation.device;
  return Map{{"architecture", device.name},         {"numIPUs", device.ipus * compilation.replicas},
             {"tilesPerIpu", device.tiles_per_ipu}, {"numTiles", device.num_tiles() * compilation.replicas},
             {"numReplicas", compilation.replicas}, {"bytesPerTile", device.bytes_per_tile},
             {"clockFrequency", device.clock_hz},   {"numWorkerContexts", device.workers}};
}

const char* step_type(bsp::ProgramKind kind) {
  switch (kind) {
    case bsp::ProgramKind::execute: return "OnTileExecute";
    case bsp::ProgramKind::copy: return "DoExchange";
    case bsp::ProgramKind::cross_replica_copy: return "GlobalExchange";
    case bsp::ProgramKind::stream_in:
    case bsp::ProgramKind::stream_out:
    case bsp::ProgramKind::print_tensor: return "StreamCopy";
    case bsp::ProgramKind::remote_read:
    case bsp::ProgramKind::remote_write: return "RemoteCopy";
    case bsp::ProgramKind::sync: return "Sync";
    default: return "Control";
  }
}

ProfileValue step_of(const bsp::StepProfile& step, std::uint64_t begin) {
  return Map{{"type", step_type(step.kind)},
             {"name", step.name},
             {"cycles", step.cost.total()},
             {"cyclesFrom", begin},
             {"cyclesTo", begin + step.cost.total()},
             {"computeCycles", step.cost.compute},
             {"exchangeCycles", step.cost.exchange + step.cost.global_exchange + step.cost.host_exchange},
             {"syncCycles", step.cost.sync},
             {"flops", step.flops}};
}

}  // namespace

ProfileValue graph_profile(const bsp::CompilationProfile& compilation) {
  const auto& kinds = compilation.vertex_kinds;
  return Map{
      {"graph", Map{{"numVars", compilation.variables},
                    {"numConstants", compilation.constants},
                    {"numVertices", compilation.vertices},
                    {"numEdges", compilation.edges},
                    {"numComputeSets", compilation.compute_sets}}},
      {"target", target_of(compilation)},
      {"vertexTypes",
       Map{{"names", each(kinds, [](const bsp::VertexKindProfile& kind) { return kind.name; })},
           {"counts", each(kinds, [](const bsp::VertexKindProfile& kind) { return kind.instances; })},
           {"stateBytes", each(kinds, [](const bsp::VertexKindProfile& kind) { return kind.state_bytes; })}}},
      {"memory", memory_of(compilation)}};
}

ProfileValue execution_profile(const bsp::Profile& profile) {
  Vector steps;
  std::uint64_t before = 0;
  for (const bsp::RunProfile& run : profile.runs) {
    for (const bsp::Event& event : run.events)
      steps.push_back(step_of(profile.compilation.steps[event.step], before + event.begin));
    before += run.cycles;
  }
  const bsp::ExecutionSums sums = bsp::sum_execution(profile);
  Map vertices;
  for (const auto& [name, vertex] : sums.vertices) vertices.emplace(name, vertex.cycles);
  return Map{{"profilerMode", "IPU_MODEL"},
             {"runs", profile.run_count},
             {"simulation", Map{{"cycles", profile.total.cycles}, {"steps", std::move(steps)}}},
             {"cyclesByVertexType", std::move(vertices)}};
}

std::string report_text(const bsp::Profile& profile, bool with_execution) {
  std::ostringstream out;
  serializeToJSON(out,
                  Map{{"format", "superstep-poplar-report"},
                      {"version", 1},
                      {"poplarVersion", SUPERSTEP_VERSION},
                      {"graphProfile", graph_profile(profile.compilation)},
                      {"executionProfile", with_execution ? execution_profile(profile) : ProfileValue()}},
                  true);
  return out.str() + "\n";
}

}  // namespace poplar::core
