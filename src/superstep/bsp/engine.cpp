#include "superstep/bsp/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <numeric>

#include "superstep/base/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/base/thread_pool.h"
#include "superstep/bsp/engine_clock.h"
#include "superstep/bsp/engine_streams.h"
#include "superstep/bsp/engine_vertices.h"
#include "superstep/bsp/print_tensor.h"

namespace superstep::bsp {
namespace {

constexpr std::size_t kept_runs = 64;  // profiles of single runs

using Replicas = std::vector<std::uint32_t>;

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
        streams_(data_.streams, replicas_),
        remote_(options.timing_only ? std::span<const RemoteBufferData>() : data_.buffers, replicas_),
        pool_(std::max(1, options.threads)) {
    if (data_.timing_only && !options.timing_only)
      throw Error(ErrorCode::invalid_argument, "the program was compiled for timing only", "engine",
                  "compile it without timing_only, or set EngineOptions::timing_only");
    profile_.compilation = data_.profile;
    profile_.total.times.resize(data_.profile.steps.size());
  }

  void load() {
    loaded_ = true;
    if (options_.timing_only) return;
    instances_.clear();
    memory_.clear();
    for (std::uint32_t replica = 0; replica < replicas_; ++replica) {
      memory_.push_back(std::make_unique<ReplicaMemory>(data_.variables));
      auto& sets = instances_.emplace_back();
      for (const LoweredComputeSet& set : data_.compute_sets)
        sets.push_back(
            std::make_unique<VertexInstances>(set, *memory_[replica], data_.profile.target.workers));
    }
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
    RunClock clock(data_.profile.steps, replicas_, data_.profile.target.ipus,
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
      memory_[r]->scatter(handle.runs, size, static_cast<const std::byte*>(data) + r * part);
  }

  void read_tensor(std::string_view name, void* data, std::size_t bytes) const {
    const LoweredHandle& handle = find(data_.reads, name, bytes);
    if (options_.timing_only || !loaded_)
      throw Error(ErrorCode::invalid_argument, "there is no data: the engine only counts, or was not loaded",
                  std::string(name), "run it without timing_only");
    const std::size_t size = size_in_bytes(handle.type), part = static_cast<std::size_t>(handle.count) * size;
    for (std::uint32_t r = 0; r < replicas_; ++r)
      memory_[r]->gather(handle.runs, size, static_cast<std::byte*>(data) + r * part);
  }

  std::byte* remote_row(std::string_view handle, std::size_t bytes, std::int64_t row, std::uint32_t replica) {
    const RemoteBufferId id = remote_.find(handle);
    if (bytes != remote_.row_bytes(id))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} B are not a row of {} B", bytes, remote_.row_bytes(id)),
                  "remote buffer " + std::string(handle));
    return remote_.row(id, replica, row);
  }

