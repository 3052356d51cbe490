#include "superstep/target/cpu/kernels/move/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "superstep/target/cpu/kernels/convolution/tap_plan.h"
#include "superstep/target/cpu/kernels/move/pool_loops.h"
#include "superstep/target/cpu/kernels/move/pool_plan.h"

namespace superstep::kernels {

namespace {

bool misses_image(const AxisGeometry& axis) {
  for (std::int64_t o = 0; o < axis.output; ++o) {
    const TapRange taps = valid_taps(o, axis.taps, axis.stride, axis.dilation, axis.pad, axis.input);
    if (taps.begin == taps.end) return true;
  }
  return false;
}

bool is_of_bytes(const Pool& pool) {
  return pool.x.type == ElementType::u8 && pool.y.type == ElementType::u8 && pool.pooling == Pooling::max &&
         !pool.save_argmax;
}

std::string fault_of(const Pool& pool) {
  Convolution c = as_convolution(pool);
  if (is_of_bytes(pool)) c.x.type = c.y.type = ElementType::f32;  // whose faults are those of geometry
  if (std::string fault = fault_of(c); !fault.empty()) return fault;
  if (pool.x.channels != pool.y.channels) return "input and output differ in their channels";
  if (misses_image(planes_of(c)) || misses_image(rows_of(c)) || misses_image(columns_of(c)))
    return "a window lies wholly in the padding";
  return {};
}

// Every position of a run list, expanded: [position] -> taps.
std::vector<std::vector<TapSource>> expand(const std::vector<Run>& runs, std::int64_t positions) {
  std::vector<std::vector<TapSource>> taps(static_cast<std::size_t>(positions));
  for (const Run& run : runs)
    for (std::int64_t i = 0; i < run.count; ++i)
      for (const TapSource& tap : run.taps)
        taps[static_cast<std::size_t>(run.first + i * run.result_step)].push_back(
            {tap.tap, tap.source + i * run.source_step});
  return taps;
}

using TapLists = std::vector<std::vector<TapSource>>;

// Of every row of a volume: the taps of its plane with those of its row in the plane.
TapLists expand_rows(const TapLists& planes, const TapLists& rows, std::int64_t row_taps,
                     std::int64_t source_rows) {
  TapLists all;
  for (const std::vector<TapSource>& plane_taps : planes)
    for (const std::vector<TapSource>& row_list : rows) {
      all.emplace_back();
      for (const TapSource& plane : plane_taps)
        for (const TapSource& row : row_list)
          all.back().push_back({plane.tap * row_taps + row.tap, plane.source * source_rows + row.source});
    }
  return all;
}

// Results first, first + 1, ... of a row (count of them) whose windows have the same taps, each next one
// `source_step` positions further.
struct ColumnRun {
  std::int64_t first, count, source_step;
};

// Does column `w` go on where the run's `count` columns end?
bool goes_on(const TapLists& columns, const ColumnRun& run, std::int64_t w, std::int64_t source_step) {
  const auto& begin = columns[static_cast<std::size_t>(run.first)];
  const auto& here = columns[static_cast<std::size_t>(w)];
  return std::ranges::equal(begin, here, [&](const TapSource& a, const TapSource& b) {
    return a.tap == b.tap && b.source == a.source + (w - run.first) * source_step;
  });
}

std::vector<ColumnRun> column_runs(const TapLists& columns) {
  std::vector<ColumnRun> runs;
  for (std::int64_t w = 0; w < static_cast<std::int64_t>(columns.size()); ++w) {
    const auto source = [&](std::int64_t at) { return columns[static_cast<std::size_t>(at)][0].source; };
    if (!runs.empty()) {
      ColumnRun& run = runs.back();
      const std::int64_t step = run.count == 1 ? source(w) - source(run.first) : run.source_step;
      if (goes_on(columns, run, w, step)) {
        run.source_step = step, ++run.count;
        continue;
      }
    }
    runs.push_back({w, 1, 0});
  }
  return runs;
}

class PoolKernel : public Kernel {
 public:
  PoolKernel(KernelInfo info, const Pool& pool, TapLists rows, TapLists columns, PoolLoops loops)
      : Kernel(std::move(info)),
        pool_(pool),
        rows_(std::move(rows)),
        columns_(std::move(columns)),
        loops_(loops),
        // Samples and channels are one run of elements when neither image has gaps between columns.
        flat_(pool.x.column_stride == pool.x.channels && pool.y.column_stride == pool.y.channels) {}

