// A graph compiled by a plug-in. Its states stay on the device from run to run: what a run replaces lies in
// the memory of what it replaces.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "superstep/target/pjrt/client/client.h"
#include "superstep/target/pjrt/stablehlo/program.h"
#include "superstep/target/ports.h"
#include "superstep/target/target.h"

namespace superstep::target::pjrt {

struct Place {
  const Client* client = nullptr;
  std::size_t device = 0;
};

class DeviceExecutable : public Executable {
 public:
  // Compiles `graph`, which has been through program_passes(), and copies states and constants to the device.
  DeviceExecutable(graph::Graph graph, BatchedPorts ports, const CompileOptions& options, Place place);

  std::span<const Port> inputs() const override { return ports_.inputs; }
  std::span<const Port> outputs() const override { return ports_.outputs; }
  // After an error in the midst of a run the states on the device are gone: every later call throws, too.
  void run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override;
  std::vector<std::string> state_names() const override;
  Tensor state(std::string_view name) const override;
  void set_state(std::string_view name, const Tensor& value) override;
  PlanSummary summary() const override;

 private:
  struct Slot {
    std::string name;
    graph::ValueType type;
    Buffer buffer;
  };

  Slot& slot(std::string_view name);
  Buffer copied(const Tensor& tensor) const;
  void require_states() const;
  void require_results(const Client& client) const;
  std::size_t result_count() const;
  std::vector<Client::Upload> uploads(std::span<const Tensor> inputs) const;
  void download(std::span<Buffer> results, std::span<Tensor> outputs) const;
  void raise_refusal(const Tensor& truths) const;

  graph::Graph graph_;
  BatchedPorts ports_;
  CompileOptions options_;
  Place place_;
  std::vector<Slot> states_;
  std::vector<std::size_t> changed_;  // places in states_, in the order of the results behind the outputs
  std::vector<Buffer> constants_;
  std::vector<std::string> refusals_;  // what a run may meet: a truth each, behind the other results
  Loaded loaded_;
  MemoryNeed memory_;
  std::size_t constant_bytes_ = 0;
  double compile_seconds_ = 0;
  bool lost_ = false;
};

}  // namespace superstep::target::pjrt
