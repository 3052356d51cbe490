#include "superstep/bsp/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/bsp/engine/engine_clock.h"
#include "superstep/bsp/engine/engine_leaves.h"

namespace superstep::bsp {
namespace {

constexpr std::size_t kept_runs = 64;  // profiles of single runs

class FunctionCallback : public StreamCallback {
 public:
  explicit FunctionCallback(std::function<void(void*)> function) : function_(std::move(function)) {}
  void fetch(void* data) override { function_(data); }

 private:
  std::function<void(void*)> function_;
};

}  // namespace

class Engine::Implementation {
 public:
  Implementation(Executable executable, const EngineOptions& options)
      : executable_(std::move(executable)),
        data_(executable_.data()),
        options_(options),
        replicas_(data_.profile.replicas),
        leaves_(data_, options_) {
    if (data_.timing_only && !options.timing_only)
      throw Error(ErrorCode::invalid_argument, "the program was compiled for timing only", "engine",
                  "compile it without timing_only, or set EngineOptions::timing_only");
    profile_.compilation = data_.profile;
    profile_.total.times.resize(data_.profile.steps.size());
  }

  void load() {
    loaded_ = true;
    if (!options_.timing_only) leaves_.load();
  }
  void need_loaded() {
    if (!loaded_) load();
  }

  void run(int program) {
    if (program < 0 || program >= static_cast<int>(data_.programs.size()))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("there is no program {}: the engine has {}", program, data_.programs.size()),
                  "engine");
    need_loaded();
    RunClock clock(data_.profile.steps, replicas_, data_.profile.device.ipus,
                   options_.trace_events - std::min(options_.trace_events, events_));
    clock_ = &clock;
    Replicas all(options_.timing_only ? 1 : replicas_);
    std::iota(all.begin(), all.end(), 0u);
    const std::uint32_t root = data_.programs[static_cast<std::size_t>(program)];
    steps_done_ = 0;
    if (options_.progress) options_.progress(0, steps_ = steps_of(root));
    execute(root, all);
    keep(clock.finish(program));
  }

  void write_tensor(std::string_view name, const void* data, std::size_t bytes) {
    const LoweredHandle& handle = find(data_.writes, name, bytes);
    if (options_.timing_only) return;
    need_loaded();
    const std::size_t size = size_in_bytes(handle.type), part = static_cast<std::size_t>(handle.count) * size;
    for (std::uint32_t r = 0; r < replicas_; ++r)
      leaves_.memory(r).scatter(handle.runs, size, static_cast<const std::byte*>(data) + r * part);
  }

  void read_tensor(std::string_view name, void* data, std::size_t bytes) const {
    const LoweredHandle& handle = find(data_.reads, name, bytes);
    if (options_.timing_only || !loaded_)
      throw Error(ErrorCode::invalid_argument, "there is no data: the engine only counts, or was not loaded",
                  std::string(name), "run it without timing_only");
    const std::size_t size = size_in_bytes(handle.type), part = static_cast<std::size_t>(handle.count) * size;
    for (std::uint32_t r = 0; r < replicas_; ++r)
      leaves_.memory(r).gather(handle.runs, size, static_cast<std::byte*>(data) + r * part);
  }