 protected:
  // Calls body(offset of a run of elements within a position: of x, y and the dense argmax; elements).
  template <class Body>
  void for_each_run(const Body& body) const {
    const std::int64_t channels = pool_.x.channels;
    if (flat_) return body(0, 0, 0, pool_.x.batch * channels);
    for (std::int64_t n = 0; n < pool_.x.batch; ++n)
      body(n * pool_.x.column_stride, n * pool_.y.column_stride, n * channels, channels);
  }

  std::int64_t argmax_offset(std::int64_t h, std::int64_t w) const {
    return (h * pool_.y.width + w) * pool_.y.batch * pool_.y.channels;
  }
  std::uint8_t number(const TapSource& row, const TapSource& column) const {
    return static_cast<std::uint8_t>(row.tap * pool_.window.width + column.tap);
  }
  // Divisor of the average at an output position.
  float factor_at(std::int64_t rows, std::int64_t columns) const {
    const bool inside = pool_.pooling == Pooling::average;
    return 1.0f / static_cast<float>(inside ? rows * columns : pool_.window.taps());
  }

  Pool pool_;
  TapLists rows_, columns_;
  PoolLoops loops_;
  bool flat_;
};

class PoolForward final : public PoolKernel {
 public:
  template <class... Args>
  explicit PoolForward(Args&&... args)
      : PoolKernel(std::forward<Args>(args)...), column_runs_(column_runs(columns_)) {
    info_.parts = std::clamp<std::int64_t>(pool_.y.height, 1, most_parts);
  }
  void run(const Arguments& arguments) const override { run_rows(arguments, {0, pool_.y.height}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_rows(arguments, part_range(pool_.y.height, part, info_.parts));
  }

 private:
  void run_rows(const Arguments& arguments, PartRange rows) const {
    for (std::int64_t h = rows.begin; h < rows.end; ++h)
      for (const ColumnRun& run : column_runs_) run_columns(arguments, h, run);
  }
  void run_columns(const Arguments& arguments, std::int64_t h, const ColumnRun& columns_run) const {
    const std::int64_t w = columns_run.first;
    const auto &rows = rows_[static_cast<std::size_t>(h)], &columns = columns_[static_cast<std::size_t>(w)];
    const auto x_size = static_cast<std::int64_t>(size_in_bytes(pool_.x.type));
    const auto y_size = static_cast<std::int64_t>(size_in_bytes(pool_.y.type));
    const auto* x = static_cast<const std::byte*>(arguments.inputs[0]);
    auto* y = static_cast<std::byte*>(arguments.outputs[0]) + pool_.y.offset(h, w) * y_size;
    auto* winners =
        pool_.save_argmax ? static_cast<std::uint8_t*>(arguments.outputs[1]) + argmax_offset(h, w) : nullptr;
    const float factor =
        factor_at(static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns.size()));
    for_each_run(
        [&](std::int64_t x_offset, std::int64_t y_offset, std::int64_t dense_offset, std::int64_t n) {
          std::array<const void*, max_pool_taps> operands;
          std::array<std::uint8_t, max_pool_taps> numbers;
          PoolRun run{n,
                      0,
                      operands.data(),
                      nullptr,
                      numbers.data(),
                      &factor,
                      y + y_offset * y_size,
                      winners ? winners + dense_offset : nullptr,
                      false,
                      columns_run.count,
                      columns_run.source_step * pool_.x.batch * pool_.x.column_stride,
                      pool_.y.batch * pool_.y.column_stride,
                      pool_.y.batch * pool_.y.channels};
          for (const TapSource& row : rows)
            for (const TapSource& column : columns) {
              numbers[static_cast<std::size_t>(run.taps)] = number(row, column);
              operands[static_cast<std::size_t>(run.taps++)] =
                  x + (pool_.x.offset(row.source, column.source) + x_offset) * x_size;
            }
          (pool_.pooling == Pooling::max ? loops_.max : loops_.average)(run);
        });
  }

