#include "superstep/target/cpu/kernels/convolution/stem.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/convolution/stem_loops.h"
#include "superstep/target/cpu/kernels/convolution/tap_plan.h"

namespace superstep::kernels {

namespace {

constexpr const char* name = "first convolution";

std::string fault_of(const StemConvolution& stem) {
  const Convolution& c = stem.convolution;
  if (std::string fault = fault_of(c); !fault.empty()) return fault;
  if (std::string fault = volume_fault(c.x, c.y, c.window); !fault.empty()) return fault;
  if (stem.x.type != ElementType::f32) return "the picture is not f32";
  if (stem.x.channels != c.x.channels || stem.x.height != c.x.height || stem.x.width != c.x.width)
    return "the planes are another picture's";
  if (c.groups != 1 || c.accumulate) return "the channels are in groups, or a result is added to";
  if (c.x.channels > most_planar_channels) return "many channels are read faster side by side";
  if (c.y.channels > most_stem_outputs) return "more outputs than a panel of weights has";
  const std::int64_t width = stem_lanes(), vectors = (c.y.channels + width - 1) / width;
  if (4 * c.y.channels < 3 * vectors * width) return "vectors of outputs would be nearly empty";
  return {};
}

class StemKernel final : public Kernel {
 public:
  StemKernel(KernelInfo info, const StemConvolution& stem, const DepthwiseEpilogue& finish)
      : Kernel(std::move(info)),
        c_(stem.convolution),
        x_(stem.x),
        finish_(finish),
        loop_(stem_loop(c_.y.type, finish.finish)),
        columns_(forward_runs(columns_of(c_), true)) {
    for (const Run& run : forward_runs(rows_of(c_), true)) add_rows(run);
    std::ranges::sort(rows_, {}, &Row::result);
    info_.parts = std::clamp<std::int64_t>(c_.y.height, 1, most_parts);
  }

  void run(const Arguments& arguments) const override { run_rows(arguments, {0, c_.y.height}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_rows(arguments, part_range(c_.y.height, part, info_.parts));
  }

 private:
  // A row of results: the lowest row of the picture that it reads, and its taps for the first of the runs of
  // columns, behind which those for the others stand.
  struct Row {
    std::int64_t result, source;
    std::size_t taps;
  };
  // Where the taps of a run of rows and one of columns stand in the lists of offsets.
  struct TapRange {
    std::size_t first, count;
  };

  void add_rows(const Run& run) {
    const std::size_t taps = taps_.size();
    for (const Run& columns : columns_) add_taps(run, columns);
    for (std::int64_t i = 0; i < run.count; ++i)
      rows_.push_back({run.first + i * run.result_step, lowest_source(run) + i * run.source_step, taps});
  }

  void add_taps(const Run& rows, const Run& columns) {
    const std::size_t first = sources_.size();
    for (const TapSource& row : rows.taps)
      for (const TapSource& column : columns.taps)
        for (std::int64_t channel = 0; channel < x_.channels; ++channel) {
          sources_.push_back(channel * x_.channel + (row.source - lowest_source(rows)) * x_.row +
                             column.source);
          weights_.push_back(((row.tap * c_.window.width + column.tap) * x_.channels + channel) *
                             c_.y.channels);
        }
    taps_.push_back({first, sources_.size() - first});
  }

  void run_rows(const Arguments& arguments, PartRange range) const {
    StemRun run{.columns = 0, .channels = c_.y.channels, .taps = {}};
    run.weights = static_cast<const float*>(arguments.inputs[1]);
    if (finish_.bias) run.bias = static_cast<const float*>(arguments.inputs[2]);
    run.low = finish_.low, run.high = finish_.high;
    for (std::int64_t row = range.begin; row < range.end; ++row)
      for (std::int64_t sample = 0; sample < c_.y.batch; ++sample)
        run_row(arguments, rows_[static_cast<std::size_t>(row)], sample, run);
  }

  void run_row(const Arguments& arguments, const Row& row, std::int64_t sample, StemRun run) const {
    const Image& y = c_.y;
    const float* x =
        static_cast<const float*>(arguments.inputs[0]) + sample * x_.sample + row.source * x_.row;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Run& columns = columns_[i];
      const TapRange& taps = taps_[row.taps + i];
      run.columns = columns.count;
      run.taps = {static_cast<std::int64_t>(taps.count), sources_.data() + taps.first,
                  weights_.data() + taps.first};
      run.source = x;
      run.source_stride = columns.source_step;
      run.result_stride = columns.result_step * y.batch * y.column_stride;
      run.result = static_cast<std::byte*>(arguments.outputs[0]) +
                   (row.result * y.row_stride + (columns.first * y.batch + sample) * y.column_stride) *
                       static_cast<std::int64_t>(size_in_bytes(y.type));
      loop_(run);
    }
  }

  Convolution c_;
  Planes x_;
  DepthwiseEpilogue finish_;
  StemLoop* loop_;
  std::vector<Run> columns_;
  std::vector<Row> rows_;
  std::vector<TapRange> taps_;
  std::vector<std::int64_t> sources_, weights_;
};

}  // namespace

Prepared prepare(const StemConvolution& stem) {
  if (std::string fault = fault_of(stem); !fault.empty()) return refuse(name, fault);
  const Convolution& c = stem.convolution;
  const auto finish = depthwise_epilogue(c.epilogue);
  if (!finish) return refuse(name, "the loop has no such epilogue");
  KernelInfo info;
  info.name = fmt::format("convolution of planes, {} outputs{}", c.y.channels,
                          c.epilogue.steps.empty() ? "" : " + " + to_string(c.epilogue));
  info.flops = 2 * multiply_adds(c);
  info.bytes = static_cast<double>(c.x.element_count()) * sizeof(float) +
               static_cast<double>(c.y.element_count()) * static_cast<double>(size_in_bytes(c.y.type));
  info.inputs = 2 + c.epilogue.inputs();
  info.outputs = 1;
  info.weights = WeightLayout::taps_in_out;
  return std::make_unique<StemKernel>(std::move(info), stem, *finish);
}

}  // namespace superstep::kernels
