// Compiling, loading and running. Streams and the host's handles: engine_host.cpp.
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <poplar/Engine.hpp>
#include <poplar/exceptions.hpp>

#include "superstep/base/file.h"
#include "superstep/base/thread_pool.h"
#include "superstep/base/threads/startable_threads.h"
#include "superstep/poplar/core/engine_data.h"
#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/profile/profile_tree.h"

namespace poplar {
namespace {

std::shared_ptr<const core::ExecutableData> existing(std::shared_ptr<const core::ExecutableData> data) {
  if (!data) throw poplar_error("an executable that is not there: take compileGraph");
  return data;
}

// What is a vertex's own lies on its tile.
void place_what_vertices_own(core::GraphState& state) {
  for (const auto& [field, own] : state.owned)
    if (const auto tile = state.graph.data().vertices[own.vertex].tile)
      state.graph.set_tile_mapping(own.tensor, *tile);
}

// Of the whole graph, whichever view of it was given.
Target target_of_all(const Graph& graph) {
  core::TargetData target = graph.getTarget().data();
  target.device = graph.handle().state->graph.device();
  return Target(std::make_shared<const core::TargetData>(std::move(target)));
}

core::bsp::Executable compiled(const core::bsp::Graph& graph, const std::vector<core::bsp::Program>& programs,
                               core::bsp::CompileOptions options) {
  try {
    return core::guarded([&] { return core::bsp::compile_graph(graph, programs, options); });
  } catch (graph_memory_allocation_error& error) {  // once more, for what programs want to know of it
    options.allow_out_of_memory = true;
    options.progress = {};
    error.graphProfile = core::graph_profile(core::bsp::compile_graph(graph, programs, options).profile());
    throw;
  }
}

// Those of the executable, of the engine and of the environment, the later in place of the earlier.
OptionFlags all_options(const core::ExecutableData& executable, const OptionFlags& own) {
  OptionFlags all = executable.options;
  for (const auto& [name, value] : own) all.set(name, value);
  return core::with_environment(std::move(all));
}

core::bsp::EngineOptions engine_options(std::ostream& print_to, std::atomic<bool>& stop) {
  core::bsp::EngineOptions options;
  options.print_to = &print_to;
  options.threads = superstep::startable_threads(superstep::available_processors());
  options.progress = [&stop](std::size_t, std::size_t) {
    if (stop) throw superstep::Error(superstep::ErrorCode::interrupted, "stopped by Engine::stop");
  };
  return options;
}

}  // namespace

core::EngineData::EngineData(std::shared_ptr<const ExecutableData> from, const OptionFlags& options)
    : executable(std::move(from)),
      print_stream(std::cerr.rdbuf()),
      engine(executable->executable, engine_options(print_stream, stop)) {
  const OptionFlags all = all_options(*executable, options);
  compile_options(all);  // names are checked
  report = report_file(all);
  write_report();
}

// A report that cannot be written at the end is said, and nothing else goes wrong for it.
core::EngineData::~EngineData() {
  try {
    write_report();
  } catch (const std::exception& error) {
    std::cerr << "poplar: " << error.what() << "\n";
  }
}

void core::EngineData::write_report() const {
  if (report.empty()) return;
  guarded([&] {
    const std::filesystem::path folder = std::filesystem::path(report).parent_path();
    superstep::make_folder(folder);
    superstep::write_file_atomically(report, report_text(engine.profile()));
    superstep::write_file_atomically((folder / "profile.html").string(),
                                     bsp::profile_to_html(engine.profile(), program_invocation_short_name));
  });
}

Executable::Executable() = default;
Executable::~Executable() = default;
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::Executable(std::shared_ptr<const core::ExecutableData> data) : data_(std::move(data)) {}
std::shared_ptr<const core::ExecutableData> Executable::data() const { return data_; }

Executable compileGraph(const Graph& graph, ArrayRef<program::Program> programs, const OptionFlags& options,
                        ProgressFunc progress, const DebugContext&) {
  core::bsp::CompileOptions compile = core::compile_options(core::with_environment(options));
  if (progress)
    compile.progress = [progress](std::size_t done, std::size_t all) {
      progress(static_cast<int>(done), static_cast<int>(all));
    };
  std::vector<core::bsp::Program> parts;
  for (const program::Program& program : programs) parts.push_back(program.data().get());
  return core::guarded([&] {
    core::bsp::Graph whole = graph.handle().state->graph;
    place_what_vertices_own(*graph.handle().state);
    return Executable(std::make_shared<const core::ExecutableData>(
        core::ExecutableData{compiled(whole, parts, compile), target_of_all(graph), options}));
  });
}

Engine::Engine(const Graph& graph, ArrayRef<program::Program> programs, const OptionFlags& options,
               ProgressFunc progress, const DebugContext& context)
    : Engine(compileGraph(graph, programs, options, std::move(progress), context), options) {}
Engine::Engine(const Graph& graph, const program::Program& program, const OptionFlags& options,
               ProgressFunc progress, const DebugContext& context)
    : Engine(graph, ArrayRef<program::Program>(program), options, std::move(progress), context) {}
Engine::Engine(Executable executable, const OptionFlags& options)
    : data_(std::make_unique<core::EngineData>(existing(executable.data()), options)) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

void Engine::prepare(const Device& device) {
  const Target &wanted = data_->executable->target, &has = device.getTarget();
  const unsigned replicas = data_->executable->executable.profile().replicas;
  if (has.getNumIPUs() != wanted.getNumIPUs() * replicas || has.getTilesPerIPU() < wanted.getTilesPerIPU())
    throw application_runtime_error(fmt::format(
        "the program is for {} chips of {} tiles, the device has {} of {}: load it onto the device "
        "whose target the graph was made with",
        wanted.getNumIPUs() * replicas, wanted.getTilesPerIPU(), has.getNumIPUs(), has.getTilesPerIPU()));
  data_->prepared = true;
}

void Engine::deploy() {
  if (!data_->prepared) throw application_runtime_error("deploy before prepare: call load(device)");
  core::guarded_running([&] { data_->engine.load(); });
  data_->loaded = true;
}

void Engine::load(const Device& device) {
  prepare(device);
  deploy();
}

void Engine::run(unsigned program, const std::string&) {
  if (!data_->loaded) throw application_runtime_error("run before load: call load(device)");
  data_->stop = false;
  core::guarded_running([&] { data_->engine.run(static_cast<int>(program)); });
}

void Engine::stop() { data_->stop = true; }

TimerTimePoint Engine::getTimeStamp() const {
  return TimerTimePoint(std::chrono::steady_clock::now(), data_->engine.profile().total.cycles);
}

std::string Engine::reportTiming(const TimerTimePoint& from, const TimerTimePoint& to) const {
  const std::chrono::duration<double, std::milli> host = to.host() - from.host();
  const std::uint64_t cycles = to.cycles() - from.cycles();
  const double seconds =
      static_cast<double>(cycles) / data_->executable->executable.profile().device.clock_hz;
  return fmt::format("{:.1f} ms on the host, {} cycles ({:.1f} us) on the device", host.count(), cycles,
                     1e6 * seconds);
}

void Engine::loadAndRun(const Device& device, unsigned program) {
  load(device);
  run(program);
}

void Engine::serializeExecutable(std::ostream& out) const { Executable(data_->executable).serialize(out); }

void Engine::setPrintStream(std::ostream& stream) { data_->print_stream.rdbuf(stream.rdbuf()); }

const ProfileValue& Engine::getGraphProfile() const {
  return data_->graph_profile = core::graph_profile(data_->engine.profile().compilation);
}
const ProfileValue& Engine::getExecutionProfile() const {
  return data_->execution_profile = core::execution_profile(data_->engine.profile());
}
ProfileValue Engine::getProfile() const {
  return ProfileValue::Map{{"graphProfile", getGraphProfile()}, {"executionProfile", getExecutionProfile()}};
}

std::string Engine::reportText(bool with_execution) const {
  return core::report_text(data_->engine.profile(), with_execution);
}

void Engine::resetExecutionProfile() { data_->engine.reset_execution_profile(); }

void Engine::printProfileSummary(std::ostream& out, const OptionFlags& options) const {
  data_->engine.print_profile_summary(out, core::summary_options(options));
}

}  // namespace poplar
