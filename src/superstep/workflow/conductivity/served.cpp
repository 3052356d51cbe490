#include "superstep/workflow/conductivity/served.h"

#include <algorithm>

#include "superstep/physics/stream_blocks.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/infer.h"

namespace superstep::workflow {

Served::Served(const std::filesystem::path& run, std::int64_t batch, int threads) : batch_(batch) {
  const run::Weights weights = run::load_weights(run);
  const run::Model model(weights.settings);
  const target::Target& target = target::find_target("cpu");
  executable_ = target.compile(model.inference(&target), {.batch = batch, .threads = threads});
  for (const std::string& name : executable_->state_names()) {
    const auto found = weights.states.find(name);
    if (found == weights.states.end())
      throw Error(ErrorCode::bad_file, "has no parameter " + name, weights.where);
    executable_->set_state(name, found->second);
  }
}

void Served::run(std::int64_t samples, const Fill& fill, const Take& take) {
  std::vector<Tensor> inputs, outputs;
  for (const auto& port : executable_->inputs()) inputs.emplace_back(port.type.element, port.type.shape);
  for (const auto& port : executable_->outputs()) outputs.emplace_back(port.type.element, port.type.shape);
  for (std::int64_t first = 0; first < samples; first += batch_) {
    data::throw_if_interrupted();
    const std::int64_t count = std::min(batch_, samples - first);
    fill(first, count, inputs);
    executable_->run(inputs, outputs);
    take(first, count, outputs[0]);
  }
}

}  // namespace superstep::workflow
