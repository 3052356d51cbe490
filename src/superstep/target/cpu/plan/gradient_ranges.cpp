#include "superstep/target/cpu/plan/gradient_ranges.h"

#include <algorithm>

#include "superstep/target/cpu/plan/arena.h"

namespace superstep::target::cpu {
namespace {

constexpr std::size_t line_values = arena_alignment / sizeof(float);

constexpr std::ptrdiff_t never = -1;

// By slot: the last step of the body that writes it.
std::vector<std::ptrdiff_t> last_steps(const Plan& plan) {
  const std::vector<std::size_t>& slots = plan.accumulator_slots;
  std::vector<std::ptrdiff_t> last(slots.size(), never);
  for (std::size_t i = 0; i < plan.body.size(); ++i)
    for (const Operand& operand : plan.body[i].outputs)
      if (operand.space == Space::accumulator) {
        const auto after = std::ranges::upper_bound(slots, operand.offset);
        last[static_cast<std::size_t>(after - slots.begin()) - 1] = static_cast<std::ptrdiff_t>(i);
      }
  return last;
}

void append(std::vector<GradientRange>& ranges, GradientRange slot, std::size_t wanted) {
  if (!ranges.empty()) {
    GradientRange& before = ranges.back();
    const bool adjacent = before.values.begin + before.values.count == slot.values.begin;
    if (adjacent && before.values.count + slot.values.count <= wanted) {
      before.values.count += slot.values.count;
      before.last_step = std::max(before.last_step, slot.last_step);
      return;
    }
  }
  while (slot.values.count > wanted) {
    ranges.push_back({{slot.values.begin, wanted}, slot.last_step});
    slot.values.begin += wanted;
    slot.values.count -= wanted;
  }
  ranges.push_back(slot);
}

}  // namespace

std::vector<GradientRange> gradient_ranges(const Plan& plan, std::size_t wanted) {
  wanted = std::max(line_values, wanted / line_values * line_values);
  const std::vector<std::size_t>& slots = plan.accumulator_slots;
  const std::vector<std::ptrdiff_t> last = last_steps(plan);
  std::vector<GradientRange> ranges;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (last[i] == never) continue;
    const std::size_t end = i + 1 < slots.size() ? slots[i + 1] : plan.accumulator_bytes;
    append(ranges,
           {{slots[i] / sizeof(float), (end - slots[i]) / sizeof(float)}, static_cast<std::size_t>(last[i])},
           wanted);
  }
  std::ranges::stable_sort(ranges, {}, &GradientRange::last_step);
  return ranges;
}

std::vector<ByteRange> summed_ranges(const Plan& plan) {
  std::vector<GradientRange> ranges = gradient_ranges(plan, plan.accumulator_bytes + line_values);
  std::ranges::sort(ranges, {}, [](const GradientRange& range) { return range.values.begin; });
  std::vector<ByteRange> summed;
  for (const GradientRange& range : ranges) {
    const ByteRange bytes{range.values.begin * sizeof(float), range.values.count * sizeof(float)};
    if (!summed.empty() && summed.back().begin + summed.back().count == bytes.begin)
      summed.back().count += bytes.count;
    else
      summed.push_back(bytes);
  }
  return summed;
}

}  // namespace superstep::target::cpu