  std::byte* remote_row(std::string_view handle, std::size_t bytes, std::int64_t row, std::uint32_t replica) {
    RemoteMemory& remote = leaves_.remote_memory();
    const RemoteBufferId id = remote.find(handle);
    if (bytes != remote.row_bytes(id))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} B are not a row of {} B", bytes, remote.row_bytes(id)),
                  "remote buffer " + std::string(handle));
    return remote.row(id, replica, row);
  }

  Streams& streams() { return leaves_.streams(); }
  const Profile& profile() const { return profile_; }
  void reset() {
    profile_.runs.clear();
    profile_.run_count = 0;
    profile_.total = {};
    profile_.total.times.resize(data_.profile.steps.size());
    events_ = 0;
  }

 private:
  const LoweredHandle& find(const std::map<std::string, LoweredHandle, std::less<>>& handles,
                            std::string_view name, std::size_t bytes) const {
    const auto found = handles.find(name);
    if (found == handles.end()) {
      std::vector<std::string> names;
      for (const auto& [known, handle] : handles) names.push_back(known);
      throw Error(ErrorCode::invalid_argument, "there is no such handle", std::string(name),
                  unknown_name_hint(name, names));
    }
    const std::size_t wanted =
        static_cast<std::size_t>(found->second.count) * size_in_bytes(found->second.type) * replicas_;
    if (bytes != wanted)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the handle has {} B over all replicas, not {}", wanted, bytes),
                  "handle " + std::string(name));
    return found->second;
  }

  void keep(RunProfile run) {
    RunProfile& total = profile_.total;
    ++profile_.run_count;
    events_ += run.events.size();
    total.cycles += run.cycles;
    add(total.cost, run.cost);
    for (std::size_t i = 0; i < run.times.size(); ++i) total.times[i] += run.times[i];
    total.active.resize(run.active.size());
    for (std::size_t i = 0; i < run.active.size(); ++i) total.active[i] += run.active[i];
    total.assumed = total.assumed || run.assumed;
    if (profile_.runs.size() < kept_runs) profile_.runs.push_back(std::move(run));
  }

  // --- control flow -------------------------------------------------------------------------------------

  void execute(std::uint32_t number, const Replicas& replicas) {
    const LoweredNode& node = data_.nodes[number];
    switch (node.kind) {
      case ProgramKind::sequence:
        for (const std::uint32_t child : node.children) execute(child, replicas);
        break;
      case ProgramKind::repeat: repeat(node, replicas); break;
      case ProgramKind::repeat_while: repeat_while(node, replicas); break;
      case ProgramKind::branch:
      case ProgramKind::switch_case: choose(node, replicas); break;
      default:
        if (interrupted()) throw Error(ErrorCode::interrupted, "stopped while executing");
        if (!options_.timing_only) leaves_.run(node, replicas);
        clock_->step(node.step, replicas, node.kind == ProgramKind::cross_replica_copy);
        if (node.kind == ProgramKind::count_cycles && !options_.timing_only)
          for (const std::uint32_t r : replicas) leaves_.count_cycles(node, r, clock_->now(r));
        if (options_.progress) options_.progress(++steps_done_, steps_);
    }
  }

  // Steps below a node, for progress.
  std::size_t steps_of(std::uint32_t number) const {
    const LoweredNode& node = data_.nodes[number];
    const bool alternatives = node.kind == ProgramKind::branch || node.kind == ProgramKind::switch_case;
    std::size_t steps = node.children.empty() ? 1 : 0;
    for (const std::uint32_t child : node.children)
      steps = alternatives ? std::max(steps, steps_of(child)) : steps + steps_of(child);
    return node.kind == ProgramKind::repeat ? steps * node.count : steps;
  }

  void repeat(const LoweredNode& node, const Replicas& replicas) {
    for (std::uint64_t i = 0; i < node.count; ++i) {
      const std::size_t events = clock_->events();
      const RunClock::Mark mark = options_.timing_only ? clock_->mark() : RunClock::Mark{};
      execute(node.children[0], replicas);
      if (options_.timing_only && (!clock_->recording() || clock_->events() == events)) {
        clock_->repeat(mark, node.count - i - 1);
        return;
      }
    }
  }

  void repeat_while(const LoweredNode& node, Replicas going) {
    for (std::uint64_t turn = 0; !going.empty(); ++turn) {
      if (turn > options_.iteration_limit)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the loop has not ended after {} iterations", options_.iteration_limit),
                    "program RepeatWhile '" + node.name + "'",
                    "check its predicate, or raise iteration_limit");
      execute(node.children[0], going);
      clock_->step(node.step, going);
      if (options_.timing_only) {
        clock_->assume();
        if (turn == options_.assumed_iterations) return;
      } else {
        std::erase_if(going, [&](std::uint32_t r) { return (leaves_.integer(node, r) != 0) != node.wanted; });
        if (going.empty()) return;
      }
      execute(node.children[1], going);
    }
  }

  // Replicas part where their values differ, and go on together after the last of them.
  void choose(const LoweredNode& node, const Replicas& replicas) {
    clock_->step(node.step, replicas);
    std::vector<Replicas> parts(node.children.size());
    for (const std::uint32_t r : replicas) parts[choice(node, r)].push_back(r);
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (!parts[i].empty()) execute(node.children[i], parts[i]);
  }

  std::size_t choice(const LoweredNode& node, std::uint32_t replica) {
    if (options_.timing_only) {
      clock_->assume();
      return node.kind == ProgramKind::branch && !options_.assumed_branch ? 1 : 0;
    }
    const std::int64_t value = leaves_.integer(node, replica);
    if (node.kind == ProgramKind::branch) return value != 0 ? 0 : 1;
    const auto found = std::find(node.cases.begin(), node.cases.end(), value);
    return static_cast<std::size_t>(found - node.cases.begin());  // the last child is the default
  }

  Executable executable_;
  const ExecutableData& data_;
  EngineOptions options_;
  std::uint32_t replicas_;
  Leaves leaves_;
  Profile profile_;
  bool loaded_ = false;
  std::size_t events_ = 0;  // kept so far, over all runs
  std::size_t steps_done_ = 0, steps_ = 0;
  RunClock* clock_ = nullptr;
};

