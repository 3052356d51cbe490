// A plug-in at work: its devices, buffers on them, and programs compiled for them, each owned by who holds
// it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/target/pjrt/client/library.h"

namespace superstep::target::pjrt {

// One thing of the plug-in's, given back when this is destroyed.
template <class Thing, class Args, Thing* Args::*Member, abi::Function Destroy>
class Owned {
 public:
  Owned() = default;
  Owned(const Library& library, Thing* thing) : library_(&library), thing_(thing) {}
  Owned(Owned&& other) noexcept : library_(other.library_), thing_(std::exchange(other.thing_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(library_, other.library_);
    std::swap(thing_, other.thing_);
    return *this;
  }
  ~Owned() {
    if (!thing_) return;
    Args args;
    args.*Member = thing_;
    library_->release(Destroy, args);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  Thing* get() const { return thing_; }
  explicit operator bool() const { return thing_ != nullptr; }

 private:
  const Library* library_ = nullptr;
  Thing* thing_ = nullptr;
};

using Buffer =
    Owned<abi::PjrtBuffer, abi::BufferArgs, &abi::BufferArgs::buffer, abi::Function::buffer_destroy>;
using Event = Owned<abi::PjrtEvent, abi::EventArgs, &abi::EventArgs::event, abi::Function::event_destroy>;
using Compiled = Owned<abi::PjrtExecutable, abi::ExecutableArgs, &abi::ExecutableArgs::executable,
                       abi::Function::executable_destroy>;
using Loaded = Owned<abi::PjrtLoadedExecutable, abi::LoadedArgs, &abi::LoadedArgs::executable,
                     abi::Function::loaded_destroy>;
using Topology = Owned<abi::PjrtTopology, abi::TopologyArgs, &abi::TopologyArgs::topology,
                       abi::Function::topology_destroy>;

// What a program takes on its device, as the plug-in says.
struct MemoryNeed {
  std::int64_t arguments = 0, results = 0, aliased = 0, temporaries = 0, code = 0;
  // All that is there at once: what is aliased is counted once.
  std::int64_t bytes() const { return arguments + results - aliased + temporaries + code; }
};

struct DeviceMemory {
  std::int64_t in_use = 0;
  std::optional<std::int64_t> peak, limit;
};

// Of StableHLO text. Throws Error: what the plug-in says.
MemoryNeed memory_need(const Library& library, const Compiled& compiled);
std::size_t output_count(const Library& library, const Compiled& compiled);
struct Property {
  std::string name;
  double value = 0;
};
// What its compiler estimates of a program: "flops", "bytes accessed", others by its own names. Empty where
// it does not say.
std::vector<Property> cost_analysis(const Library& library, const Compiled& compiled);
// The program after the plug-in's own passes, as it prints it.
std::string optimized_program(const Library& library, const Compiled& compiled);
// A program in the form that is handed over; `text` must live as long.
abi::Program program_of(const std::string& text);

// For how many devices, the first of the plug-in's, a program is compiled; `any`: for one, which the call
// names.
struct CompiledFor {
  std::size_t devices = 1;
  bool any = false;
};
// The options of a compilation, a protobuf.
std::string compile_options(const CompiledFor& compiled_for);

class Client {
 public:
  // The client of a plug-in: there is one a process, which is never closed. Throws Error, the plug-in's
  // words.
  static const Client& of(const Library& library);

  const Library& library() const { return library_; }
  std::string platform() const;          // "cpu", "cuda"
  std::string platform_version() const;  // in the plug-in's words
  std::span<abi::PjrtDevice* const> devices() const { return devices_; }
  std::string device_kind(std::size_t device) const;                    // "NVIDIA H100 80GB HBM3"
  std::optional<DeviceMemory> device_memory(std::size_t device) const;  // none where it is not said

  Loaded compile(const std::string& text, const CompiledFor& compiled_for) const;
  Compiled compiled_of(const Loaded& loaded) const;

  // Elements on their way to a device. The tensor must stay as it is until done() is awaited.
  struct Upload {
    Buffer buffer;
    Event done;
  };
  Upload upload(const Tensor& tensor, std::size_t device) const;
  // On their way back: `target` is allocated with the buffer's type and shape.
  Event download(const Buffer& buffer, Tensor& target) const;
  void await(const Event& event, std::string_view doing) const;

  // Runs a program, with arguments by device. Arguments with an alias in it are gone afterwards.
  struct Ran {
    std::vector<std::vector<Buffer>> results;  // by device
    std::vector<Event> complete;
  };
  Ran execute(const Loaded& loaded, std::span<const std::vector<abi::PjrtBuffer*>> arguments,
              std::size_t results, std::optional<std::size_t> device) const;

 private:
  Client(const Library& library, abi::PjrtClient* client);
  abi::PjrtDeviceDescription* description(std::size_t device) const;
  std::string text(abi::Function function) const;

  const Library& library_;
  abi::PjrtClient* client_;
  std::vector<abi::PjrtDevice*> devices_;
};

}  // namespace superstep::target::pjrt
