// Runs compiled programs on a device and counts their cycles.
#ifndef poplar_Engine_hpp
#define poplar_Engine_hpp

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <poplar/ArrayRef.hpp>
#include <poplar/DebugContext.hpp>
#include <poplar/Device.hpp>
#include <poplar/Executable.hpp>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplar/StreamCallback.hpp>
#include <poplar/StringRef.hpp>
#include <pva/pva.hpp>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace poplar {

namespace core {
struct EngineData;
}

// A moment of the host and of the modelled device.
class TimerTimePoint {
 public:
  TimerTimePoint() : host_(), cycles_(0) {}
  TimerTimePoint(std::chrono::steady_clock::time_point host, std::uint64_t cycles)
      : host_(host), cycles_(cycles) {}
  std::chrono::steady_clock::time_point host() const { return host_; }
  std::uint64_t cycles() const { return cycles_; }

 private:
  std::chrono::steady_clock::time_point host_;
  std::uint64_t cycles_;
};

class Engine {
 public:
  // As compileGraph.
  Engine(const Graph& graph, ArrayRef<program::Program> programs, const OptionFlags& options = {},
         ProgressFunc progress = ProgressFunc(), const DebugContext& debugContext = {});
  Engine(const Graph& graph, const program::Program& program, const OptionFlags& options = {},
         ProgressFunc progress = ProgressFunc(), const DebugContext& debugContext = {});
  explicit Engine(Executable executable, const OptionFlags& options = {});
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void prepare(const Device& device);
  void deploy();
  void load(const Device& device);  // prepare and deploy: initial values into every variable
  // Throws application_runtime_error before load; stream_connection_error for a stream that is not connected.
  void run(unsigned program = 0, const std::string& name = std::string());
  void loadAndRun(const Device& device, unsigned program = 0);
  // From another thread: the run ends after the step that it is in, with an application_runtime_error. Of an
  // engine that does not run: nothing.
  void stop();

  // Now, and what lies between two moments: "2.1 ms on the host, 1203 cycles (0.9 us) on the device".
  TimerTimePoint getTimeStamp() const;
  std::string reportTiming(const TimerTimePoint& from, const TimerTimePoint& to) const;

  // Elements in row-major order of the tensor that the handle was made for, replicas one after the other.
  // The end says how much memory there is, which may be more; without one it holds the handle's tensor.
  void readTensor(StringRef handle, void* begin, void* end);
  void readTensor(StringRef handle, void* begin);
  void writeTensor(StringRef handle, const void* begin, const void* end);
  void writeTensor(StringRef handle, const void* begin);
  template <class T>
  void writeTensor(StringRef handle, const ArrayRef<T>& values) {
    writeTensor(handle, values.begin(), values.end());
  }

  // With an end: a ring, every transfer goes on where the last ended. Without: every transfer is at `begin`.
  // The replicas' data lie one after the other. A stream may be connected again at any time.
  void connectStream(StringRef handle, void* begin, void* end);
  void connectStream(StringRef handle, void* begin);
  void connectStream(StringRef handle, unsigned replica, void* begin, void* end);
  void connectStream(StringRef handle, unsigned replica, void* begin);
  void connectStreamToCallback(StringRef handle, std::unique_ptr<StreamCallback> callback);
  void connectStreamToCallback(StringRef handle, const std::function<void(void*)>& callback);
  void connectStreamToCallback(StringRef handle, unsigned replica, std::unique_ptr<StreamCallback> callback);
  void connectStreamToCallback(StringRef handle, unsigned replica,
                               const std::function<void(void*)>& callback);

  // Called where a program calls the function, with its inputs' elements and room for its outputs'.
  using HostCallback = std::function<void(ArrayRef<const void*> inputs, ArrayRef<void*> outputs)>;
  void connectHostFunction(StringRef handle, unsigned replica, HostCallback function);

  void copyToRemoteBuffer(const void* data, StringRef handle, std::uint64_t repeatIndex,
                          unsigned replica = 0);
  void copyFromRemoteBuffer(StringRef handle, void* data, std::uint64_t repeatIndex, unsigned replica = 0);

  void serializeExecutable(std::ostream& out) const;  // as Executable::serialize
  std::vector<std::string> listStreams() const;
  void setPrintStream(std::ostream& stream);

  // Reports: of the graph as it was compiled, of what has run, and both.
  // As of this call: what was given before by the same engine has changed to it.
  const ProfileValue& getGraphProfile() const;
  const ProfileValue& getExecutionProfile() const;
  ProfileValue getProfile() const;
  // The same as libpva reads it (-lpva), as of now.
  pva::Report getReport(bool reportExecution = true) const {
    return pva::parseReport(reportText(reportExecution));
  }
  void resetExecutionProfile();
  void enableExecutionProfiling() {}  // always counted
  void disableExecutionProfiling() {}
  void printProfileSummary(std::ostream& out, const OptionFlags& options = {}) const;

 private:
  std::string reportText(bool withExecution) const;
  std::unique_ptr<core::EngineData> data_;
};

// Of Engine::getGraphProfile and getExecutionProfile, or of what a graph_memory_allocation_error has.
void printGraphSummary(std::ostream& out, const ProfileValue& graphProfile, const OptionFlags& options = {});
void printExecutionSummary(std::ostream& out, const ProfileValue& graphProfile,
                           const ProfileValue& executionProfile, const OptionFlags& options = {});
void printProfileSummary(std::ostream& out, const ProfileValue& graphProfile,
                         const ProfileValue& executionProfile, const OptionFlags& options = {});

}  // namespace poplar

#pragma GCC visibility pop

#endif
