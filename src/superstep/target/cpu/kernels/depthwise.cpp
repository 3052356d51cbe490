// Depthwise convolutions: forward, input gradient, weight gradient. The weights are [kh][kw][channels] for
// all three.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "superstep/target/cpu/kernels/column_sum.h"
#include "superstep/target/cpu/kernels/convolution_kernels.h"
#include "superstep/target/cpu/kernels/depthwise_loops.h"
#include "superstep/target/cpu/kernels/epilogue_run.h"
#include "superstep/target/cpu/kernels/tap_tables.h"

namespace superstep::kernels {

namespace {

constexpr const char* name = "depthwise";
constexpr std::int64_t tile_bytes = 16 * 1024;

std::string fault_of_depthwise(const Convolution& c) {
  if (std::string fault = fault_of(c); !fault.empty()) return fault;
  if (c.groups != c.x.channels || c.groups != c.y.channels) return "the groups have more than one channel";
  if (c.window.height * c.window.width > depthwise_tap_limit)
    return fmt::format("more than {} taps", depthwise_tap_limit);
  return {};
}

std::int64_t bytes(ElementType type) { return static_cast<std::int64_t>(size_in_bytes(type)); }

double bytes_of(const Image& image) {
  return static_cast<double>(image.element_count()) * static_cast<double>(size_in_bytes(image.type));
}

// Forward and input gradient, which differ in their geometry alone.
class DepthwiseKernel final : public Kernel {
 public:
  DepthwiseKernel(KernelInfo info, const Convolution& c, TapSide side, EpilogueRunner epilogue)
      : Kernel(std::move(info)),
        c_(c),
        side_(std::move(side)),
        epilogue_(epilogue),
        loop_(depthwise_loop(side_.source.type)),
        staged_(side_.result.type != ElementType::f32),
        max_columns_(columns_in_tile(side_.result.channels)) {}

  static std::int64_t columns_in_tile(std::int64_t channels) {
    return std::max<std::int64_t>(8, tile_bytes / 4 / channels / 8 * 8);
  }

  void run(const Arguments& arguments) const override {
    for (const Run& rows : side_.rows)
      for (std::int64_t row = 0; row < rows.count; ++row)
        for (const Run& columns : side_.columns) run_columns(arguments, rows, row, columns);
  }

 private:
  void run_columns(const Arguments& arguments, const Run& rows, std::int64_t row, const Run& columns) const {
    const std::int64_t total = columns.count * side_.result.batch;
    for (std::int64_t done = 0; done < total; done += max_columns_)
      run_tile(arguments, rows, row, columns, done, std::min(max_columns_, total - done));
  }

  void run_tile(const Arguments& arguments, const Run& rows, std::int64_t row, const Run& columns,
                std::int64_t done, std::int64_t count) const {
    std::array<const void*, depthwise_tap_limit> sources, weights;
    const Image &source = side_.source, &result = side_.result;
    DepthwiseRun run{count, result.channels, 0, sources.data(), weights.data()};
    const auto* x = static_cast<const std::byte*>(arguments.inputs[0]);
    const auto* w = static_cast<const std::byte*>(arguments.inputs[1]);
    for (const TapSource& h : rows.taps)
      for (const TapSource& v : columns.taps) {
        const std::int64_t at = source.offset(h.source + row * rows.source_step, v.source) +
                                done * columns.source_step * source.column_stride;
        sources[static_cast<std::size_t>(run.taps)] = x + at * bytes(source.type);
        weights[static_cast<std::size_t>(run.taps++)] =
            w + (h.tap * c_.window.width + v.tap) * result.channels * bytes(source.type);
      }
    run.source_stride = source.column_stride * columns.source_step;
    const std::int64_t result_row = rows.first + row * rows.result_step;
    const std::int64_t column = columns.first * result.batch + done * columns.result_step;
    auto* y = static_cast<std::byte*>(arguments.outputs[0]) +
              (result_row * result.row_stride + column * result.column_stride) * bytes(result.type);
    const std::int64_t stride = result.column_stride * columns.result_step;
    run.result = staged_ ? static_cast<float*>(arguments.scratch) : reinterpret_cast<float*>(y);
    run.result_stride = staged_ ? result.channels : stride;
    run.accumulate = c_.accumulate;
    loop_(run);
    if (epilogue_.empty() && !staged_) return;
    epilogue_.apply({run.result, run.result_stride, y, result.type, stride, count, result.channels},
                    {result_row, column, 0, columns.result_step}, arguments.inputs.data() + 2,
                    arguments.outputs.data() + 1);
  }

