#include "superstep/bsp/graph/view.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "superstep/bsp/graph/view_align.h"

namespace superstep::bsp {
namespace {

std::int64_t last_place(const Region& region) {
  std::int64_t last = region.view_offset;
  for (const Loop& loop : region.loops) last += (loop.extent - 1) * loop.view_stride;
  return last;
}

std::int64_t place_count(const Region& region) {
  std::int64_t count = 1;
  for (const Loop& loop : region.loops) count *= loop.extent;
  return count;
}

// One line of places in order: a single element, or one loop of view stride 1.
bool is_line(const Region& region) {
  return region.loops.empty() || (region.loops.size() == 1 && region.loops[0].view_stride == 1);
}

// The places [begin, end) of a line that has all of them.
Region part_of_line(const Region& line, std::int64_t begin, std::int64_t end) {
  Region part{line.variable, begin, line.element_offset, {}};
  const std::int64_t stride = line.loops.empty() ? 0 : line.loops[0].element_stride;
  part.element_offset += (begin - line.view_offset) * stride;
  if (end - begin > 1) part.loops.push_back({end - begin, 1, stride});
  return part;
}

// `next` goes on where the line `region` ends: takes it in.
bool extend(Region& region, const Region& next) {
  if (region.variable != next.variable || !is_line(region) || !is_line(next)) return false;
  const std::int64_t a = place_count(region), b = place_count(next);
  if (region.view_offset + a != next.view_offset) return false;
  const std::int64_t stride =
      a > 1 ? region.loops[0].element_stride : next.element_offset - region.element_offset;
  if (b > 1 && next.loops[0].element_stride != stride) return false;
  if (region.element_offset + a * stride != next.element_offset) return false;
  region.loops.assign(1, {a + b, 1, stride});
  return true;
}

Shape with_extent(const Shape& shape, int axis, std::int64_t extent) {
  std::vector<std::int64_t> extents = shape.extents();
  extents[static_cast<std::size_t>(axis)] = extent;
  return Shape(std::move(extents));
}

// Calls f for every combination of the counters of `loops`, with both offsets.
template <class F>
void for_each_iteration(std::span<const Loop> loops, std::int64_t place, std::int64_t element, F&& f) {
  if (loops.empty()) return f(place, element);
  for (std::int64_t i = 0; i < loops[0].extent; ++i)
    for_each_iteration(loops.subspan(1), place + i * loops[0].view_stride,
                       element + i * loops[0].element_stride, f);
}

// The regions of an array of shape `shape`, each changed, as regions of one of shape `made`.
template <class Change>
std::vector<Region> regions_changed(const std::vector<Region>& regions, const Shape& shape, const Shape& made,
                                    Change&& change) {
  std::vector<AlignedRegion> aligned;
  for (const Region& region : regions) align(region, shape, aligned);
  std::vector<Region> result;
  for (AlignedRegion& region : aligned) {
    change(region);
    result.push_back(place(region, made));
  }
  return result;
}

}  // namespace

View View::whole(VariableId variable, std::int64_t count) {
  View view;
  view.count_ = count;
  if (count == 0) return view;
  Region region{variable, 0, 0, {}};
  if (count > 1) region.loops.push_back({count, 1, 1});
  view.regions_.push_back(std::move(region));
  return view;
}

void View::finish() {
  const auto before = [](const Region& a, const Region& b) { return a.view_offset < b.view_offset; };
  if (!std::is_sorted(regions_.begin(), regions_.end(), before))
    std::sort(regions_.begin(), regions_.end(), before);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    if (kept > 0 && extend(regions_[kept - 1], regions_[i])) continue;
    if (kept != i) regions_[kept] = std::move(regions_[i]);
    ++kept;
  }
  regions_.resize(kept);
  in_order_ = true;
  for (std::size_t i = 0; i + 1 < kept; ++i)
    in_order_ = in_order_ && last_place(regions_[i]) < regions_[i + 1].view_offset;
  lines_ = in_order_ && std::ranges::all_of(regions_, is_line);
}

bool View::is_loop_over(std::int64_t block, std::int64_t extent) const {
  if (regions_.size() != 1 || regions_[0].view_offset != 0 || regions_[0].loops.empty()) return false;
  return regions_[0].loops[0].view_stride == block && regions_[0].loops[0].extent == extent;
}

// Of lines: the places [begin, end), counted from there.
void View::cut(std::span<const Region> regions, std::int64_t begin, std::int64_t end) {
  for (const Region& region : regions) {
    const std::int64_t from = std::max(begin, region.view_offset);
    const std::int64_t to = std::min(end, last_place(region) + 1);
    regions_.push_back(part_of_line(region, from, to));
    regions_.back().view_offset -= begin;
  }
}

