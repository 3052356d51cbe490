// Compiles a device graph with its programs, once, and runs them.
//
// compile_graph checks the graph, decides what every step exchanges, costs and keeps in memory, and gives an
// immutable Executable that any number of engines may share. An Engine has the data: it runs vertices on host
// cores, with the same bits for any number of threads, and counts cycles. With `timing_only` it touches no
// data and only counts.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/bsp/engine/stream_callback.h"
#include "superstep/bsp/graph/graph.h"
#include "superstep/bsp/profile/profile.h"

#pragma GCC visibility push(default)  // installed: what is declared here is exported

namespace superstep::bsp {

struct ExecutableData;

// Called as work goes on, first with nothing done: so much of so much.
using ProgressFunction = std::function<void(std::size_t done, std::size_t all)>;

struct CompileOptions {
  bool allow_out_of_memory = false;    // go on when a tile is too full; the profile shows it
  bool allow_undefined_reads = false;  // of elements that nothing ever wrote (they read as zero)
  // A vertex may read through one field what it writes through another: both show the same memory where their
  // elements are the same, or lie in one piece.
  bool allow_vertex_aliases = false;
  // Constants of a tile that are the same number over and over lie in the largest of them.
  bool merge_equal_constants = false;
  bool timing_only = false;  // leave out what only running needs: engines must be timing only too
  // Runs of elements that the vertices of one compute set may touch; more are an error (unsupported), before
  // they take the host's memory.
  std::size_t most_accesses = static_cast<std::size_t>(-1);
  ProgressFunction progress = {};  // compute sets, counted where they are checked and where they are lowered
};

class Executable {
 public:
  explicit Executable(std::shared_ptr<const ExecutableData> data) : data_(std::move(data)) {}
  const CompilationProfile& profile() const;
  const ExecutableData& data() const { return *data_; }

 private:
  std::shared_ptr<const ExecutableData> data_;
};

// Throws Error: bad_graph (naming tensor, vertex, field, tile or program: unmapped, unconnected, a race, a
// read of what was never written), out_of_memory (naming the ten largest tenants of the fullest tile),
// interrupted.
Executable compile_graph(const Graph& graph, std::span<const Program> programs,
                         const CompileOptions& options = {});

struct EngineOptions {
  int threads = 1;
  bool timing_only = false;
  std::size_t trace_events = 20000;          // kept for the timeline, a run
  std::uint64_t assumed_iterations = 1;      // timing only: of a loop that ends by a value
  bool assumed_branch = true;                // timing only: of an If; a Switch takes its first case
  std::uint64_t iteration_limit = 1u << 30;  // of a loop that ends by a value, before it is an error
  std::ostream* print_to = nullptr;          // PrintTensor; null: standard error
  // Steps of a run; those of a loop that ends by a value, and the longest branch, are counted once.
  ProgressFunction progress = {};
};

class Engine {
 public:
  explicit Engine(Executable executable, const EngineOptions& options = {});
  Engine(const Graph& graph, std::span<const Program> programs, const EngineOptions& options = {},
         const CompileOptions& compile_options = {});
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  // A buffer that every transfer goes on from where the last ended, and begins again at its end (a ring); its
  // size must be a multiple of the stream's transfer. A replicated stream takes the replicas' data one after
  // the other, or a buffer a replica.
  void connect_stream(std::string_view handle, void* begin, void* end, std::uint32_t replica = all_replicas);
  template <class T>
  void connect_stream(std::string_view handle, std::span<T> buffer, std::uint32_t replica = all_replicas) {
    connect_stream(handle, const_cast<std::remove_const_t<T>*>(buffer.data()),
                   const_cast<std::remove_const_t<T>*>(buffer.data() + buffer.size()), replica);
  }
  void connect_stream_to_callback(std::string_view handle, std::unique_ptr<StreamCallback> callback,
                                  std::uint32_t replica = 0);
  void connect_stream_to_callback(std::string_view handle, std::function<void(void*)> callback,
                                  std::uint32_t replica = 0);

  void load();  // initial values into every variable; done by the first run() otherwise
  // Throws Error: a stream that is not connected, an abort, a loop without end; interrupted, after which the
  // tensors hold what has been written so far.
  void run(int program = 0);
  void load_and_run(int program = 0);

  // Elements in row-major order of the tensor that the handle was made for, replicas one after the other.
  void write_tensor(std::string_view handle, const void* data, std::size_t bytes);
  void read_tensor(std::string_view handle, void* data, std::size_t bytes) const;
  template <class T>
  void write_tensor(std::string_view handle, std::span<const T> values) {
    write_tensor(handle, values.data(), values.size_bytes());
  }
  template <class T>
  void read_tensor(std::string_view handle, std::span<T> values) const {
    read_tensor(handle, values.data(), values.size_bytes());
  }
  void copy_to_remote_buffer(const void* data, std::size_t bytes, std::string_view handle, std::int64_t row,
                             std::uint32_t replica = 0);
  void copy_from_remote_buffer(std::string_view handle, void* data, std::size_t bytes, std::int64_t row,
                               std::uint32_t replica = 0) const;

  const Profile& profile() const;
  void reset_execution_profile();
  void print_profile_summary(std::ostream& out, const SummaryOptions& options = {}) const;

  static constexpr std::uint32_t all_replicas = bsp::all_replicas;

 private:
  class __attribute__((visibility("hidden"))) Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace superstep::bsp

#pragma GCC visibility pop
