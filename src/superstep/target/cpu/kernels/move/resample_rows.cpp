#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/target/cpu/kernels/move/resample_loops.h"

namespace superstep::kernels {

namespace {

// One axis in front of the rows.
struct OuterAxis {
  std::int64_t inputs = 1, outputs = 1;
  std::vector<std::vector<ResampleTap>> taps;  // by output
};

struct RowGeometry {
  std::vector<OuterAxis> outer;
  std::int64_t inputs = 1, inner = 1;         // of a row: positions along its axis, elements of each
  std::vector<std::vector<ResampleTap>> row;  // along it, by output

  std::int64_t rows() const {  // of the result
    std::int64_t count = 1;
    for (const OuterAxis& axis : outer) count *= axis.outputs;
    return count;
  }
  std::int64_t outputs() const { return static_cast<std::int64_t>(row.size()); }
};

class RowResample final : public Kernel {
 public:
  RowResample(KernelInfo info, RowGeometry geometry)
      : Kernel(std::move(info)), g_(std::move(geometry)), sum_(weighted_sums()) {
    info_.parts = std::clamp<std::int64_t>(g_.rows(), 1, most_parts);
  }

  void run(const Arguments& arguments) const override { run_rows(arguments, {0, g_.rows()}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_rows(arguments, part_range(g_.rows(), part, info_.parts));
  }

 private:
  static constexpr std::int64_t most_lines = 32;

  // Lines that wait to be summed into a row; as many as fit at a time, the sum so far being one of them.
  struct Sum {
    const float* lines[most_lines];
    float weights[most_lines];
    std::int64_t count = 0;
    float* to;
    std::int64_t length;
  };

  void run_rows(const Arguments& arguments, PartRange rows) const {
    const auto* x = static_cast<const float*>(arguments.inputs[0]);
    auto* y = static_cast<float*>(arguments.outputs[0]);
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      spread(joined(x, row, static_cast<float*>(arguments.scratch)), y + row * g_.outputs() * g_.inner);
  }

  // The row of the input that result row `row` is made of; null when it is made of nothing.
  const float* joined(const float* x, std::int64_t row, float* scratch) const {
    Sum sum{.lines = {}, .weights = {}, .to = scratch, .length = g_.inputs * g_.inner};
    gather(x, g_.outer.size(), row, 1, 0, 1.0f, sum);
    if (sum.count == 0) return nullptr;
    if (sum.count == 1 && sum.weights[0] == 1) return sum.lines[0];
    add_up(sum);
    return scratch;
  }

  // Axes from the innermost outwards; `step` rows of the input lie between two positions of the next one.
  void gather(const float* x, std::size_t axes, std::int64_t row, std::int64_t step, std::int64_t source,
              float weight, Sum& sum) const {
    if (axes == 0) {
      if (sum.count == most_lines) add_up(sum);
      sum.lines[sum.count] = x + source * sum.length;
      sum.weights[sum.count++] = weight;
      return;
    }
    const OuterAxis& axis = g_.outer[axes - 1];
    for (const ResampleTap& tap : axis.taps[static_cast<std::size_t>(row % axis.outputs)])
      gather(x, axes - 1, row / axis.outputs, step * axis.inputs, source + tap.position * step,
             weight * tap.weight, sum);
  }

  void add_up(Sum& sum) const {
    sum_({sum.lines, sum.weights, sum.count, sum.length, sum.to});
    sum.lines[0] = sum.to;
    sum.weights[0] = 1;
    sum.count = 1;
  }

  // Along the row's own axis.
  void spread(const float* from, float* y) const {
    for (const std::vector<ResampleTap>& taps : g_.row) {
      if (!from || taps.empty()) std::fill_n(y, g_.inner, 0.0f);
      Sum sum{.lines = {}, .weights = {}, .to = y, .length = g_.inner};
      for (const ResampleTap& tap : taps) {
        if (!from) break;
        if (sum.count == most_lines) add_up(sum);
        sum.lines[sum.count] = from + tap.position * g_.inner;
        sum.weights[sum.count++] = tap.weight;
      }
      if (sum.count > 0) add_up(sum);
      y += g_.inner;
    }
  }

  RowGeometry g_;
  WeightedSum* sum_;
};

std::vector<std::vector<ResampleTap>> unchanged(std::int64_t extent) {
  std::vector<std::vector<ResampleTap>> taps;
  for (std::int64_t i = 0; i < extent; ++i) taps.push_back({{i, 1.0f}});
  return taps;
}

RowGeometry geometry_of(const Resample& resample) {
  std::vector<const ResamplePass*> of_axis(resample.extents.size(), nullptr);
  int innermost = 0;
  for (const ResamplePass& pass : resample.passes) {
    of_axis[static_cast<std::size_t>(pass.axis)] = &pass;
    innermost = std::max(innermost, pass.axis);
  }
  RowGeometry g;
  const auto last = static_cast<std::size_t>(innermost);
  for (std::size_t axis = 0; axis < last; ++axis) {
    const std::int64_t extent = resample.extents[axis];
    auto taps = of_axis[axis] ? of_axis[axis]->taps : unchanged(extent);
    g.outer.push_back({extent, static_cast<std::int64_t>(taps.size()), std::move(taps)});
  }
  g.inputs = resample.extents[last];
  g.row = of_axis[last]->taps;
  g.inner = std::accumulate(resample.extents.begin() + innermost + 1, resample.extents.end(), std::int64_t{1},
                            std::multiplies<>());
  return g;
}

double count_taps(const std::vector<std::vector<ResampleTap>>& all) {
  double count = 0;
  for (const auto& taps : all) count += static_cast<double>(taps.size());
  return count;
}

}  // namespace

Prepared prepare_by_rows(const Resample& resample) {
  RowGeometry g = geometry_of(resample);
  double sums = 1, input_rows = 1;
  for (const OuterAxis& axis : g.outer) {
    sums *= count_taps(axis.taps);
    input_rows *= static_cast<double>(axis.inputs);
  }
  const auto inner = static_cast<double>(g.inner), row = static_cast<double>(g.inputs) * inner;
  const auto rows = static_cast<double>(g.rows());
  KernelInfo info;
  info.name = fmt::format("resampling along {} axes, row by row", resample.passes.size());
  info.flops = 2 * (sums * row + rows * count_taps(g.row) * inner);
  info.bytes = 4 * (input_rows * row + rows * static_cast<double>(g.outputs()) * inner);
  info.scratch_bytes = static_cast<std::size_t>(g.inputs * g.inner) * sizeof(float);
  info.inputs = info.outputs = 1;
  return std::make_unique<RowResample>(std::move(info), std::move(g));
}

}  // namespace superstep::kernels
