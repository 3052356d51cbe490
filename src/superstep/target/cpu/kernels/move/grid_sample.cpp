#include "superstep/target/cpu/kernels/move/grid_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "superstep/target/cpu/kernels/move/grid_sample_loops.h"

namespace superstep::kernels {

namespace {

std::string fault_of(const GridSample& s) {
  if (s.batch < 1 || s.channels < 1 || s.height < 1 || s.width < 1 || s.rows < 1 || s.columns < 1)
    return "an extent is not positive";
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if ((s.height - 1) * s.x.row + (s.width - 1) * s.x.column > most) return "a picture is too large";
  // Positions are counted in f32.
  if (std::max(s.height, s.width) > (1 << 22)) return "an axis is too long";
  return {};
}

std::int64_t pieces_of_row(const GridSample& s) {
  return (s.columns + sampled_together - 1) / sampled_together;
}

// Rows of points that follow each other are one.
GridSample with_joined_rows(GridSample s) {
  if (s.grid.row != s.columns * s.grid.column || s.y.row != s.columns * s.y.column) return s;
  s.columns *= s.rows;
  s.rows = 1;
  return s;
}

class GridSampleKernel final : public Kernel {
 public:
  GridSampleKernel(KernelInfo info, const GridSample& sample)
      : Kernel(std::move(info)), s_(sample), loops_(grid_sample_loops()) {}

  void run(const Arguments& arguments) const override { run_pieces(arguments, {0, pieces()}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_pieces(arguments, part_range(pieces(), part, info_.parts));
  }

 private:
  std::int64_t pieces() const { return s_.batch * s_.rows * pieces_of_row(s_); }

  // Pieces of rows of points.
  void run_pieces(const Arguments& arguments, PartRange range) const {
    const auto* x = static_cast<const float*>(arguments.inputs[0]);
    const auto* grid = static_cast<const float*>(arguments.inputs[1]);
    auto* y = static_cast<float*>(arguments.outputs[0]);
    const auto at = [](const GridSample::Places& p, std::int64_t n, std::int64_t row, std::int64_t column) {
      return n * p.batch + row * p.row + column * p.column;
    };
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const std::int64_t row = i / pieces_of_row(s_), n = row / s_.rows;
      const std::int64_t first = i % pieces_of_row(s_) * sampled_together;
      run_points(x + n * s_.x.batch, grid + at(s_.grid, n, row % s_.rows, first),
                 y + at(s_.y, n, row % s_.rows, first), std::min(sampled_together, s_.columns - first));
    }
  }

  void run_points(const float* x, const float* grid, float* y, std::int64_t count) const {
    alignas(64) float across[sampled_together], down[sampled_together];
    for (std::int64_t i = 0; i < count; ++i) {
      across[i] = grid[i * s_.grid.column];
      down[i] = grid[i * s_.grid.column + s_.grid.channel];
    }
    std::fill(across + count, across + sampled_together, 0.0f);
    std::fill(down + count, down + sampled_together, 0.0f);
    SampledPlaces places;
    loops_.find(s_, count, across, down, places);
    loops_.read(s_, places, count, x, y);
  }

  GridSample s_;
  GridSampleLoops loops_;
};

}  // namespace

Prepared prepare(const GridSample& s) {
  if (std::string fault = fault_of(s); !fault.empty()) return refuse("grid sample", fault);
  const auto points = static_cast<double>(s.batch * s.rows * s.columns),
             channels = static_cast<double>(s.channels);
  const double taps = s.nearest ? 1 : 4;
  KernelInfo info;
  info.name = fmt::format("samples of images, {} points of {}", s.rows * s.columns,
                          s.nearest ? "the nearest" : "four");
  info.flops = points * taps * (2 * channels + 2);
  info.bytes = 4 * (static_cast<double>(s.batch * s.height * s.width) * channels + points * (2 + channels));
  info.inputs = 2;
  info.outputs = 1;
  const GridSample joined = with_joined_rows(s);
  info.parts = std::clamp<std::int64_t>(joined.batch * joined.rows * pieces_of_row(joined), 1, most_parts);
  return std::make_unique<GridSampleKernel>(std::move(info), joined);
}

}  // namespace superstep::kernels
