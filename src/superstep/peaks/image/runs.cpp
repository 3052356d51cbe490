#include "superstep/peaks/image/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "superstep/base/error.h"
#include "superstep/peaks/image/scan.h"
#include "superstep/peaks/image/union_find.h"

namespace superstep::peaks {
namespace {

// A block of pixels, some of which are above the threshold, as runs; one that the last run ends at goes on.
void take_block(const Frame& frame, float threshold, std::int32_t row, std::int32_t begin, std::int32_t end,
                Runs& found) {
  float values[scan_block];
  const std::span<float> block(values, static_cast<std::size_t>(end - begin));
  frame.values(static_cast<std::size_t>(row) * static_cast<std::size_t>(frame.width()) +
                   static_cast<std::size_t>(begin),
               block);
  for (std::int32_t column = begin; column < end; ++column) {
    const float value = values[column - begin];
    if (!(value > threshold)) continue;  // NaN is not
    if (found.runs.empty() || found.runs.back().row != row || found.runs.back().end != column)
      found.runs.push_back({row, column, column, -1, static_cast<std::uint32_t>(found.values.size())});
    ++found.runs.back().end;
    found.values.push_back(value);
  }
}

void require_sparse(const Runs& found, std::size_t pixels, double threshold) {
  if (found.values.size() <= pixels / 4 + scan_block) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("more than a quarter of a frame is above {:.6g}: that is no threshold of spots", threshold),
      "", "give a higher --threshold, or --dark");
}

}  // namespace

void find_runs(const Frame& frame, double threshold, Runs& found) {
  found.clear();
  const RowScan scan(frame, threshold);
  std::vector<std::int32_t> hits(static_cast<std::size_t>(frame.width()) / scan_block + 1);
  const float limit = limit_of(threshold);
  for (std::int32_t row = 0; row < frame.height(); ++row) {
    const int count = scan.blocks(row, hits.data());
    for (int i = 0; i < count; ++i) {
      const std::int32_t begin = hits[static_cast<std::size_t>(i)];
      take_block(frame, limit, row, begin, std::min(begin + scan_block, frame.width()), found);
    }
    require_sparse(found, frame.correction().pixels(), threshold);
  }
}

int label_runs(std::vector<PixelRun>& runs) {
  UnionFind sets;
  sets.reset(runs.size());
  std::size_t above = 0;  // the first run of the row above that may touch
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const PixelRun& run = runs[i];
    while (above < i &&
           (runs[above].row < run.row - 1 || (runs[above].row == run.row - 1 && runs[above].end < run.begin)))
      ++above;
    for (std::size_t other = above; other < i && runs[other].row == run.row - 1; ++other) {
      if (runs[other].begin > run.end) break;
      sets.join(static_cast<std::int32_t>(other), static_cast<std::int32_t>(i));
    }
  }
  int count = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto root = static_cast<std::size_t>(sets.find(static_cast<std::int32_t>(i)));
    runs[i].label = root == i ? count++ : runs[root].label;
  }
  return count;
}

int label_at(const std::vector<PixelRun>& runs, std::int32_t row, std::int32_t column) {
  const auto behind = std::ranges::upper_bound(
      runs, std::pair(row, column), {}, [](const PixelRun& run) { return std::pair(run.row, run.begin); });
  if (behind == runs.begin()) return -1;
  const PixelRun& run = *std::prev(behind);
  return run.row == row && column < run.end ? run.label : -1;
}

}  // namespace superstep::peaks