  Streams& streams() { return streams_; }
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
        if (!options_.timing_only) leaf(node, replicas);
        clock_->step(node.step, replicas, node.kind == ProgramKind::cross_replica_copy);
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
        std::erase_if(going, [&](std::uint32_t r) {
          return (memory_[r]->integer(node.runs, node.type) != 0) != node.wanted;
        });
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
    const std::int64_t value = memory_[replica]->integer(node.runs, node.type);
    if (node.kind == ProgramKind::branch) return value != 0 ? 0 : 1;
    const auto found = std::find(node.cases.begin(), node.cases.end(), value);
    return static_cast<std::size_t>(found - node.cases.begin());  // the last child is the default
  }

  // --- leaves: data -------------------------------------------------------------------------------------

  void leaf(const LoweredNode& node, const Replicas& replicas) {
    const std::size_t size = size_in_bytes(node.type);
    if (node.kind == ProgramKind::cross_replica_copy) return cross_replica(node, replicas, size);
    if (node.kind == ProgramKind::assume_equal) return require_equal(node, replicas, size);
    for (const std::uint32_t r : replicas) {
      switch (node.kind) {
        case ProgramKind::execute: instances_[r][node.compute_set]->run(pool_); break;
        case ProgramKind::copy: memory_[r]->copy(*memory_[r], node.segments, size, node.staged); break;
        case ProgramKind::stream_in: stream_in(node, r, r == replicas[0], size); break;
        case ProgramKind::stream_out: stream_out(node, r, size); break;
        case ProgramKind::remote_read:
        case ProgramKind::remote_write: remote(node, r); break;
        case ProgramKind::print_tensor:
          print(node, r, node.name, options_.print_to ? *options_.print_to : std::cerr);
          break;
        case ProgramKind::abort_on_condition:
          if (memory_[r]->integer(node.runs, node.type) != 0)
            throw Error(ErrorCode::invalid_argument, "the program stopped itself: " + node.message,
                        "program AbortOnCondition '" + node.name + "'");
          break;
        case ProgramKind::error: stop(node, r); break;
        default: break;
      }
    }
  }

  std::vector<std::byte> dense(const LoweredNode& node, std::uint32_t replica) const {
    const std::size_t size = size_in_bytes(node.type);
    std::vector<std::byte> buffer(static_cast<std::size_t>(node.shape.element_count()) * size);
    memory_[replica]->gather(node.runs, size, buffer.data());
    return buffer;
  }

  void cross_replica(const LoweredNode& node, const Replicas& replicas, std::size_t size) {
    if (replicas.size() != replicas_)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("only {} of {} replicas came to it: a branch parted them", replicas.size(), replicas_),
          "program CrossReplicaCopy '" + node.name + "'", "let all replicas take the same branch");
    // All sources are read before any destination is written.
    std::vector<std::vector<std::byte>> buffers;
    for (const std::uint32_t r : replicas) {
      std::vector<std::byte>& buffer = buffers.emplace_back();
      const ReplicaMemory& from = *memory_[node.replica_map[r]];
      for (const Segment& s : node.segments) {
        const Run run{0, s.length, s.source, s.source_element, s.source_stride};
        const std::size_t begin = buffer.size();
        buffer.resize(begin + static_cast<std::size_t>(s.length) * size);
        from.gather(std::span(&run, 1), size, buffer.data() + begin);
      }
    }
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      const std::byte* next = buffers[i].data();
      for (const Segment& s : node.segments) {
        const Run run{0, s.length, s.destination, s.destination_element, s.destination_stride};
        memory_[replicas[i]]->scatter(std::span(&run, 1), size, next);
        next += static_cast<std::size_t>(s.length) * size;
      }
    }
  }

  void require_equal(const LoweredNode& node, const Replicas& replicas, std::size_t size) const {
    const std::vector<std::byte> first = dense(node, replicas[0]);
    for (const std::uint32_t r : replicas) {
      const std::vector<std::byte> other = dense(node, r);
      const auto differs = std::mismatch(first.begin(), first.end(), other.begin()).first;
      if (differs != first.end())
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("element {} differs between replicas {} and {}",
                                static_cast<std::size_t>(differs - first.begin()) / size, replicas[0], r),
                    "program AssumeEqualAcrossReplicas '" + node.name + "'");
    }
  }

  void stream_in(const LoweredNode& node, std::uint32_t replica, bool first, std::size_t size) {
    std::vector<std::byte> buffer(static_cast<std::size_t>(node.shape.element_count()) * size);
    streams_.read(node.stream, replica, first, buffer.data());
    memory_[replica]->scatter(node.runs, size, buffer.data());
  }

  void stream_out(const LoweredNode& node, std::uint32_t replica, std::size_t) {
    streams_.write(node.stream, replica, dense(node, replica).data());
  }

  void remote(const LoweredNode& node, std::uint32_t replica) {
    std::vector<std::int64_t> rows{0};
    if (!node.offsets.empty()) {
      rows.clear();
      for (const Run& run : node.offsets)
        for (std::int64_t i = 0; i < run.length; ++i)
          rows.push_back(integer_at(memory_[replica]->bytes(run.variable), node.offset_type,
                                    run.element + i * run.stride));
    }
    const std::size_t bytes = remote_.row_bytes(node.buffer), size = size_in_bytes(node.type);
    std::vector<std::byte> buffer = dense(node, replica);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::byte* row = remote_.row(node.buffer, replica, rows[i]);
      if (node.kind == ProgramKind::remote_read)
        std::memcpy(buffer.data() + i * bytes, row, bytes);
      else
        std::memcpy(row, buffer.data() + i * bytes, bytes);
    }
    if (node.kind == ProgramKind::remote_read) memory_[replica]->scatter(node.runs, size, buffer.data());
  }

  void print(const LoweredNode& node, std::uint32_t replica, std::string title, std::ostream& out) const {
    if (replicas_ > 1) title += fmt::format(" (replica {})", replica);
    print_tensor(out, title, node.type, node.shape, dense(node, replica).data());
  }

  [[noreturn]] void stop(const LoweredNode& node, std::uint32_t replica) const {
    print(node, replica, node.message, options_.print_to ? *options_.print_to : std::cerr);
    throw Error(ErrorCode::invalid_argument, "the program stopped itself: " + node.message,
                "program ErrorProgram '" + node.name + "'");
  }

  Executable executable_;
  const ExecutableData& data_;
  EngineOptions options_;
  std::uint32_t replicas_;
  Streams streams_;
  RemoteMemory remote_;
  ThreadPool pool_;
  Profile profile_;
  bool loaded_ = false;
  std::size_t events_ = 0;  // kept so far, over all runs
  std::size_t steps_done_ = 0, steps_ = 0;
  RunClock* clock_ = nullptr;
  std::vector<std::unique_ptr<ReplicaMemory>> memory_;
  std::vector<std::vector<std::unique_ptr<VertexInstances>>> instances_;  // replica, compute set
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