  std::vector<ColumnRun> column_runs_;
};

class PoolGradient final : public PoolKernel {
 public:
  template <class... Args>
  explicit PoolGradient(Args&&... args) : PoolKernel(std::forward<Args>(args)...) {
    info_.parts = std::clamp<std::int64_t>(pool_.x.height, 1, most_parts);
  }
  void run(const Arguments& arguments) const override { run_rows(arguments, {0, pool_.x.height}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_rows(arguments, part_range(pool_.x.height, part, info_.parts));
  }

 private:
  void run_rows(const Arguments& arguments, PartRange rows) const {
    for (std::int64_t h = rows.begin; h < rows.end; ++h)
      for (std::int64_t w = 0; w < pool_.x.width; ++w) run_position(arguments, h, w);
  }

  float factor_of(std::int64_t oh, std::int64_t ow) const {
    const Window& k = pool_.window;
    const std::int64_t od = oh / pool_.y.rows(), row = oh % pool_.y.rows();
    const TapRange planes = valid_taps(od, k.depth, k.stride_d, k.dilation_d, k.pad_front, pool_.x.planes);
    const TapRange rows = valid_taps(row, k.height, k.stride_h, k.dilation_h, k.pad_top, pool_.x.rows());
    const TapRange columns = valid_taps(ow, k.width, k.stride_w, k.dilation_w, k.pad_left, pool_.x.width);
    return factor_at((planes.end - planes.begin) * (rows.end - rows.begin), columns.end - columns.begin);
  }

  void run_position(const Arguments& arguments, std::int64_t h, std::int64_t w) const {
    const bool is_max = pool_.pooling == Pooling::max;
    const auto x_size = static_cast<std::int64_t>(size_in_bytes(pool_.x.type));
    const auto y_size = static_cast<std::int64_t>(size_in_bytes(pool_.y.type));
    const auto* dy = static_cast<const std::byte*>(arguments.inputs[0]);
    const auto* argmax = is_max ? static_cast<const std::uint8_t*>(arguments.inputs[1]) : nullptr;
    auto* dx = static_cast<std::byte*>(arguments.outputs[0]) + pool_.x.offset(h, w) * x_size;
    for_each_run(
        [&](std::int64_t x_offset, std::int64_t y_offset, std::int64_t dense_offset, std::int64_t n) {
          std::array<const void*, max_pool_taps> operands;
          std::array<const std::uint8_t*, max_pool_taps> winners;
          std::array<std::uint8_t, max_pool_taps> numbers;
          std::array<float, max_pool_taps> factors;
          PoolRun run{n,
                      0,
                      operands.data(),
                      winners.data(),
                      numbers.data(),
                      factors.data(),
                      dx + x_offset * x_size,
                      nullptr,
                      pool_.accumulate};
          for (const TapSource& row : rows_[static_cast<std::size_t>(h)])
            for (const TapSource& column : columns_[static_cast<std::size_t>(w)]) {
              const auto i = static_cast<std::size_t>(run.taps++);
              operands[i] = dy + (pool_.y.offset(row.source, column.source) + y_offset) * y_size;
              if (is_max) winners[i] = argmax + argmax_offset(row.source, column.source) + dense_offset;
              if (!is_max) factors[i] = factor_of(row.source, column.source);
              numbers[i] = number(row, column);
            }
          (is_max ? loops_.max_gradient : loops_.average_gradient)(run);
        });
  }
};

// A window over the whole image is cut into parts of at most max_pool_taps taps: one output, so that the
// average is a sum over all positions, best left to one long loop.
class GlobalAverage final : public Kernel {
 public:
  GlobalAverage(KernelInfo info, const Pool& pool, PoolLoops loops)
      : Kernel(std::move(info)), pool_(pool), loops_(loops) {}

  void run(const Arguments& arguments) const override {
    const auto x_size = static_cast<std::int64_t>(size_in_bytes(pool_.x.type));
    const auto y_size = static_cast<std::int64_t>(size_in_bytes(pool_.y.type));
    for (std::int64_t n = 0; n < pool_.x.batch; ++n) {
      const auto* x = static_cast<const std::byte*>(arguments.inputs[0]) + n * pool_.x.column_stride * x_size;
      run_sample(x, static_cast<std::byte*>(arguments.outputs[0]) + n * pool_.y.column_stride * y_size,
                 static_cast<float*>(arguments.scratch));
    }
  }

