#include "superstep/api/compiled.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/api/ports.h"
#include "superstep/base/text.h"
#include "superstep/base/threads/processors.h"

namespace superstep::api {
namespace {

template <class Tensors>
void require_all_fit(const std::vector<Port>& ports, const Tensors& tensors, const char* kind) {
  if (tensors.size() != ports.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} {}s are needed, {} are given", ports.size(), kind, tensors.size()));
  for (std::size_t i = 0; i < ports.size(); ++i) require_fits(ports[i], tensors[i]);
}

}  // namespace

Compiled::Compiled(std::unique_ptr<target::Executable> executable)
    : executable_(std::move(executable)),
      inputs_(ports_of(executable_->inputs())),
      outputs_(ports_of(executable_->outputs())) {}

void Compiled::run(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  require_all_fit(inputs_, inputs, "input");
  require_all_fit(outputs_, outputs, "output");
  executable_->run(inputs, outputs);
}

std::vector<Tensor> Compiled::empty_outputs() const {
  std::vector<Tensor> tensors;
  for (const Port& port : outputs_) tensors.emplace_back(port.element, port.shape);
  return tensors;
}

void Compiled::require_state(std::string_view name) const {
  const std::vector<std::string> names = state_names();
  if (std::ranges::find(names, name) == names.end())
    throw Error(ErrorCode::invalid_argument, "there is no parameter of this name", std::string(name),
                unknown_name_hint(name, names));
}

Tensor Compiled::state(std::string_view name) const {
  require_state(name);
  return executable_->state(name);
}

void Compiled::set_state(std::string_view name, const Tensor& value) {
  require_state(name);
  const Tensor present = executable_->state_in_place(name);
  require_fits({std::string(name), present.type(), present.shape()}, value);
  executable_->set_state(name, value);
}

int threads_of(int threads) {
  if (threads < 0) throw Error(ErrorCode::invalid_argument, "must be 0 (all processors) or more", "threads");
  return threads > 0 ? threads : default_threads();
}

target::CompileOptions compile_options(const CompileSettings& settings) {
  if (settings.batch < 1) throw Error(ErrorCode::invalid_argument, "must be at least 1", "batch");
  if (settings.micro_batch < 0)
    throw Error(ErrorCode::invalid_argument, "must not be negative", "micro_batch");
  return {.batch = settings.batch,
          .micro_batch = settings.micro_batch,
          .threads = threads_of(settings.threads),
          .memory_limit = settings.memory_limit};
}

}  // namespace superstep::api
