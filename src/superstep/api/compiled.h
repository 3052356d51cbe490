// A compiled graph with its ports and states: what a session and a trainer have in common.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/superstep.h"
#include "superstep/target/target.h"

namespace superstep::api {

class Compiled {
 public:
  explicit Compiled(std::unique_ptr<target::Executable> executable);

  target::Executable& executable() { return *executable_; }
  const target::Executable& executable() const { return *executable_; }
  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }

  // Throws Error (invalid_argument): another number of tensors, another type or shape, naming the port.
  void run(std::span<const Tensor> inputs, std::span<Tensor> outputs);
  std::vector<Tensor> empty_outputs() const;

  // States that a user may see and set: throws Error (invalid_argument) on an unknown name.
  std::vector<std::string> state_names() const { return executable_->state_names(); }
  Tensor state(std::string_view name) const;
  void set_state(std::string_view name, const Tensor& value);

 private:
  void require_state(std::string_view name) const;

  std::unique_ptr<target::Executable> executable_;
  std::vector<Port> inputs_, outputs_;
};

target::CompileOptions compile_options(const CompileSettings& settings);
int threads_of(int threads);  // 0: default_threads(); throws Error (invalid_argument) below 0

}  // namespace superstep::api
