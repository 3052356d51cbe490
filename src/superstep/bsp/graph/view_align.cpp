#include "superstep/bsp/graph/view_align.h"

#include <algorithm>

namespace superstep::bsp {
namespace {

// Row-major strides, and which dimension a stride of places belongs to.
class Places {
 public:
  explicit Places(const Shape& shape) : shape_(shape), strides_(shape.row_major_strides()) {}

  // The outermost dimension above one whose stride is at most `stride`; -1 when there is none.
  int axis_of(std::int64_t stride) const {
    for (int axis = 0; axis < shape_.rank(); ++axis)
      if (shape_[axis] > 1 && strides_[static_cast<std::size_t>(axis)] <= stride) return axis;
    return -1;
  }
  std::int64_t stride(int axis) const { return strides_[static_cast<std::size_t>(axis)]; }

  std::vector<std::int64_t> coordinates(std::int64_t place) const {
    std::vector<std::int64_t> result(strides_.size());
    for (std::size_t i = 0; i < strides_.size(); ++i) {
      result[i] = place / strides_[i];
      place %= strides_[i];
    }
    return result;
  }

 private:
  const Shape& shape_;
  std::vector<std::int64_t> strides_;
};

// `count` iterations of loop `which`, from `first` on.
Region iterations(const Region& region, std::size_t which, std::int64_t first, std::int64_t count) {
  Region part = region;
  Loop& loop = part.loops[which];
  part.view_offset += first * loop.view_stride;
  part.element_offset += first * loop.element_stride;
  loop.extent = count;
  if (count == 1) part.loops.erase(part.loops.begin() + static_cast<std::ptrdiff_t>(which));
  return part;
}

class Aligner {
 public:
  Aligner(const Shape& shape, std::vector<AlignedRegion>& out) : shape_(shape), places_(shape), out_(out) {}

  void run(const Region& region) {
    work_.push_back(region);
    while (!work_.empty()) {
      const Region next = std::move(work_.back());
      work_.pop_back();
      step(next);
    }
  }

 private:
  void step(const Region& region) {
    AlignedRegion aligned{
        region.variable, region.element_offset, places_.coordinates(region.view_offset), {}};
    for (std::size_t i = 0; i < region.loops.size(); ++i) {
      const Loop& loop = region.loops[i];
      const int axis = places_.axis_of(loop.view_stride);
      if (loop.view_stride % places_.stride(axis) != 0) return unroll(region, i);
      aligned.loops.push_back(
          {loop.extent, axis, loop.view_stride / places_.stride(axis), loop.element_stride});
    }
    for (int axis = shape_.rank() - 1; axis >= 0; --axis)
      if (aligned.last(axis) >= shape_[axis]) return split(region, aligned, axis);
    out_.push_back(std::move(aligned));
  }

  void unroll(const Region& region, std::size_t which) {
    for (std::int64_t i = 0; i < region.loops[which].extent; ++i)
      work_.push_back(iterations(region, which, i, 1));
  }

  // A loop carries out of `axis`: cut its outermost loop where the first carry comes.
  void split(const Region& region, const AlignedRegion& aligned, int axis) {
    std::size_t which = aligned.loops.size();
    for (std::size_t i = 0; i < aligned.loops.size(); ++i)
      if (aligned.loops[i].axis == axis &&
          (which == aligned.loops.size() || aligned.loops[i].step > aligned.loops[which].step))
        which = i;
    const AlignedLoop& loop = aligned.loops[which];
    const std::int64_t start = aligned.start[static_cast<std::size_t>(axis)];
    const std::int64_t inner = aligned.last(axis) - start - (loop.extent - 1) * loop.step;
    const std::int64_t room = shape_[axis] - 1 - start - inner;
    const std::int64_t fitting = room < 0 ? 1 : std::min(loop.extent, room / loop.step + 1);
    const bool rows = shape_[axis] % loop.step == 0 && start + inner < loop.step && room >= 0;
    if (rows && fitting < loop.extent) return fold(region, which, fitting);
    work_.push_back(iterations(region, which, 0, fitting));
    if (fitting < loop.extent) work_.push_back(iterations(region, which, fitting, loop.extent - fitting));
  }