View View::slice(const Shape& shape, int axis, std::int64_t begin, std::int64_t end) const {
  const Shape sliced = with_extent(shape, axis, end - begin);
  View view;
  view.count_ = sliced.element_count();
  if (view.count_ == 0) return view;
  // Along the outermost dimension a slice is a range of places: most regions need not be looked at.
  std::int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  std::size_t first = 0, stop = regions_.size();
  if (outer == 1 && is_loop_over(count_ / shape[axis], shape[axis])) {  // fewer of its turns
    Region part = regions_[0];
    Loop& turns = part.loops[0];
    part.element_offset += begin * turns.element_stride;
    turns.extent = end - begin;
    if (turns.extent == 1) part.loops.erase(part.loops.begin());
    view.lines_ = is_line(part);
    view.regions_.push_back(std::move(part));
    return view;
  }
  if (outer == 1 && in_order_) {
    const std::int64_t block = count_ / shape[axis];
    first = static_cast<std::size_t>(
        std::partition_point(regions_.begin(), regions_.end(),
                             [&](const Region& region) { return last_place(region) < begin * block; }) -
        regions_.begin());
    stop = static_cast<std::size_t>(
        std::partition_point(regions_.begin() + static_cast<std::ptrdiff_t>(first), regions_.end(),
                             [&](const Region& region) { return region.view_offset < end * block; }) -
        regions_.begin());
  }
  if (outer == 1 && lines_) {
    const std::int64_t block = count_ / shape[axis];
    view.cut(std::span(regions_).subspan(first, stop - first), begin * block, end * block);
    return view;
  }
  std::vector<AlignedRegion> aligned, parts;
  for (std::size_t i = first; i < stop; ++i) align(regions_[i], shape, aligned);
  for (const AlignedRegion& region : aligned) restrict_to(region, axis, begin, end, parts);
  for (AlignedRegion& part : parts) {
    part.start[static_cast<std::size_t>(axis)] -= begin;
    view.regions_.push_back(place(part, sliced));
  }
  view.finish();
  return view;
}

View View::shuffle(const Shape& shape, std::span<const int> permutation) const {
  std::vector<std::int64_t> extents;
  std::vector<int> position(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    extents.push_back(shape[permutation[i]]);
    position[static_cast<std::size_t>(permutation[i])] = static_cast<int>(i);
  }
  View view;
  view.count_ = count_;
  view.regions_ = regions_changed(regions_, shape, Shape(std::move(extents)), [&](AlignedRegion& region) {
    const std::vector<std::int64_t> start = region.start;
    for (std::size_t i = 0; i < permutation.size(); ++i)
      region.start[i] = start[static_cast<std::size_t>(permutation[i])];
    for (AlignedLoop& loop : region.loops) loop.axis = position[static_cast<std::size_t>(loop.axis)];
  });
  view.finish();
  return view;
}

View View::broadcast(const Shape& shape, int axis, std::int64_t times) const {
  const std::int64_t extent = shape[axis];
  const Shape wide = with_extent(shape, axis, extent * times);
  View view;
  view.count_ = wide.element_count();
  if (view.count_ == 0) return view;
  view.regions_ = regions_changed(regions_, shape, wide, [&](AlignedRegion& region) {
    if (times > 1) region.loops.push_back({times, axis, extent, 0});
  });
  view.finish();
  return view;
}

View View::repeat(const Shape& shape, int axis, std::int64_t times) const {
  const Shape wide = with_extent(shape, axis, shape[axis] * times);
  View view;
  view.count_ = wide.element_count();
  if (view.count_ == 0) return view;
  view.regions_ = regions_changed(regions_, shape, wide, [&](AlignedRegion& region) {
    region.start[static_cast<std::size_t>(axis)] *= times;
    for (AlignedLoop& loop : region.loops)
      if (loop.axis == axis) loop.step *= times;
    if (times > 1) region.loops.push_back({times, axis, 1, 0});
  });
  view.finish();
  return view;
}

View View::sub_sample(const Shape& shape, int axis, std::int64_t step) const {
  // Whole steps, then the first of each: [n] as [n / step, step] without its tail, and the rest apart.
  const std::int64_t extent = shape[axis], whole = extent / step * step;
  std::vector<std::int64_t> split = shape.extents();
  split[static_cast<std::size_t>(axis)] = extent / step;
  split.insert(split.begin() + axis + 1, step);
  const View body = whole > 0 ? slice(shape, axis, 0, whole).slice(Shape(split), axis + 1, 0, 1) : View();
  if (whole == extent) return body;
  const View tail = slice(shape, axis, whole, whole + 1);
  if (whole == 0) return tail;
  const View* parts[] = {&body, &tail};
  const Shape shapes[] = {with_extent(shape, axis, extent / step), with_extent(shape, axis, 1)};
  return concat(parts, shapes, axis);
}

View View::reverse(const Shape& shape, int axis) const {
  View view;
  view.count_ = count_;
  view.regions_ = regions_changed(regions_, shape, shape, [&](AlignedRegion& region) {
    const std::int64_t last = region.last(axis);
    region.start[static_cast<std::size_t>(axis)] = shape[axis] - 1 - last;
    for (AlignedLoop& loop : region.loops)
      if (loop.axis == axis) {
        region.element_offset += (loop.extent - 1) * loop.element_stride;
        loop.element_stride = -loop.element_stride;
      }
  });
  view.finish();
  return view;
}

