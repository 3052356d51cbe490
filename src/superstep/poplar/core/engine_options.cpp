#include <poplar/exceptions.hpp>

#include "superstep/base/text.h"
#include "superstep/poplar/core/engine_data.h"
#include "superstep/poplar/core/notes.h"

namespace poplar::core {
namespace {

bool is_true(const std::string& name, const std::string& value) {
  if (value == "true") return true;
  if (value == "false") return false;
  throw invalid_option(fmt::format("{} is '{}': take true or false", name, value));
}

// Those of Graphcore's SDK (Poplar and PopLibs API Reference, 1.4 to 3.3: Engine, RuntimeOptions), and those
// that its frameworks set. But for a few they speak of hardware, of its tools or of how code is made: there
// is nothing here that they could change.
constexpr std::string_view known_options[] = {
    "autoReport.all",
    "autoReport.directory",
    "autoReport.executionProfileProgramRunCount",
    "autoReport.outputArchive",
    "autoReport.outputDebugInfo",
    "autoReport.outputExecutionProfile",
    "autoReport.outputGraphProfile",
    "autoReport.outputLoweredVars",
    "autoReport.outputSerializedGraph",
    "autoReport.outputVars",
    "autoReport.streamAtEachRun",
    "debug.allowOutOfMemory",
    "debug.branchRecordTile",
    "debug.checkForTileOverwrite",
    "debug.computeInstrumentationLevel",
    "debug.cpuMultiThreadExecution",
    "debug.exceptOnSOCErrors",
    "debug.externalExchangeInstrumentationLevel",
    "debug.floatPointOpException",
    "debug.instrument",
    "debug.instrumentCompute",
    "debug.instrumentControlFlow",
    "debug.instrumentExternalExchange",
    "debug.loweredVarDumpFile",
    "debug.nanOverflowException",
    "debug.outputAllSymbols",
    "debug.profilingTile",
    "debug.retainDebugInformation",
    "debug.runtimeVerify",
    "debug.supervisorStackSizeInBytes",
    "debug.trace",
    "debug.traceFile",
    "debug.verify",
    "debug.workerStackSizeInBytes",
    "exchange.enablePrefetch",
    "exchange.streamBufferOverlap",
    "opt.enableInlining",
    "opt.enableMultiAccessCopies",
    "opt.enableSwSyncs",
    "opt.internalExchangeOptimisationTarget",
    "opt.limitVertexStateToLower256K",
    "opt.maxCompilationThreads",
    "opt.maxComputeSetsPerLoweredCopy",
    "opt.maxCopyMergeSize",
    "opt.maxLinkerThreads",
    "opt.useAutoloader",
    "prng.enableStochasticRounding",
    "prng.seed",
    "profiler.blocks.filter",
    "profiler.format",
    "profiler.includeCycleEstimates",
    "profiler.includeFlopEstimates",
    "profiler.perExecutionStreamCopyCycles",
    "profiler.programRunCount",
    "profiler.replicaToProfile",
    "streamCallbacks.maxLookahead",
    "streamCallbacks.multiThreadMode",
    "streamCallbacks.numWorkerThreads",
    "streamCallbacks.numaAware",
    "target.deterministicWorkers",
    "target.exceptionPollPeriodUs",
    "target.extendedMemory",
    "target.firstRuntimeReplica",
    "target.gatewayMode",
    "target.gatewayWriteCombining",
    "target.hostSyncTimeout",
    "target.maxStreamCallbackThreadsPerNumaNode",
    "target.numberRuntimeReplica",
    "target.saveArchive",
    "target.syncMethod",
    "target.syncPollPeriodUs",
    "target.syncReplicasIndependently",
    "target.textSectionSizeInBytes",
    "target.useBufferedCompletions",
    "target.workerStackSizeInBytes",
};

// Those that would change what is computed, and what is computed here.
struct Uncomputed {
  std::string_view option, word;
};
constexpr Uncomputed uncomputed[] = {
    {"prng.enableStochasticRounding", "results are rounded to nearest, ties to even"},
    {"debug.floatPointOpException", "no exception is raised, NaN and infinity are results"},
    {"debug.nanOverflowException", "no exception is raised, NaN and infinity are results"},
    {"debug.checkForTileOverwrite", "tiles are not looked at for it"},
};

constexpr std::array<std::string_view, 3> reports{"autoReport.all", "autoReport.outputGraphProfile",
                                                  "autoReport.outputExecutionProfile"};

}  // namespace

OptionFlags with_environment(OptionFlags options) {
  readJSONFromEnv("POPLAR_ENGINE_OPTIONS", options);
  return options;
}

std::string report_file(const OptionFlags& options) {
  bool wanted = false;
  std::string folder = ".";
  for (const auto& [name, value] : options) {
    if (std::ranges::find(reports, name) != reports.end()) wanted = is_true(name, value) || wanted;
    if (name == "autoReport.directory") folder = value;
  }
  return wanted ? folder + "/profile.pop" : std::string();
}

bsp::CompileOptions compile_options(const OptionFlags& options) {
  for (const Uncomputed& each : uncomputed)
    if (const auto found = options.find(std::string(each.option)); found != options.end())
      if (is_true(found->first, found->second))
        say_once(fmt::format("the engine option {} has no effect: {}", each.option, each.word));
  bsp::CompileOptions result;
  result.allow_undefined_reads = true;  // legal: the value is any
  result.allow_vertex_aliases = true;
  result.merge_equal_constants = true;  // libraries pad with thousands of them
  for (const auto& [name, value] : options) {
    if (name == "debug.allowOutOfMemory") {
      result.allow_out_of_memory = is_true(name, value);
    } else if (std::ranges::find(known_options, name) == std::end(known_options)) {
      const std::vector<std::string> known(std::begin(known_options), std::end(known_options));
      throw invalid_option(
          fmt::format("there is no engine option '{}': {}", name, superstep::unknown_name_hint(name, known)));
    }
  }
  return result;
}

bsp::SummaryOptions summary_options(const OptionFlags& options) {
  bsp::SummaryOptions result;
  for (const auto& [name, value] : options) {
    if (name == "showExecutionSteps")
      result.show_execution_steps = is_true(name, value);
    else if (name == "showVarStorage")
      result.show_variables = is_true(name, value);
    else if (name != "showOptimizations" && name != "showPerIpuMemoryUsage" && name != "colours")
      throw invalid_option(
          fmt::format("there is no report option '{}': {}", name,
                      superstep::unknown_name_hint(
                          name, std::vector<std::string>{"showExecutionSteps", "showVarStorage"})));
  }
  return result;
}

}  // namespace poplar::core
