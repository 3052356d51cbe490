#include "superstep/target/cpu/lower/lowering.h"

#include <algorithm>
#include <utility>

#include "superstep/target/cpu/lower/joined_step.h"

namespace superstep::target::cpu {

std::unexpected<Refusal> refuse(const char* implementation, std::string reason) {
  return std::unexpected(Refusal{implementation, std::move(reason)});
}

Lowering::Lowering(const Graph& graph, const std::vector<bool>& batched_output, bool whole_batch)
    : graph_(graph),
      batched_output_(batched_output),
      whole_batch_(whole_batch),
      layout_(assign_layout(graph)),
      section_of_(graph.node_count(), Section::body),
      done_(graph.node_count(), false),
      consumers_(graph.value_count()),
      leaves_(graph.value_count(), false) {}

void Lowering::emit(std::string op, std::string node, kernels::KernelPointer kernel,
                    std::vector<DraftOperand> inputs, std::vector<DraftOperand> outputs) {
  Draft& current = draft(section_);
  DraftStep step{
      .kernel = std::move(kernel), .inputs = std::move(inputs), .outputs = std::move(outputs), .info = {}};
  const kernels::KernelInfo& info = step.kernel->info();
  step.info = {.node = std::move(node),
               .op = std::move(op),
               .kernel = info.name,
               .refusals = {},
               .flops = info.flops,
               .bytes = info.bytes,
               .arithmetic = info.arithmetic};
  for (const Refusal& refusal : refusals_) step.info.refusals.push_back(to_string(refusal));
  for (const Refusal& refusal : info.refused) step.info.refusals.push_back(to_string(refusal));
  std::size_t place = current.steps.size();
  if (auto joined = joined_step(current.steps, step)) {
    step = std::move(joined->step);
    place = joined->place;
  } else {
    current.steps.emplace_back();
  }
  const int index = static_cast<int>(place);
  for (const auto* operands : {&step.inputs, &step.outputs})
    for (const DraftOperand& operand : *operands)
      if (const auto* block = std::get_if<BlockOperand>(&operand)) {
        Block& lifetime = current.blocks[block->block];
        lifetime.first = std::min(lifetime.first, index);
        lifetime.last = std::max(lifetime.last, index);
      }
  plan_.scratch_bytes = std::max(plan_.scratch_bytes, step.kernel->info().scratch_bytes);
  current.steps[place] = std::move(step);
}

std::vector<Step> Lowering::resolve(Draft& draft, Space space, std::size_t& bytes) {
  bytes = pack(draft.blocks);
  const auto place = [&](const DraftOperand& operand) {
    if (const auto* fixed = std::get_if<Operand>(&operand)) return *fixed;
    const auto& block = std::get<BlockOperand>(operand);
    return Operand{space, 0, draft.blocks[block.block].offset + block.offset};
  };
  std::vector<Step> steps;
  for (DraftStep& step : draft.steps) {
    Step resolved{.kernel = step.kernel, .inputs = {}, .outputs = {}, .info = std::move(step.info)};
    resolved.join = dynamic_cast<const Join*>(step.kernel.get());
    for (const DraftOperand& operand : step.inputs) resolved.inputs.push_back(place(operand));
    for (const DraftOperand& operand : step.outputs) resolved.outputs.push_back(place(operand));
    steps.push_back(std::move(resolved));
  }
  return steps;
}

}  // namespace superstep::target::cpu