View View::concat(std::span<const View* const> parts, std::span<const Shape> shapes, int axis) {
  std::int64_t extent = 0;
  for (const Shape& shape : shapes) extent += shape[axis];
  const Shape joined = with_extent(shapes[0], axis, extent);
  std::int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= joined[i];
  View view;
  view.count_ = joined.element_count();
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (outer == 1) {  // places of the parts follow one another
      for (Region region : parts[i]->regions_) {
        region.view_offset += begin * (extent == 0 ? 0 : view.count_ / extent);
        view.regions_.push_back(std::move(region));
      }
    } else {
      std::vector<AlignedRegion> aligned;
      for (const Region& region : parts[i]->regions_) align(region, shapes[i], aligned);
      for (AlignedRegion& region : aligned) {
        region.start[static_cast<std::size_t>(axis)] += begin;
        view.regions_.push_back(place(region, joined));
      }
    }
    begin += shapes[i][axis];
  }
  view.finish();
  return view;
}

std::vector<Run> View::runs() const {
  std::vector<Run> runs;
  for (const Region& region : regions_) {
    std::span<const Loop> loops = region.loops;
    std::int64_t length = 1, stride = 1;
    if (!loops.empty() && loops.back().view_stride == 1) {
      length = loops.back().extent;
      stride = loops.back().element_stride;
      loops = loops.first(loops.size() - 1);
    }
    for_each_iteration(loops, region.view_offset, region.element_offset,
                       [&](std::int64_t place, std::int64_t element) {
                         runs.push_back({place, length, region.variable, element, stride});
                       });
  }
  const auto before = [](const Run& a, const Run& b) { return a.place < b.place; };
  if (!std::is_sorted(runs.begin(), runs.end(), before)) std::sort(runs.begin(), runs.end(), before);
  return runs;
}

void View::for_each_interval(FunctionRef<void(VariableId, std::int64_t, std::int64_t)> f) const {
  for (const Region& region : regions_) {
    std::vector<Loop> loops = region.loops;
    std::int64_t first = region.element_offset;
    for (Loop& loop : loops)
      if (loop.element_stride < 0) {  // the same elements, counted upwards
        first += (loop.extent - 1) * loop.element_stride;
        loop.element_stride = -loop.element_stride;
      }
    std::sort(loops.begin(), loops.end(),
              [](const Loop& a, const Loop& b) { return a.element_stride > b.element_stride; });
    std::int64_t length = 1, repeats = 1;
    while (!loops.empty() && loops.back().element_stride <= length) {
      const Loop& loop = loops.back();
      if (loop.element_stride == length)
        length *= loop.extent;
      else if (loop.element_stride == 0)
        repeats *= loop.extent;
      else
        break;
      loops.pop_back();
    }
    for (std::int64_t again = 0; again < repeats; ++again)
      for_each_iteration(loops, 0, first, [&](std::int64_t, std::int64_t element) {
        f(region.variable, element, element + length);
      });
  }
}

bool View::contains_aliases() const {
  // Surely not: every region steps over what it has visited, and regions keep to ranges of their own.
  struct Range {
    VariableId variable;
    std::int64_t low, high;
  };
  std::vector<Range> ranges;
  bool sure = true;
  for (const Region& region : regions_) {
    std::vector<Loop> loops = region.loops;
    std::sort(loops.begin(), loops.end(), [](const Loop& a, const Loop& b) {
      return std::abs(a.element_stride) < std::abs(b.element_stride);
    });
    std::int64_t low = region.element_offset, high = low;
    for (const Loop& loop : loops) {
      if (loop.element_stride == 0) return true;
      if (std::abs(loop.element_stride) <= high - low) sure = false;
      const std::int64_t reach = (loop.extent - 1) * loop.element_stride;
      (reach < 0 ? low : high) += reach;
    }
    ranges.push_back({region.variable, low, high});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.variable != b.variable ? a.variable < b.variable : a.low < b.low;
  });
  for (std::size_t i = 0; i + 1 < ranges.size(); ++i)
    if (ranges[i].variable == ranges[i + 1].variable && ranges[i + 1].low <= ranges[i].high) sure = false;
  if (sure) return false;
  // Count: a bit an element.
  std::map<VariableId, std::vector<bool>> seen;
  bool twice = false;
  for_each_interval([&](VariableId variable, std::int64_t begin, std::int64_t end) {
    std::vector<bool>& bits = seen[variable];
    if (static_cast<std::int64_t>(bits.size()) < end) bits.resize(static_cast<std::size_t>(end));
    for (std::int64_t i = begin; i < end; ++i) {
      twice = twice || bits[static_cast<std::size_t>(i)];
      bits[static_cast<std::size_t>(i)] = true;
    }
  });
  return twice;
}

void View::rename(const std::map<VariableId, VariableId>& table) {
  for (Region& region : regions_) region.variable = table.at(region.variable);
}

bool View::is_contiguous() const {
  if (count_ == 0) return true;
  if (regions_.size() != 1) return false;
  const std::vector<Loop>& loops = regions_[0].loops;
  return loops.empty() || (loops.size() == 1 && loops[0] == Loop{count_, 1, 1});
}

}  // namespace superstep::bsp
