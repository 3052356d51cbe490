// The profile as JSON: the names that tools of this programming model read, and our own beside them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/bsp/profile/profile_sums.h"

namespace superstep::bsp {
namespace {

using Json = nlohmann::ordered_json;

Json device_json(const CompilationProfile& compilation) {
  const Device& device = compilation.device;
  return {{"architecture", device.name},
          {"numIPUs", device.ipus * compilation.replicas},
          {"tilesPerIpu", device.tiles_per_ipu},
          {"numTiles", device.num_tiles() * compilation.replicas},
          {"numReplicas", compilation.replicas},
          {"bytesPerTile", device.bytes_per_tile},
          {"totalMemory", device.bytes_per_tile * device.num_tiles() * compilation.replicas},
          {"clockFrequency", device.clock_hz},
          {"numWorkerContexts", device.workers}};
}

Json constants_json(const Device& device) {
  Json list = Json::array();
  for (const OpenConstantInfo& info : open_constants()) {
    const OpenConstant& constant = device.constants.*info.member;
    list.push_back({{"name", info.name},
                    {"unit", info.unit},
                    {"kind", info.kind},
                    {"source", info.source},
                    {"value", constant.value},
                    {"low", constant.low},
                    {"high", constant.high}});
  }
  return list;
}

Json tiles_json(const CompilationProfile& compilation) {
  Json list = Json::array();
  for (const TileMemory& tile : compilation.tiles) {
    Json categories;
    for (const MemoryCategory& category : memory_categories)
      if (tile.*category.bytes > 0) categories[category.key] = tile.*category.bytes;
    list.push_back(
        {{"memory",
          {{"alwaysLiveBytes", tile.always_live()},
           {"notAlwaysLiveBytes", tile.not_always_live},
           {"total", {{"excludingGaps", tile.excluding_gaps()}, {"includingGaps", tile.including_gaps()}}},
           {"category", categories}}}});
  }
  return list;
}

Json liveness_json(const CompilationProfile& compilation) {
  Json list = Json::array();
  for (const LivenessStep& step : compilation.liveness) {
    Json variables = Json::array();
    for (const auto& [name, bytes] : step.largest) variables.push_back({{"name", name}, {"bytes", bytes}});
    list.push_back({{"name", step.name},
                    {"kind", name_of(step.kind)},
                    {"notAlwaysLiveMemory",
                     {{"bytes", step.not_always_live_bytes},
                      {"maxTileBytes", step.max_tile_bytes},
                      {"variables", variables}}}});
  }
  return list;
}

Json cost_json(const StepCost& cost) {
  return {{"total", cost.total()},
          {"sync", cost.sync},
          {"exchange", cost.exchange},
          {"globalExchange", cost.global_exchange},
          {"hostExchange", cost.host_exchange},
          {"compute", cost.compute},
          {"control", cost.control}};
}

Json steps_json(const CompilationProfile& compilation) {
  Json list = Json::array();
  for (const StepProfile& step : compilation.steps)
    list.push_back({{"name", step.name},
                    {"kind", name_of(step.kind)},
                    {"cycles", cost_json(step.cost)},
                    {"vertices", step.vertices},
                    {"computeTiles", step.compute_tiles},
                    {"computeCyclesAllTiles", step.compute_cycles_all},
                    {"computeCyclesBusy", step.compute_cycles_busy},
                    {"exchangedBytes", step.exchanged_bytes},
                    {"linkBytes", step.link_bytes},
                    {"hostBytes", step.host_bytes},
                    {"maxTileBytesIn", step.max_bytes_in},
                    {"maxTileBytesOut", step.max_bytes_out},
                    {"maxTileFragments", step.max_fragments},
                    {"flops", step.flops}});
  return list;
}

Json compilation_json(const CompilationProfile& compilation) {
  const MemorySums sums = sum_memory(compilation);
  Json sets = Json::array();
  for (const std::string& name : compilation.compute_set_names) sets.push_back({{"name", name}});
  Json kinds = Json::array();
  for (const VertexKindProfile& kind : compilation.vertex_kinds)
    kinds.push_back({{"name", kind.name},
                     {"instances", kind.instances},
                     {"stateBytes", kind.state_bytes},
                     {"codeBytes", kind.code_bytes},
                     {"standInEstimate", kind.default_estimate},
                     {"countedInstructions", kind.default_estimate && kind.counted}});
  return {{"target", device_json(compilation)},
          {"planned", compilation.planned},
          {"tooFull", compilation.too_full},
          {"openConstants", constants_json(compilation.device)},
          {"graph",
           {{"numVars", compilation.variables},
            {"numConstants", compilation.constants},
            {"numVertices", compilation.vertices},
            {"numEdges", compilation.edges},
            {"numComputeSets", compilation.compute_sets}}},
          {"computeSets", sets},
          {"vertexTypes", kinds},
          {"memory",
           {{"total", {{"excludingGaps", sums.excluding_gaps}, {"includingGaps", sums.including_gaps}}},
            {"alwaysLiveBytes", sums.always_live},
            {"maxTile",
             {{"excludingGaps", sums.max_excluding_gaps}, {"includingGaps", sums.max_including_gaps}}}}},
          {"tiles", tiles_json(compilation)},
          {"livenessProgramSteps", liveness_json(compilation)},
          {"programSteps", steps_json(compilation)},
          {"compileSeconds", compilation.compile_seconds}};
}

Json run_json(const Profile& profile, const RunProfile& run) {
  const CompilationProfile& compilation = profile.compilation;
  Json steps = Json::array();
  for (const Event& event : run.events) {
    const std::uint64_t end = event.begin + compilation.steps[event.step].cost.total();
    Json ipus = Json::array();
    for (std::uint32_t ipu = 0; ipu < compilation.device.ipus; ++ipu) {
      const std::uint64_t to = compilation.steps[event.step].has_chip(ipu) ? end : event.begin;
      ipus.push_back({{"activeCycles",
                       {{"cyclesFrom", {{"min", event.begin}, {"max", event.begin}}},
                        {"cyclesTo", {{"min", to}, {"max", to}}}}}});
    }
    steps.push_back({{"step", event.step}, {"cyclesFrom", event.begin}, {"cyclesTo", end}, {"ipus", ipus}});
  }
  return {{"program", run.program},        {"totalCycles", run.cycles},
          {"cycles", cost_json(run.cost)}, {"activeCyclesOfIpus", run.active},
          {"assumed", run.assumed},        {"truncated", run.truncated},
          {"timesOfSteps", run.times},     {"steps", steps}};
}

Json execution_json(const Profile& profile) {
  const ExecutionSums sums = sum_execution(profile);
  Json runs = Json::array();
  for (const RunProfile& run : profile.runs) runs.push_back(run_json(profile, run));
  Json vertices = Json::array();
  for (const auto& [name, vertex] : sums.vertices)
    vertices.push_back({{"name", name}, {"instances", vertex.instances}, {"cycles", vertex.cycles}});
  return {{"how", "modelled"},
          {"numRuns", profile.run_count},
          {"totalCycles", {{"total", profile.total.cycles}}},
          {"cycles", cost_json(profile.total.cost)},
          {"computeCyclesAllTiles", sums.compute_all},
          {"computeCyclesBusy", sums.compute_busy},
          {"exchangeCyclesAllTiles", sums.exchange},
          {"exchangedBytes", sums.exchanged_bytes},
          {"linkBytes", sums.link_bytes},
          {"hostBytes", sums.host_bytes},
          {"flops", sums.flops},
          {"vertexTypes", vertices},
          {"runs", runs}};
}

}  // namespace

std::string profile_to_json(const Profile& profile) {
  const Json json = {{"schema", "superstep-bsp-profile/1"},
                     {"compilation", compilation_json(profile.compilation)},
                     {"execution", execution_json(profile)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Phases of a superstep on rows of their own; time stamps are microseconds of the modelled machine.
std::string profile_to_chrome_trace(const Profile& profile) {
  const CompilationProfile& compilation = profile.compilation;
  struct Phase {
    const char* name;
    std::uint64_t StepCost::*cycles;
  };
  static constexpr Phase phases[] = {{"sync", &StepCost::sync},
                                     {"exchange", &StepCost::exchange},
                                     {"global exchange", &StepCost::global_exchange},
                                     {"host exchange", &StepCost::host_exchange},
                                     {"compute", &StepCost::compute},
                                     {"control", &StepCost::control}};
  Json events = Json::array();
  for (std::size_t i = 0; i < std::size(phases); ++i)
    events.push_back(
        {{"name", "thread_name"}, {"ph", "M"}, {"pid", 0}, {"tid", i}, {"args", {{"name", phases[i].name}}}});
  const double microseconds = 1e6 / compilation.device.clock_hz;
  std::uint64_t offset = 0;
  for (const RunProfile& run : profile.runs) {
    for (const Event& event : run.events) {
      const StepProfile& step = compilation.steps[event.step];
      std::uint64_t at = offset + event.begin;
      for (std::size_t i = 0; i < std::size(phases); ++i) {
        const std::uint64_t cycles = step.cost.*phases[i].cycles;
        if (cycles == 0) continue;
        events.push_back({{"name", step.name},
                          {"cat", name_of(step.kind)},
                          {"ph", "X"},
                          {"ts", static_cast<double>(at) * microseconds},
                          {"dur", static_cast<double>(cycles) * microseconds},
                          {"pid", 0},
                          {"tid", i},
                          {"args", {{"cycles", cycles}}}});
        at += cycles;
      }
    }
    offset += run.cycles;
  }
  const Json json = {{"traceEvents", events},
                     {"displayTimeUnit", "ns"},
                     {"otherData", {{"how", "modelled"}, {"machine", compilation.device.name}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace superstep::bsp
