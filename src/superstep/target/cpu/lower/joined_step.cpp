#include "superstep/target/cpu/lower/joined_step.h"

#include <algorithm>

#include "superstep/target/cpu/kernels/convolution/planar_gradient.h"
#include "superstep/target/cpu/kernels/core/bands.h"
#include "superstep/target/cpu/kernels/core/caches.h"

namespace superstep::target::cpu {
namespace {

using Members = std::vector<std::shared_ptr<const kernels::RangeKernel>>;

bool is_same(const DraftOperand& a, const DraftOperand& b) {
  if (a.index() != b.index()) return false;
  if (const auto* block = std::get_if<BlockOperand>(&a)) {
    const auto& other = std::get<BlockOperand>(b);
    return block->block == other.block && block->offset == other.offset;
  }
  const auto &one = std::get<Operand>(a), &other = std::get<Operand>(b);
  return one.space == other.space && one.port == other.port && one.offset == other.offset;
}

// Whether they may share memory.
bool may_touch(const DraftOperand& a, const DraftOperand& b) {
  if (a.index() != b.index()) return false;
  if (const auto* block = std::get_if<BlockOperand>(&a))
    return block->block == std::get<BlockOperand>(b).block;
  const auto &one = std::get<Operand>(a), &other = std::get<Operand>(b);
  return one.space == other.space && one.port == other.port;
}

bool touches_any(const DraftOperand& operand, const std::vector<DraftOperand>& others) {
  return std::ranges::any_of(others, [&](const DraftOperand& other) { return may_touch(operand, other); });
}

void append(std::vector<DraftOperand>& to, std::span<const DraftOperand> more) {
  to.insert(to.end(), more.begin(), more.end());
}

// The step that does what both say, by one kernel; its operands are still those of `last`.
DraftStep with_kernel(const DraftStep& last, const DraftStep& step, kernels::KernelPointer kernel) {
  DraftStep both = last;
  const kernels::KernelInfo& info = kernel->info();
  both.info.op += "; " + step.info.op;
  both.info.kernel = info.name;
  both.info.flops = info.flops;
  both.info.bytes = info.bytes;
  both.info.refusals.insert(both.info.refusals.end(), step.info.refusals.begin(), step.info.refusals.end());
  both.kernel = std::move(kernel);
  return both;
}

// Whether a step may be done before `other`, which stands in front of it.
bool may_go_before(const DraftStep& other, const DraftStep& step) {
  const auto apart = [](const std::vector<DraftOperand>& operands, const std::vector<DraftOperand>& others) {
    return std::ranges::none_of(operands, [&](const auto& operand) { return touches_any(operand, others); });
  };
  return apart(step.inputs, other.outputs) && apart(step.outputs, other.outputs) &&
         apart(step.outputs, other.inputs);
}

// The same of two steps that make sums of gradients, each its own, side by side in one memory.
bool sums_may_go_before(const DraftStep& other, const DraftStep& step) {
  return std::ranges::none_of(step.inputs, [&](const auto& x) { return touches_any(x, other.outputs); }) &&
         std::ranges::none_of(step.outputs, [&](const auto& sum) {
           return touches_any(sum, other.inputs) ||
                  std::ranges::any_of(other.outputs, [&](const auto& own) { return is_same(sum, own); });
         });
}

kernels::KernelPointer over_one_image(const DraftStep& first, const DraftStep& step) {
  if (!is_same(first.inputs[0], step.inputs[0])) return nullptr;
  if (const auto convolution = kernels::joined(*first.kernel, *step.kernel)) {
    auto kernel = kernels::prepare(*convolution);
    return kernel && may_go_before(first, step) ? std::move(*kernel) : nullptr;
  }
  if (const auto gradient = kernels::joined_gradients(*first.kernel, *step.kernel)) {
    auto kernel = kernels::prepare(*gradient);
    return kernel && sums_may_go_before(first, step) ? std::move(*kernel) : nullptr;
  }
  return nullptr;
}

std::optional<DraftStep> joined_over_image(const DraftStep& first, const DraftStep& step) {
  if (first.inputs.empty() || step.inputs.empty()) return std::nullopt;
  auto kernel = over_one_image(first, step);
  if (!kernel) return std::nullopt;
  DraftStep both = with_kernel(first, step, std::move(kernel));
  append(both.inputs, std::span(step.inputs).subspan(1));
  append(both.outputs, step.outputs);
  return both;
}

// Whether an earlier member makes the operand unit by unit.
bool is_made_by_units(const DraftStep& last, const Members& members, const DraftOperand& operand) {
  std::size_t slot = 0;
  for (const auto& member : members)
    for (std::size_t output = 0; output < member->info().outputs; ++output, ++slot)
      if (is_same(last.outputs[slot], operand)) return member->writes_units(output);
  return false;
}

// Whether every piece of the step needs nothing but the same piece of what was made before, and spoils
// nothing that a later piece needs.
bool goes_along(const DraftStep& last, const Members& members, const DraftStep& step,
                const kernels::RangeKernel& kernel) {
  if (kernel.units() < 1 || kernel.units() % members.front()->units() != 0) return false;
  bool follows = false;
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    if (!touches_any(step.inputs[i], last.outputs)) continue;
    if (!kernel.reads_units(i) || !is_made_by_units(last, members, step.inputs[i])) return false;
    follows = true;
  }
  return follows && std::ranges::none_of(step.outputs, [&](const DraftOperand& output) {
           return touches_any(output, last.outputs) || touches_any(output, last.inputs);
         });
}

std::optional<DraftStep> joined_in_bands(const DraftStep& last, const DraftStep& step) {
  Members members = kernels::members_of(last.kernel);
  const auto kernel = std::dynamic_pointer_cast<const kernels::RangeKernel>(step.kernel);
  if (members.empty() || !kernel || !kernels::is_planar(*members.front())) return std::nullopt;
  // What stays in the cache anyway gains nothing.
  if (last.info.bytes + step.info.bytes < static_cast<double>(kernels::second_level_cache()) / 2)
    return std::nullopt;
  if (!goes_along(last, members, step, *kernel)) return std::nullopt;
  members.push_back(kernel);
  auto banded = kernels::prepare(kernels::Bands{std::move(members)});
  if (!banded) return std::nullopt;
  DraftStep both = with_kernel(last, step, std::move(*banded));
  append(both.inputs, step.inputs);
  append(both.outputs, step.outputs);
  return both;
}

}  // namespace

std::optional<JoinedStep> joined_step(std::span<const DraftStep> steps, const DraftStep& step) {
  const bool over_image = kernels::is_planar(*step.kernel) || kernels::is_planar_gradient(*step.kernel);
  for (std::size_t i = steps.size(); i-- > 0;) {
    if (auto both = joined_over_image(steps[i], step)) return JoinedStep{i, std::move(*both)};
    if (!over_image || !may_go_before(steps[i], step)) break;
  }
  if (steps.empty()) return std::nullopt;
  auto both = joined_in_bands(steps.back(), step);
  if (!both) return std::nullopt;
  return JoinedStep{steps.size() - 1, std::move(*both)};
}

}  // namespace superstep::target::cpu
