#include "superstep/target/cpu/run/gradient_sums.h"

#include <algorithm>
#include <cstring>

namespace superstep::target::cpu {

GradientSums::GradientSums(const Plan& plan, std::size_t groups, std::size_t buffers,
                           std::optional<std::span<float>> shared)
    : plan_(plan), at_once_(!shared), add_(kernels::column_sum(ElementType::f32)), buffer_of_(groups, 0) {
  halves_[0].end = halves_[1].begin = std::max<std::size_t>(1, groups / 2);
  halves_[1].end = groups;
  if (shared) buffers_.emplace_back(*shared);
  while (buffers_.size() < buffers) buffers_.emplace_back(plan.accumulator_bytes);
}

void GradientSums::begin_run() {
  free_.clear();
  for (std::size_t buffer = buffers_.size(); buffer-- > 1;) free_.push_back(buffer);
  for (Half& half : halves_) half.summed.store(half.begin, std::memory_order_relaxed);
}

std::byte* GradientSums::begin(std::size_t group) {
  if (group > 0) {
    const std::lock_guard lock(free_mutex_);
    buffer_of_[group] = free_.back();
    free_.pop_back();
  }
  std::byte* const memory = buffers_[buffer_of_[group]].data();
  for (const ByteRange& range : plan_.added_to) std::memset(memory + range.begin, 0, range.count);
  return memory;
}

void GradientSums::complete(std::size_t group) {
  Half& half = half_of(group);
  if (!at_once_ || half.summed.load(std::memory_order_acquire) != group) return;
  if (group != half.begin) {
    for (const ByteRange& range : plan_.added_to)
      add(group, half.begin, {range.begin / sizeof(float), range.count / sizeof(float)});
    const std::lock_guard lock(free_mutex_);
    free_.push_back(buffer_of_[group]);
  }
  half.summed.store(group + 1, std::memory_order_release);
}

void GradientSums::finish(ValueRange range, float scale) {
  for (const Half& half : halves_) {
    const std::size_t summed = half.summed.load(std::memory_order_acquire);
    for (std::size_t group = std::max(summed, half.begin + 1); group < half.end; ++group)
      add(group, half.begin, range);
  }
  if (halves_[1].begin < halves_[1].end) add(halves_[1].begin, 0, range);
  float* const total = values(0) + range.begin;
  for (std::size_t i = 0; i < range.count; ++i) total[i] *= scale;
}

void GradientSums::add(std::size_t group, std::size_t to, ValueRange range) {
  add_(values(group) + range.begin, 0, 1, static_cast<std::int64_t>(range.count), values(to) + range.begin);
}

void GradientSums::release() {
  for (Memory& buffer : buffers_) buffer.release();
}

}  // namespace superstep::target::cpu