 private:
  // Partial sums of up to 256 positions each go to scratch, then into one another.
  void run_sample(const std::byte* x, std::byte* y, float* sums) const {
    const auto x_size = static_cast<std::int64_t>(size_in_bytes(pool_.x.type));
    const std::int64_t positions = pool_.x.height * pool_.x.width;
    std::array<const void*, max_pool_taps> operands;
    const float one = 1, factor = 1.0f / static_cast<float>(positions);
    std::int64_t parts = 0;
    for (std::int64_t first = 0; first < positions; ++parts) {
      PoolRun run{
          pool_.x.channels, 0,    operands.data(), nullptr, nullptr, &one, sums + parts * pool_.x.channels,
          nullptr,          false};
      for (; first < positions && run.taps < max_pool_taps; ++first)
        operands[static_cast<std::size_t>(run.taps++)] =
            x + pool_.x.offset(first / pool_.x.width, first % pool_.x.width) * x_size;
      loops_.average(run);
    }
    finish(sums, parts, factor, y);
  }

  void finish(float* sums, std::int64_t parts, float factor, std::byte* y) const {
    for (std::int64_t c = 0; c < pool_.x.channels; ++c) {
      float total = 0;
      for (std::int64_t part = 0; part < parts; ++part) total += sums[part * pool_.x.channels + c];
      if (pool_.y.type == ElementType::f32)
        reinterpret_cast<float*>(y)[c] = total * factor;
      else
        reinterpret_cast<bf16*>(y)[c] = bf16(total * factor);
    }
  }

  Pool pool_;
  PoolLoops loops_;
};

bool is_global_average(const Pool& pool) {
  const Window& w = pool.window;
  return pool.pooling == Pooling::average && pool.y.height == 1 && pool.y.width == 1 && w.pad_front == 0 &&
         w.pad_top == 0 && w.pad_left == 0 && w.depth == pool.x.planes && w.height == pool.x.rows() &&
         w.width == pool.x.width && w.dilation_d == 1 && w.dilation_h == 1 && w.dilation_w == 1;
}

Prepared prepare_global_average(const Pool& pool) {
  if (!is_global_average(pool) || pool.window.taps() <= max_pool_taps)
    return refuse("global average", fmt::format("not one window of more than {} taps", max_pool_taps));
  KernelInfo info = describe_pooling(pool, false);
  const std::int64_t parts = (pool.x.height * pool.x.width + max_pool_taps - 1) / max_pool_taps;
  info.scratch_bytes = static_cast<std::size_t>(parts * pool.x.channels) * sizeof(float);
  return std::make_unique<GlobalAverage>(std::move(info), pool, pool_loops(pool.x.type, ElementType::f32));
}

Prepared prepare_window_by_window(const Pool& pool) {
  if (pool.window.taps() > max_pool_taps)
    return refuse("window by window", fmt::format("more than {} taps", max_pool_taps));
  const Convolution c = as_convolution(pool);
  return std::make_unique<PoolForward>(
      describe_pooling(pool, false), pool,
      expand_rows(expand(forward_runs(planes_of(c), true), pool.y.planes),
                  expand(forward_runs(rows_of(c), true), pool.y.rows()), pool.window.height, pool.x.rows()),
      expand(forward_runs(columns_of(c), true), pool.y.width), pool_loops(pool.x.type, pool.y.type));
}

}  // namespace

extern constinit const Implementation<Pool> global_average{"global average", prepare_global_average};
extern constinit const Implementation<Pool> window_by_window{"window by window", prepare_window_by_window};

SUPERSTEP_KERNELS(pooling_forward, Pool, global_average, sliding_windows, window_by_window)

Prepared prepare_pool(const Pool& pool) {
  if (std::string fault = fault_of(pool); !fault.empty()) return refuse("pooling", fault);
  return pooling_forward().prepare(pool);
}

Prepared prepare_pool_gradient(const Pool& pool) {
  if (std::string fault = fault_of(pool); !fault.empty()) return refuse("pooling gradient", fault);
  if (pool.x.type == ElementType::u8) return refuse("pooling gradient", "images must be f32 or bf16");
  if (pool.window.taps() > max_pool_taps && !is_global_average(pool))
    return refuse("pooling gradient", fmt::format("more than {} taps", max_pool_taps));
  const Convolution c = as_convolution(pool);
  return std::make_unique<PoolGradient>(
      describe_pooling(pool, true), pool,
      expand_rows(expand(gradient_runs(planes_of(c), true), pool.x.planes),
                  expand(gradient_runs(rows_of(c), true), pool.x.rows()), pool.window.height, pool.y.rows()),
      expand(gradient_runs(columns_of(c), true), pool.x.width), pool_loops(pool.y.type, pool.x.type));
}

}  // namespace superstep::kernels