  Convolution c_;
  TapSide side_;
  EpilogueRunner epilogue_;
  DepthwiseLoop* loop_;
  bool staged_;
  std::int64_t max_columns_;
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
  info.name = fmt::format("{}, depthwise{}", side.flipped ? "input gradient" : "convolution",
                          c.epilogue.steps.empty() ? "" : " + " + to_string(c.epilogue));
  info.flops = 2 * multiply_adds(c);
  info.bytes = bytes_of(side.source) + bytes_of(side.result) * (c.accumulate ? 2 : 1) +
               static_cast<double>(side.result.element_count()) * epilogue->bytes_per_element();
  if (staged)
    info.scratch_bytes = static_cast<std::size_t>(DepthwiseKernel::columns_in_tile(side.result.channels) *
                                                  side.result.channels) *
                         4;
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
        loop_(depthwise_gradient_loop(c.x.type)),
        column_sum_(column_sum(c.y.type)) {}

  void run(const Arguments& arguments) const override {
    for (const Run& rows : side_.rows)
      for (std::int64_t row = 0; row < rows.count; ++row) {
        for (const Run& columns : side_.columns) run_columns(arguments, rows, row, columns);
        if (!c_.bias_gradient) continue;
        const auto* dy = static_cast<const std::byte*>(arguments.inputs[1]) +
                         (rows.first + row) * c_.y.row_stride * bytes(c_.y.type);
        column_sum_(dy, c_.y.column_stride, c_.y.columns(), c_.y.channels,
                    static_cast<float*>(arguments.outputs[1]));
      }
  }

 private:
  void run_columns(const Arguments& arguments, const Run& rows, std::int64_t row, const Run& columns) const {
    std::array<const void*, depthwise_tap_limit> sources;
    std::array<float*, depthwise_tap_limit> sums;
    DepthwiseGradientRun run{columns.count * c_.y.batch, c_.y.channels, 0, sources.data()};
    for (const TapSource& h : rows.taps)
      for (const TapSource& v : columns.taps) {
        const std::int64_t at = c_.x.offset(h.source + row * rows.source_step, v.source);
        sources[static_cast<std::size_t>(run.taps)] =
            static_cast<const std::byte*>(arguments.inputs[0]) + at * bytes(c_.x.type);
        sums[static_cast<std::size_t>(run.taps++)] =
            static_cast<float*>(arguments.outputs[0]) + (h.tap * c_.window.width + v.tap) * c_.y.channels;
      }
    run.source_stride = c_.x.column_stride * columns.source_step;
    run.gradient = static_cast<const std::byte*>(arguments.inputs[1]) +
                   c_.y.offset(rows.first + row, columns.first) * bytes(c_.y.type);
    run.gradient_stride = c_.y.column_stride * columns.result_step;
    run.sums = sums.data();
    loop_(run);
  }

  Convolution c_;
  TapSide side_;
  DepthwiseGradientLoop* loop_;
  ColumnSum* column_sum_;
};

}  // namespace

Prepared prepare_depthwise_forward(const Convolution& c) { return prepare(c, forward_side); }
Prepared prepare_depthwise_input_gradient(const Convolution& c) { return prepare(c, gradient_side); }

Prepared prepare_depthwise_weight_gradient(const Convolution& c) {
  if (std::string fault = fault_of_depthwise(c); !fault.empty()) return refuse(name, fault);
  if (!c.epilogue.steps.empty()) return refuse(name, "a weight gradient has no epilogue");
  if (c.x.type != c.y.type) return refuse(name, "x and dy differ in type");
  KernelInfo info;
  info.name = fmt::format("weight gradient, depthwise{}", c.bias_gradient ? " + bias" : "");
  info.flops = 2 * multiply_adds(c) + (c.bias_gradient ? static_cast<double>(c.y.element_count()) : 0);
  info.bytes = bytes_of(c.x) + bytes_of(c.y);
  info.inputs = 2;
  info.outputs = c.bias_gradient ? 2 : 1;
  info.weights = WeightLayout::taps_channels;
  return std::make_unique<DepthwiseWeightGradient>(std::move(info), c);
}

}  // namespace superstep::kernels
