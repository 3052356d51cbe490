#include "superstep/target/cpu/kernels/convolution/tap_plan.h"

#include <algorithm>

namespace superstep::kernels {

namespace {

std::vector<TapSource> forward_taps(const AxisGeometry& axis, std::int64_t o) {
  std::vector<TapSource> taps;
  const TapRange range = valid_taps(o, axis.taps, axis.stride, axis.dilation, axis.pad, axis.input);
  for (std::int64_t k = range.begin; k < range.end; ++k)
    taps.push_back({k, o * axis.stride + k * axis.dilation - axis.pad});
  return taps;
}

std::vector<TapSource> gradient_taps(const AxisGeometry& axis, std::int64_t i) {
  std::vector<TapSource> taps;
  for (std::int64_t k = 0; k < axis.taps; ++k) {
    const std::int64_t scaled = i + axis.pad - k * axis.dilation;
    if (scaled < 0 || scaled % axis.stride != 0 || scaled / axis.stride >= axis.output) continue;
    taps.push_back({k, scaled / axis.stride});
  }
  return taps;
}

bool continues(const Run& run, const std::vector<TapSource>& taps) {
  if (run.taps.size() != taps.size()) return false;
  for (std::size_t i = 0; i < taps.size(); ++i)
    if (taps[i] != TapSource{run.taps[i].tap, run.taps[i].source + run.count * run.source_step}) return false;
  return true;
}

// Groups the positions of each residue class modulo result_step into runs.
template <class TapsAt>
std::vector<Run> group(std::int64_t positions, std::int64_t result_step, std::int64_t source_step, bool join,
                       const TapsAt& taps_at) {
  const bool joinable = join || (result_step == 1 && source_step == 1);
  std::vector<Run> runs;
  for (std::int64_t residue = 0; residue < result_step; ++residue) {
    bool fresh = true;
    for (std::int64_t p = residue; p < positions; p += result_step, fresh = false) {
      std::vector<TapSource> taps = taps_at(p);
      if (!fresh && joinable && continues(runs.back(), taps))
        ++runs.back().count;
      else
        runs.push_back({p, 1, joinable ? result_step : 1, joinable ? source_step : 1, std::move(taps)});
    }
  }
  return runs;
}

}  // namespace

std::int64_t lowest_source(const Run& run) {
  std::int64_t lowest = run.taps.empty() ? 0 : run.taps.front().source;
  for (const TapSource& tap : run.taps) lowest = std::min(lowest, tap.source);
  return lowest;
}

AxisGeometry planes_of(const Convolution& c) {
  return {c.window.depth, c.window.stride_d, c.window.dilation_d, c.window.pad_front, c.x.planes, c.y.planes};
}

AxisGeometry rows_of(const Convolution& c) {
  return {c.window.height, c.window.stride_h, c.window.dilation_h, c.window.pad_top, c.x.rows(), c.y.rows()};
}

AxisGeometry columns_of(const Convolution& c) {
  return {c.window.width, c.window.stride_w, c.window.dilation_w, c.window.pad_left, c.x.width, c.y.width};
}

std::vector<Run> forward_runs(const AxisGeometry& axis, bool join) {
  return group(axis.output, 1, axis.stride, join, [&](std::int64_t p) { return forward_taps(axis, p); });
}

std::vector<Run> gradient_runs(const AxisGeometry& axis, bool join) {
  return group(axis.input, axis.stride, 1, join, [&](std::int64_t p) { return gradient_taps(axis, p); });
}

Run joined_run(const Run& planes, const Run& rows, const VolumeGeometry& g) {
  Run joined{planes.first * g.result_rows + rows.first, rows.count, rows.result_step, rows.source_step, {}};
  for (const TapSource& plane : planes.taps)
    for (const TapSource& row : rows.taps)
      joined.taps.push_back({plane.tap * g.row_taps + row.tap, plane.source * g.source_rows + row.source});
  return joined;
}

}  // namespace superstep::kernels
