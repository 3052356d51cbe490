#include "superstep/target/cpu/run/initial_values.h"

#include <algorithm>
#include <map>

namespace superstep::target::cpu {
namespace {

// Smaller ones share their pages with others (chosen: several pages of any system).
constexpr std::size_t least_bytes = 64 << 10;

// What a thread makes at a time, at least: as much as its core's cache holds beside the work (chosen).
constexpr std::size_t share_of_a_thread = 1 << 20;

// What steps touch in shared memory: offset -> the first and the last of them.
struct Steps {
  int first, last;
};
using Touched = std::map<std::size_t, Steps>;

void note(const std::vector<Operand>& operands, std::size_t step, Touched& touched) {
  const int number = static_cast<int>(step);
  for (const Operand& operand : operands)
    if (operand.space == Space::shared)
      touched.emplace(operand.offset, Steps{number, number}).first->second.last = number;
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

InitialValues::InitialValues(Plan& plan, int threads) : all_(std::move(plan.initial)) {
  plan.initial.clear();
  if (plan.trains) return;
  const Touched readers = touched_by(plan.prepare, true, false), made = touched_by(plan.prepare, false, true);
  const Touched body = touched_by(plan.body, true, true), update = touched_by(plan.update, true, true);
  for (const auto& [offset, elements] : all_) {
    const std::size_t end = offset + elements.byte_count();
    if (elements.byte_count() < least_bytes || elements.is_zeros_unmade() || !is_state(plan, offset))
      continue;
    if (is_touched(body, offset, end) || is_touched(update, offset, end) || is_touched(made, offset, end) ||
        !is_touched(readers, offset, end))
      continue;
    Value value{
        .offset = offset, .elements = elements, .first = static_cast<int>(plan.prepare.size()), .last = 0};
    for (auto reader = readers.lower_bound(offset); reader != readers.end() && reader->first < end;
         ++reader) {
      value.first = std::min(value.first, reader->second.first);
      value.last = std::max(value.last, reader->second.last);
    }
    passing_.push_back(std::move(value));
  }
  choose_places(share_of_a_thread * static_cast<std::size_t>(threads - 1));
  std::ranges::sort(passing_, {}, &Value::offset);
}

// In the order in which they are read, so many bytes or a little more are made together.
void InitialValues::choose_places(std::size_t together) {
  std::ranges::stable_sort(passing_, {}, &Value::first);
  std::vector<Block> blocks;
  int first = 0;
  std::size_t bytes = 0;
  for (Value& value : passing_) {
    if (bytes == 0 || bytes >= together) first = value.first, bytes = 0;
    value.first = first;
    bytes += value.elements.byte_count();
    blocks.push_back({.bytes = value.elements.byte_count(), .first = value.first, .last = value.last});
  }
  passing_bytes_ = pack(blocks);
  for (std::size_t i = 0; i < passing_.size(); ++i) passing_[i].place = blocks[i].offset;
}

void InitialValues::fill(ThreadPool& pool, const Memory& shared) {
  pool.parallel_for(static_cast<std::int64_t>(all_.size()), [&](std::int64_t i, int) {
    const auto& [offset, elements] = all_[static_cast<std::size_t>(i)];
    if (!elements.is_zeros_unmade() && !passing(offset)) elements.copy_to(shared.data() + offset);
  });
  all_.clear();
}

void InitialValues::fill_passing(std::size_t step, ThreadPool& pool, const Memory& passing) const {
  std::vector<const Value*> due;
  for (const Value& value : passing_)
    if (value.first == static_cast<int>(step)) due.push_back(&value);
  pool.parallel_for(static_cast<std::int64_t>(due.size()), [&](std::int64_t i, int) {
    const Value& value = *due[static_cast<std::size_t>(i)];
    value.elements.copy_to(passing.data() + value.place);
  });
}

std::byte* InitialValues::place_of(std::size_t offset, const Memory& passing) const {
  const auto behind = std::ranges::upper_bound(passing_, offset, {}, &Value::offset);
  if (behind == passing_.begin()) return nullptr;
  const Value& value = *std::prev(behind);
  const std::size_t within = offset - value.offset;
  return within < value.elements.byte_count() ? passing.data() + value.place + within : nullptr;
}

const Tensor* InitialValues::passing(std::size_t offset) const {
  const auto found = std::ranges::find(passing_, offset, &Value::offset);
  return found != passing_.end() ? &found->elements : nullptr;
}

void InitialValues::keep(std::size_t offset, const Memory& shared) {
  const auto found = std::ranges::find(passing_, offset, &Value::offset);
  if (found == passing_.end()) return;
  found->elements.copy_to(shared.data() + offset);
  passing_.erase(found);
}

}  // namespace superstep::target::cpu
