// Depthwise convolutions: forward, input gradient, weight gradient. The weights are [kh][kw][channels] for
// all three. Channels are taken in blocks, and all rows of a block before the next, so that each row stays in
// the first-level cache until the last window that reaches it.
#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/column_sum.h"
#include "superstep/target/cpu/kernels/convolution_kernels.h"
#include "superstep/target/cpu/kernels/depthwise_loops.h"
#include "superstep/target/cpu/kernels/epilogue_run.h"
#include "superstep/target/cpu/kernels/tap_tables.h"

namespace superstep::kernels {

namespace {

constexpr const char* name = "depthwise";
constexpr std::int64_t window_bytes = 64 * 1024;  // the rows under a window, of one block of channels
constexpr std::int64_t tile_columns = 64;         // a tile of results between its sums and its epilogue

std::string fault_of_depthwise(const Convolution& c) {
  if (std::string fault = fault_of(c); !fault.empty()) return fault;
  if (c.groups != c.x.channels || c.groups != c.y.channels) return "the groups have more than one channel";
  return {};
}

std::int64_t bytes(ElementType type) { return static_cast<std::int64_t>(size_in_bytes(type)); }

double bytes_of(const Image& image) {
  return static_cast<double>(image.element_count()) * static_cast<double>(size_in_bytes(image.type));
}

// Never short, because each block pays for its calls.
std::int64_t channel_block(const Convolution& c, const Image& source) {
  const std::int64_t line = c.window.height * source.columns() * bytes(source.type);
  return std::min(source.channels, std::max<std::int64_t>(128, window_bytes / line / 64 * 64));
}

// The taps of every pair of a run of rows and a run of columns, as offsets.
class TapOffsets {
 public:
  TapOffsets(const Convolution& c, const TapSide& side) : columns_(side.columns.size()) {
    for (const Run& rows : side.rows)
      for (const Run& columns : side.columns) add(c, side, rows, columns);
    starts_.push_back(sources_.size());
  }

  DepthwiseTaps taps(std::size_t rows, std::size_t columns) const {
    const std::size_t first = starts_[rows * columns_ + columns],
                      end = starts_[rows * columns_ + columns + 1];
    return {static_cast<std::int64_t>(end - first), &sources_[first], &weights_[first]};
  }

 private:
  // Source offsets count from the lowest row that the first result of the run of rows reads.
  void add(const Convolution& c, const TapSide& side, const Run& rows, const Run& columns) {
    starts_.push_back(sources_.size());
    for (const TapSource& row : rows.taps)
      for (const TapSource& column : columns.taps) {
        sources_.push_back(side.source.offset(row.source - lowest_source(rows), column.source));
        weights_.push_back((row.tap * c.window.width + column.tap) * side.source.channels);
      }
  }

  std::size_t columns_;
  std::vector<std::size_t> starts_;
  std::vector<std::int64_t> sources_, weights_;
};

// A stretch of one row: results that see the same taps.
struct Stretch {
  DepthwiseTaps taps;
  std::int64_t result_row, source_row;
  const Run* columns;
  std::int64_t first_channel, channels;
};

// A line is one row of one block of channels.
std::int64_t count_lines(const TapSide& side, std::int64_t block) {
  std::int64_t rows = 0;
  for (const Run& run : side.rows) rows += run.count;
  return (side.source.channels + block - 1) / block * rows;
}

// Calls body(stretch) for every run of columns of the lines in a range: all rows of a block, then the next.
template <class Body>
void for_each_stretch(const TapSide& side, const TapOffsets& offsets, std::int64_t block, PartRange lines,
                      const Body& body) {
  std::int64_t line = -1;
  for (std::int64_t first = 0; first < side.source.channels; first += block)
    for (std::size_t r = 0; r < side.rows.size(); ++r) {
      const Run& rows = side.rows[r];
      for (std::int64_t i = 0; i < rows.count; ++i) {
        if (++line < lines.begin || line >= lines.end) continue;
        for (std::size_t c = 0; c < side.columns.size(); ++c)
          body(Stretch{offsets.taps(r, c), rows.first + i * rows.result_step,
                       lowest_source(rows) + i * rows.source_step, &side.columns[c], first,
                       std::min(block, side.source.channels - first)});
      }
    }
}

// Forward and input gradient, which differ in their geometry alone.
class DepthwiseKernel final : public Kernel {
 public:
  DepthwiseKernel(KernelInfo info, const Convolution& c, TapSide side, EpilogueRunner epilogue)
      : Kernel(std::move(info)),
        side_(std::move(side)),
        offsets_(c, side_),
        epilogue_(epilogue),
        loop_(depthwise_loop(side_.source.type)),
        accumulate_(c.accumulate),
        staged_(side_.result.type != ElementType::f32),
        block_(channel_block(c, side_.source)),
        lines_(count_lines(side_, block_)) {
    info_.parts = std::clamp<std::int64_t>(lines_, 1, most_parts);
  }

