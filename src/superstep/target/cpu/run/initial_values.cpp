#include "superstep/target/cpu/run/initial_values.h"

#include <algorithm>
#include <map>

namespace superstep::target::cpu {
namespace {

// Smaller ones share their pages with others (chosen: several pages of any system).
constexpr std::size_t least_bytes = 64 << 10;

// What steps touch in shared memory: offset -> the last of them.
using Touched = std::map<std::size_t, std::size_t>;

void note(const std::vector<Operand>& operands, std::size_t step, Touched& touched) {
  for (const Operand& operand : operands)
    if (operand.space == Space::shared) touched[operand.offset] = step;
}

Touched touched_by(const std::vector<Step>& steps, bool reads, bool writes) {
  Touched touched;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (reads) note(steps[i].inputs, i, touched);
    if (writes) note(steps[i].outputs, i, touched);
  }
  return touched;
}

bool is_touched(const Touched& touched, std::size_t begin, std::size_t end) {
  const auto found = touched.lower_bound(begin);
  return found != touched.end() && found->first < end;
}

// What states begin with is a recipe (base/tensor.h) that takes up no room. Folded constants are memory: to
// keep that would be no gain.
bool is_state(const Plan& plan, std::size_t offset) {
  return std::ranges::find(plan.states, offset, &StateSlot::offset) != plan.states.end();
}

}  // namespace

InitialValues::InitialValues(Plan& plan) : all_(std::move(plan.initial)) {
  plan.initial.clear();
  if (plan.trains) return;
  const Touched readers = touched_by(plan.prepare, true, false), made = touched_by(plan.prepare, false, true);
  const Touched body = touched_by(plan.body, true, true), update = touched_by(plan.update, true, true);
  for (const auto& [offset, elements] : all_) {
    const std::size_t end = offset + elements.byte_count();
    if (elements.byte_count() < least_bytes || elements.is_zeros_unmade() || !is_state(plan, offset))
      continue;
    if (is_touched(body, offset, end) || is_touched(update, offset, end) || is_touched(made, offset, end))
      continue;
    std::size_t last = plan.prepare.size();
    for (auto reader = readers.lower_bound(offset); reader != readers.end() && reader->first < end; ++reader)
      last = last == plan.prepare.size() ? reader->second : std::max(last, reader->second);
    if (last < plan.prepare.size()) passing_.push_back({offset, elements, last});
  }
}

void InitialValues::fill(ThreadPool& pool, const Memory& shared) {
  pool.parallel_for(static_cast<std::int64_t>(all_.size()), [&](std::int64_t i, int) {
    const auto& [offset, elements] = all_[static_cast<std::size_t>(i)];
    if (!elements.is_zeros_unmade()) elements.copy_to(shared.data() + offset);
  });
  all_.clear();
}

void InitialValues::refill(const Memory& shared) {
  for (Value& value : passing_)
    if (value.is_released) {
      value.elements.copy_to(shared.data() + value.offset);
      value.is_released = false;
    }
}

void InitialValues::release_behind(std::size_t step, Memory& shared) {
  for (Value& value : passing_)
    if (value.last_reader == step && !value.is_released) {
      shared.release_part(value.offset, value.elements.byte_count());
      value.is_released = true;
    }
}

const Tensor* InitialValues::released(std::size_t offset) const {
  const auto found = std::ranges::find(passing_, offset, &Value::offset);
  return found != passing_.end() && found->is_released ? &found->elements : nullptr;
}

void InitialValues::keep(std::size_t offset, const Memory& shared) {
  const auto found = std::ranges::find(passing_, offset, &Value::offset);
  if (found == passing_.end()) return;
  if (found->is_released) found->elements.copy_to(shared.data() + offset);
  passing_.erase(found);
}

}  // namespace superstep::target::cpu
