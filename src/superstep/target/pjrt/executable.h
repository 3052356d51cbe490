// A graph compiled by a plug-in, for one device or for several that share it. Its states stay on the devices
// from run to run: what a run replaces lies in the memory of what it replaces.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "superstep/target/pjrt/phases.h"
#include "superstep/target/pjrt/prepared.h"
#include "superstep/target/pjrt/spread.h"
#include "superstep/target/pjrt/stablehlo/program.h"
#include "superstep/target/pjrt/states.h"
#include "superstep/target/ports.h"
#include "superstep/target/sends_ahead.h"
#include "superstep/target/target.h"

namespace superstep::target::pjrt {

class DeviceExecutable : public Executable, public SendsAhead {
 public:
  // Compiles `graph`, which has been through program_passes(), and copies constants to the devices, and
  // states where they are not there yet. Batches are cut over the devices of `place`, and parameters where
  // `options` say so.
  DeviceExecutable(graph::Graph graph, BatchedPorts ports, const CompileOptions& options, const Place& place,
                   std::shared_ptr<DeviceStates> states = nullptr);

  std::span<const Port> inputs() const override { return ports_.inputs; }
  std::span<const Port> outputs() const override { return ports_.outputs; }
  // After an error in the midst of a run the states on the device are gone: every later call throws, too.
  void run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override;
  void run(std::span<const Tensor> inputs, std::span<Tensor> outputs, NextInputs next) override;
  std::vector<std::string> state_names() const override { return states_->names(); }
  Tensor state(std::string_view name) const override { return states_->read(name); }
  void set_state(std::string_view name, const Tensor& value) override { states_->write(name, value); }
  void make_ready() override;
  PlanSummary summary() const override;
  // Where steps are measured: the phases of the last run, each awaited before the next begins.
  Timeline timeline() const override { return phases_.timeline(); }

  const MemoryNeed& memory() const { return memory_; }
  // What the plug-in's compiler says of the program: "flops", "bytes accessed". Empty where it does not.
  std::vector<Property> costs() const;
  const Place& place() const { return place_; }
  const std::shared_ptr<DeviceStates>& states() const { return states_; }

 private:
  void compile(const Place& place);
  void require_results(const Client& client) const;
  // Of a step in two programs, with an average over ranks between them.
  bool others_change_states() const { return options_.parts.count > 1; }
  std::size_t result_count() const;
  std::vector<std::vector<abi::PjrtBuffer*>> arguments(std::span<const Sent> inputs) const;
  std::vector<Sent> sent(std::span<const Tensor> inputs);
  void send_ahead(std::span<const Tensor> inputs);
  void receive(const Client::Ran& ran, std::span<Tensor> outputs);
  void take_states(Client::Ran& ran);

  graph::Graph graph_;
  BatchedPorts ports_;
  CompileOptions options_;
  Place place_;
  stablehlo::Sharding sharding_;
  std::shared_ptr<DeviceStates> states_;
  std::vector<std::size_t> changed_;  // places in states_, in the order of the results behind the outputs
  std::vector<std::vector<Buffer>> constants_;
  PreparedArguments prepared_;
  std::vector<Sent> ahead_;  // the first inputs of the next run
  Phases phases_;
  std::vector<std::string> refusals_;  // what a run may meet: a truth each, behind the other results
  Loaded loaded_;
  MemoryNeed memory_;
  std::size_t constant_bytes_ = 0;
  double compile_seconds_ = 0;
};

}  // namespace superstep::target::pjrt