  void run(const Arguments& arguments) const override { run_lines(arguments, {0, lines_}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_lines(arguments, part_range(lines_, part, info_.parts));
  }

 private:
  void run_lines(const Arguments& arguments, PartRange lines) const {
    for_each_stretch(side_, offsets_, block_, lines, [&](const Stretch& s) {
      const std::int64_t total = s.columns->count * side_.result.batch;
      for (std::int64_t done = 0; done < total; done += tile_columns)
        run_tile(arguments, s, done, std::min(tile_columns, total - done));
    });
  }

  void run_tile(const Arguments& arguments, const Stretch& s, std::int64_t done, std::int64_t count) const {
    const Image &source = side_.source, &result = side_.result;
    const Run& columns = *s.columns;
    const std::int64_t column = columns.first * result.batch + done * columns.result_step;
    const std::int64_t source_start = s.source_row * source.row_stride +
                                      done * columns.source_step * source.column_stride + s.first_channel;
    const std::int64_t result_start =
        s.result_row * result.row_stride + column * result.column_stride + s.first_channel;
    auto* y = static_cast<std::byte*>(arguments.outputs[0]) + result_start * bytes(result.type);
    const std::int64_t stride = result.column_stride * columns.result_step;
    DepthwiseRun run{count, s.channels, s.taps};
    run.source = static_cast<const std::byte*>(arguments.inputs[0]) + source_start * bytes(source.type);
    run.weights = static_cast<const std::byte*>(arguments.inputs[1]) + s.first_channel * bytes(source.type);
    run.source_stride = source.column_stride * columns.source_step;
    run.result = staged_ ? static_cast<float*>(arguments.scratch) : reinterpret_cast<float*>(y);
    run.result_stride = staged_ ? s.channels : stride;
    run.accumulate = accumulate_;
    loop_(run);
    if (epilogue_.empty() && !staged_) return;
    epilogue_.apply({run.result, run.result_stride, y, result.type, stride, count, s.channels},
                    {s.result_row, column, s.first_channel, columns.result_step}, arguments.inputs.data() + 2,
                    arguments.outputs.data() + 1);
  }

  TapSide side_;
  TapOffsets offsets_;
  EpilogueRunner epilogue_;
  DepthwiseLoop* loop_;
  bool accumulate_, staged_;
  std::int64_t block_, lines_;
};

Prepared prepare(const Convolution& c, TapSide (*side_of)(const Convolution&)) {
  if (std::string fault = fault_of_depthwise(c); !fault.empty()) return refuse(name, fault);
  TapSide side = side_of(c);
  const bool staged = side.result.type != ElementType::f32;
  if (c.accumulate && staged)
    return refuse(name, "only an f32 result can be added to; the epilogue's `add` reads bf16");
  auto epilogue = EpilogueRunner::prepare(c.epilogue, side.result);
  if (!epilogue) return refuse(name, epilogue.error());
  KernelInfo info;
  info.name = fmt::format("{}, depthwise, blocks of {} channels{}",
                          side.flipped ? "input gradient" : "convolution", channel_block(c, side.source),
                          c.epilogue.steps.empty() ? "" : " + " + to_string(c.epilogue));
  info.flops = 2 * multiply_adds(c);
  info.bytes = bytes_of(side.source) + bytes_of(side.result) * (c.accumulate ? 2 : 1) +
               static_cast<double>(side.result.element_count()) * epilogue->bytes_per_element();
  if (staged) info.scratch_bytes = static_cast<std::size_t>(tile_columns * channel_block(c, side.source)) * 4;
  info.inputs = 2 + epilogue->inputs();
  info.outputs = 1 + epilogue->outputs();
  info.weights = WeightLayout::taps_channels;
  return std::make_unique<DepthwiseKernel>(std::move(info), c, std::move(side), *epilogue);
}

class DepthwiseWeightGradient final : public Kernel {
 public:
  DepthwiseWeightGradient(KernelInfo info, const Convolution& c)
      : Kernel(std::move(info)),
        c_(c),
        side_(forward_side(c)),
        offsets_(c, side_),
        loop_(depthwise_gradient_loop(c.x.type)),
        column_sum_(column_sum(c.y.type)),
        block_(channel_block(c, c.x)),
        lines_(count_lines(side_, block_)) {
    // Rows of a block add into the same sums: a part is whole blocks.
    info_.parts = (c.x.channels + block_ - 1) / block_;
  }

