// One rank's share of a training step on a device of its own: gradients and losses are averaged over the
// ranks by what carries them (target::Exchange), between the program that makes them and the one that
// updates.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "superstep/target/pjrt/executable.h"

namespace superstep::target::pjrt {

class RankExecutable : public Executable, public SendsAhead {
 public:
  // `options.parts` says which part of how many. Throws Error (unsupported) where statistics of several ranks
  // are taken together in the middle of a step.
  RankExecutable(const GraphAtBatch& model, const CompileOptions& options, const Place& place);

  std::span<const Port> inputs() const override { return before_->inputs(); }
  std::span<const Port> outputs() const override { return outputs_; }
  void run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override;
  void run(std::span<const Tensor> inputs, std::span<Tensor> outputs, NextInputs next) override;
  std::vector<std::string> state_names() const override { return before_->state_names(); }
  Tensor state(std::string_view name) const override { return before_->state(name); }
  void set_state(std::string_view name, const Tensor& value) override { before_->set_state(name, value); }
  PlanSummary summary() const override;

 private:
  // A tensor's place in the memory of the exchange.
  struct Averaged {
    Tensor* tensor;
    std::size_t begin;
  };

  void require_alike(const graph::Graph& own, const graph::Graph& whole) const;
  void collect_averaged();
  void open_exchange();
  void average();

  Exchange& exchange_;
  std::unique_ptr<DeviceExecutable> before_, update_;
  std::vector<Port> outputs_;
  std::vector<bool> of_update_;             // by output: made by the update
  std::vector<std::size_t> update_inputs_;  // places in the step's inputs of what the update reads of them
  std::vector<Tensor> made_, updated_;      // outputs of the two programs
  std::vector<Averaged> averaged_;
  std::span<float> values_;
  std::size_t ranges_ = 0;
};

}  // namespace superstep::target::pjrt