  // The loop begins at the foot of a row: whole rows become a loop of their own.
  void fold(const Region& region, std::size_t which, std::int64_t row) {
    const Loop loop = region.loops[which];
    const std::int64_t rows = loop.extent / row, rest = loop.extent % row;
    if (rest > 0) work_.push_back(iterations(region, which, rows * row, rest));
    Region body = region;
    body.loops[which].extent = row;
    if (rows > 1)
      body.loops.insert(body.loops.begin() + static_cast<std::ptrdiff_t>(which),
                        {rows, row * loop.view_stride, row * loop.element_stride});
    std::erase_if(body.loops, [](const Loop& one) { return one.extent == 1; });
    work_.push_back(std::move(body));
  }

  const Shape& shape_;
  Places places_;
  std::vector<AlignedRegion>& out_;
  std::vector<Region> work_;
};

AlignedRegion iterations(const AlignedRegion& region, std::size_t which, std::int64_t first,
                         std::int64_t count) {
  AlignedRegion part = region;
  AlignedLoop& loop = part.loops[which];
  part.start[static_cast<std::size_t>(loop.axis)] += first * loop.step;
  part.element_offset += first * loop.element_stride;
  loop.extent = count;
  if (count == 1) part.loops.erase(part.loops.begin() + static_cast<std::ptrdiff_t>(which));
  return part;
}

}  // namespace

std::int64_t AlignedRegion::last(int axis) const {
  std::int64_t last = start[static_cast<std::size_t>(axis)];
  for (const AlignedLoop& loop : loops)
    if (loop.axis == axis) last += (loop.extent - 1) * loop.step;
  return last;
}

void align(const Region& region, const Shape& shape, std::vector<AlignedRegion>& out) {
  Aligner(shape, out).run(region);
}

Region place(const AlignedRegion& region, const Shape& shape) {
  const std::vector<std::int64_t> strides = shape.row_major_strides();
  Region placed{region.variable, 0, region.element_offset, {}};
  for (std::size_t i = 0; i < strides.size(); ++i) placed.view_offset += region.start[i] * strides[i];
  for (const AlignedLoop& loop : region.loops)
    placed.loops.push_back(
        {loop.extent, loop.step * strides[static_cast<std::size_t>(loop.axis)], loop.element_stride});
  simplify(placed);
  return placed;
}

void restrict_to(const AlignedRegion& region, int axis, std::int64_t begin, std::int64_t end,
                 std::vector<AlignedRegion>& out) {
  const std::int64_t low = region.start[static_cast<std::size_t>(axis)], high = region.last(axis);
  if (high < begin || low >= end) return;
  if (low >= begin && high < end) {
    out.push_back(region);
    return;
  }
  std::size_t which = region.loops.size();
  for (std::size_t i = 0; i < region.loops.size(); ++i)
    if (region.loops[i].axis == axis &&
        (which == region.loops.size() || region.loops[i].step > region.loops[which].step))
      which = i;
  const AlignedLoop loop = region.loops[which];
  const std::int64_t inner = high - low - (loop.extent - 1) * loop.step;
  // Iterations [first, stop) lie wholly inside; those around them may in part.
  const std::int64_t first = low >= begin ? 0 : (begin - low + loop.step - 1) / loop.step;
  const std::int64_t stop =
      low + inner < end ? std::min(loop.extent, (end - 1 - low - inner) / loop.step + 1) : 0;
  const std::int64_t reaching = low + inner >= begin ? 0 : (begin - low - inner + loop.step - 1) / loop.step;
  for (std::int64_t i = reaching; i < std::min(first, loop.extent); ++i)
    restrict_to(iterations(region, which, i, 1), axis, begin, end, out);
  if (stop > first) out.push_back(iterations(region, which, first, stop - first));
  for (std::int64_t i = std::max(first, stop); i < loop.extent && low + i * loop.step < end; ++i)
    restrict_to(iterations(region, which, i, 1), axis, begin, end, out);
}

void simplify(Region& region) {
  std::vector<Loop>& loops = region.loops;
  std::erase_if(loops, [](const Loop& loop) { return loop.extent == 1; });
  std::sort(loops.begin(), loops.end(),
            [](const Loop& a, const Loop& b) { return a.view_stride > b.view_stride; });
  for (std::size_t i = 0; i + 1 < loops.size();) {
    const Loop inner = loops[i + 1];
    if (loops[i].view_stride == inner.extent * inner.view_stride &&
        loops[i].element_stride == inner.extent * inner.element_stride) {
      loops[i] = {loops[i].extent * inner.extent, inner.view_stride, inner.element_stride};
      loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      if (i > 0) --i;
    } else {
      ++i;
    }
  }
}

}  // namespace superstep::bsp