  void run(const Arguments& arguments) const override {
    run_lines(arguments, {0, lines_});
    if (c_.bias_gradient) add_bias(arguments);
  }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_lines(arguments, part_range(lines_, part, info_.parts));
    if (c_.bias_gradient && part == 0) add_bias(arguments);
  }

 private:
  void run_lines(const Arguments& arguments, PartRange lines) const {
    for_each_stretch(side_, offsets_, block_, lines, [&](const Stretch& s) { run_stretch(arguments, s); });
  }

  void add_bias(const Arguments& arguments) const {
    for (std::int64_t row = 0; row < c_.y.height; ++row)
      column_sum_(
          static_cast<const std::byte*>(arguments.inputs[1]) + row * c_.y.row_stride * bytes(c_.y.type),
          c_.y.column_stride, c_.y.columns(), c_.y.channels, static_cast<float*>(arguments.outputs[1]));
  }

  void run_stretch(const Arguments& arguments, const Stretch& s) const {
    const std::int64_t source = s.source_row * c_.x.row_stride + s.first_channel;
    const std::int64_t gradient = c_.y.offset(s.result_row, s.columns->first) + s.first_channel;
    DepthwiseGradientRun run{s.columns->count * c_.y.batch, s.channels, s.taps};
    run.source = static_cast<const std::byte*>(arguments.inputs[0]) + source * bytes(c_.x.type);
    run.source_stride = c_.x.column_stride * s.columns->source_step;
    run.gradient = static_cast<const std::byte*>(arguments.inputs[1]) + gradient * bytes(c_.y.type);
    run.gradient_stride = c_.y.column_stride * s.columns->result_step;
    run.sums = static_cast<float*>(arguments.outputs[0]) + s.first_channel;
    loop_(run);
  }

  Convolution c_;
  TapSide side_;
  TapOffsets offsets_;
  DepthwiseGradientLoop* loop_;
  ColumnSum* column_sum_;
  std::int64_t block_, lines_;
};

}  // namespace

Prepared prepare_depthwise_forward(const Convolution& c) { return prepare(c, forward_side); }
Prepared prepare_depthwise_input_gradient(const Convolution& c) { return prepare(c, gradient_side); }

Prepared prepare_depthwise_weight_gradient(const Convolution& c) {
  if (std::string fault = fault_of_depthwise(c); !fault.empty()) return refuse(name, fault);
  if (!c.epilogue.steps.empty()) return refuse(name, "a weight gradient has no epilogue");
  if (c.x.type != c.y.type) return refuse(name, "x and dy differ in type");
  KernelInfo info;
  info.name = fmt::format("weight gradient, depthwise, blocks of {} channels{}", channel_block(c, c.x),
                          c.bias_gradient ? " + bias" : "");
  info.flops = 2 * multiply_adds(c) + (c.bias_gradient ? static_cast<double>(c.y.element_count()) : 0);
  info.bytes = bytes_of(c.x) + bytes_of(c.y);
  info.inputs = 2;
  info.outputs = c.bias_gradient ? 2 : 1;
  info.weights = WeightLayout::taps_channels;
  return std::make_unique<DepthwiseWeightGradient>(std::move(info), c);
}

}  // namespace superstep::kernels