Engine::Engine(Executable executable, const EngineOptions& options)
    : implementation_(std::make_unique<Implementation>(std::move(executable), options)) {}
Engine::Engine(const Graph& graph, std::span<const Program> programs, const EngineOptions& options,
               const CompileOptions& compile_options)
    : Engine(compile_graph(graph, programs, compile_options), options) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

void Engine::connect_stream(std::string_view handle, void* begin, void* end, std::uint32_t replica) {
  implementation_->streams().connect(handle, begin, end, replica);
}
void Engine::connect_stream_to_callback(std::string_view handle, std::unique_ptr<StreamCallback> callback,
                                        std::uint32_t replica) {
  implementation_->streams().connect(handle, std::move(callback), replica);
}
void Engine::connect_stream_to_callback(std::string_view handle, std::function<void(void*)> callback,
                                        std::uint32_t replica) {
  implementation_->streams().connect(handle, std::make_unique<FunctionCallback>(std::move(callback)),
                                     replica);
}

void Engine::load() { implementation_->load(); }
void Engine::run(int program) { implementation_->run(program); }
void Engine::load_and_run(int program) {
  load();
  run(program);
}

void Engine::write_tensor(std::string_view handle, const void* data, std::size_t bytes) {
  implementation_->write_tensor(handle, data, bytes);
}
void Engine::read_tensor(std::string_view handle, void* data, std::size_t bytes) const {
  implementation_->read_tensor(handle, data, bytes);
}
void Engine::copy_to_remote_buffer(const void* data, std::size_t bytes, std::string_view handle,
                                   std::int64_t row, std::uint32_t replica) {
  std::memcpy(implementation_->remote_row(handle, bytes, row, replica), data, bytes);
}
void Engine::copy_from_remote_buffer(std::string_view handle, void* data, std::size_t bytes, std::int64_t row,
                                     std::uint32_t replica) const {
  std::memcpy(data, implementation_->remote_row(handle, bytes, row, replica), bytes);
}

const Profile& Engine::profile() const { return implementation_->profile(); }
void Engine::reset_execution_profile() { implementation_->reset(); }
void Engine::print_profile_summary(std::ostream& out, const SummaryOptions& options) const {
  bsp::print_profile_summary(out, profile(), options);
}

}  // namespace superstep::bsp
