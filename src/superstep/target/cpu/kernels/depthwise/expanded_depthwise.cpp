#include "superstep/target/cpu/kernels/depthwise/expanded_depthwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "superstep/target/cpu/kernels/core/epilogue_run.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "superstep/target/cpu/kernels/depthwise/depthwise_loops.h"
#include "superstep/target/cpu/kernels/product/batch_reduce.h"

namespace superstep::kernels {

namespace {

constexpr const char* name = "expanded depthwise";
constexpr std::int64_t strip_bytes = 384 * 1024;     // of the expansion: beside weights, x and y in 1 MB
constexpr std::int64_t product_columns = 60;         // of the expansion, between its product and its epilogue
constexpr std::int64_t most_depthwise_columns = 16;  // of a tile, whose windows stay in the first-level cache

// The expansion in scratch: rows of `columns` columns, zeros at both ends where windows reach beyond the
// image.
struct Buffer {
  std::int64_t pad_left, width, columns;
};

// Rows of the result, and the rows of the expansion that they read.
struct Strip {
  std::int64_t first_result, results, first_source, sources;
};

// The expansion of so many columns of an image: whole rows, or a piece of one.
struct ProductTile {
  std::int64_t row, rows, column, columns;  // `columns` of each row
};

Buffer buffer_of(const Convolution& c) {
  const Window& w = c.window;
  const std::int64_t reached = (c.y.width - 1) * w.stride_w + (w.width - 1) * w.dilation_w + 1;
  return {w.pad_left, c.x.width, std::max(reached, w.pad_left + c.x.width)};
}

Strip strip_at(const Convolution& c, std::int64_t first, std::int64_t count) {
  const Window& w = c.window;
  const std::int64_t top = first * w.stride_h - w.pad_top;
  const std::int64_t end = (first + count - 1) * w.stride_h - w.pad_top + (w.height - 1) * w.dilation_h + 1;
  const std::int64_t source = std::clamp<std::int64_t>(top, 0, c.x.height);
  return {first, count, source, std::clamp<std::int64_t>(end, source, c.x.height) - source};
}

std::vector<Strip> strips_of(const Convolution& c, std::int64_t row_bytes) {
  const Window& w = c.window;
  const std::int64_t fitting = strip_bytes / row_bytes - (w.height - 1) * w.dilation_h - 1;
  const std::int64_t most = std::max<std::int64_t>(1, fitting / w.stride_h + 1);
  const std::int64_t count = (c.y.height + most - 1) / most;
  std::vector<Strip> strips;
  for (std::int64_t i = 0; i < count; ++i) {
    const PartRange rows = part_range(c.y.height, i, count);
    strips.push_back(strip_at(c, rows.begin, rows.end - rows.begin));
  }
  return strips;
}

std::vector<ProductTile> product_tiles(std::int64_t rows, std::int64_t width) {
  std::vector<ProductTile> tiles;
  if (const std::int64_t together = product_columns / width; together > 0) {
    for (std::int64_t row = 0; row < rows; row += together)
      tiles.push_back({row, std::min(together, rows - row), 0, width});
    return tiles;
  }
  const std::int64_t pieces = (width + product_columns - 1) / product_columns;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      const PartRange range = part_range(width, piece, pieces);
      tiles.push_back({row, 1, range.begin, range.end - range.begin});
    }
  return tiles;
}

bool reads_channels_alone(const Epilogue& epilogue) {
  return std::ranges::all_of(epilogue.steps, [](const EpilogueStep& step) {
    return step.op == EpilogueOp::bias || step.op == EpilogueOp::scale_channels ||
           step.op == EpilogueOp::scale || step.op == EpilogueOp::activate;
  });
}

std::int64_t bytes(ElementType type) { return static_cast<std::int64_t>(size_in_bytes(type)); }

// As if what lies between were an image in f32.
ExpandedDepthwise with_f32_between(ExpandedDepthwise pair) {
  pair.expand.y.type = pair.depthwise.x.type = ElementType::f32;
  return pair;
}

std::string fault_of(const ExpandedDepthwise& pair) {
  const Convolution &e = pair.expand, &d = pair.depthwise;
  for (const Convolution* c : {&e, &d}) {
    if (std::string fault = fault_of(*c); !fault.empty()) return fault;
    if (!reads_channels_alone(c->epilogue)) return "an epilogue reads a tensor";
    if (c->accumulate) return "a result is added to";
  }
  if (e.x.type == ElementType::bf16 && e.x.channels % 2 != 0) return "an odd channel of x has no pair";
  if (!e.window.is_pointwise() || e.groups != 1) return "the expansion is not pointwise";
  if (std::string fault = volume_fault(d.x, d.y, d.window); !fault.empty()) return fault;
  if (e.x.height != e.y.height || e.x.width != e.y.width) return "the expansion cuts its image";
  if (!e.x.rows_join()) return "the rows of x do not join";
  if (e.y.height != d.x.height || e.y.width != d.x.width || e.y.channels != d.x.channels)
    return "the expansion is not what the depthwise convolution reads";
  if (d.groups != d.x.channels || d.y.channels != d.x.channels) return "the second one is not depthwise";
  if (e.x.element_count() < 1 || d.y.element_count() < 1) return "an image is empty";
  if (d.window.pad_left < 0 || d.window.pad_top < 0) return "a negative padding";
  return {};
}

// What belongs to panels of one width.
struct Panel {
  std::int64_t channels = 0;
  std::map<std::int64_t, BatchReduceProduct> products;  // by columns
  std::vector<std::int64_t> source_offsets;             // of the window's taps, in the buffer
};

class ExpandedDepthwiseKernel final : public Kernel {
 public:
  static Prepared prepare(const ExpandedDepthwise& pair);

  void run(const Arguments& arguments) const override {
    for (std::int64_t unit = 0; unit < units_; ++unit) run_unit(arguments, unit);
  }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    const PartRange units = part_range(units_, part, info_.parts);
    for (std::int64_t unit = units.begin; unit < units.end; ++unit) run_unit(arguments, unit);
  }

 private:
  // Which part of the work: a strip of an image, for one panel of channels.
  struct Unit {
    const Strip& strip;
    const Panel& panel;
    std::int64_t image, first_channel;
  };

  ExpandedDepthwiseKernel(const ExpandedDepthwise& pair, const DepthwiseEpilogue& finish)
      : Kernel({}), e_(pair.expand), d_(pair.depthwise), buffer_(buffer_of(d_)), finish_(finish) {}
  std::expected<void, std::string> prepare_panels();
  std::expected<Panel, std::string> make_panel(std::int64_t channels) const;
  void describe();
  void run_unit(const Arguments& arguments, std::int64_t number) const;
  void clear_margins(const Unit& unit, float* buffer) const;
  void expand(const Arguments& arguments, const Unit& unit, float* buffer, float* tile) const;
  void convolve(const Arguments& arguments, const Unit& unit, const float* buffer) const;

  Convolution e_, d_;
  Buffer buffer_;
  DepthwiseEpilogue finish_;
  DepthwiseLoop* loop_ = nullptr;
  EpilogueRunner epilogue_;  // of the expansion
  std::vector<Strip> strips_;
  std::vector<std::int64_t> weight_offsets_;  // of the window's taps
  Panel full_, last_;
  std::int64_t panels_ = 1, strip_rows_ = 0, units_ = 0;
};

std::expected<Panel, std::string> ExpandedDepthwiseKernel::make_panel(std::int64_t channels) const {
  Panel panel{.channels = channels, .products = {}, .source_offsets = {}};
  const Window& w = d_.window;
  for (std::int64_t i = 0; i < w.height; ++i)
    for (std::int64_t j = 0; j < w.width; ++j)
      panel.source_offsets.push_back((i * w.dilation_h * buffer_.columns + j * w.dilation_w) * channels);
  ProductShape shape{.m = channels, .k = e_.x.channels, .a_stride = channels};
  shape.type = e_.x.type;
  shape.pairs = shape.type == ElementType::bf16;
  shape.b_n_stride = e_.x.batch * e_.x.column_stride;
  shape.c_stride = channels;
  for (const Strip& strip : strips_)
    for (const ProductTile& tile : product_tiles(strip.sources, buffer_.width)) {
      shape.n = tile.rows * tile.columns;
      if (panel.products.contains(shape.n)) continue;
      auto product = BatchReduceProduct::prepare(shape, ProductMaker::libxsmm);
      if (!product) product = BatchReduceProduct::prepare(shape, ProductMaker::portable);
      if (!product) return std::unexpected(product.error());
      panel.products.emplace(shape.n, *product);
    }
  return panel;
}

std::expected<void, std::string> ExpandedDepthwiseKernel::prepare_panels() {
  const std::int64_t channels = d_.x.channels, width = std::min(channels, panel_width);
  panels_ = (channels + panel_width - 1) / panel_width;
  strips_ = strips_of(d_, buffer_.columns * width * 4);
  for (const Strip& strip : strips_) strip_rows_ = std::max(strip_rows_, strip.sources);
  units_ = panels_ * d_.x.batch * static_cast<std::int64_t>(strips_.size());
  for (std::int64_t tap = 0; tap < d_.window.height * d_.window.width; ++tap)
    weight_offsets_.push_back(tap * channels);
  auto epilogue = EpilogueRunner::prepare(e_.epilogue, dense_image(1, 1, 1, channels));
  if (!epilogue) return std::unexpected(epilogue.error());
  epilogue_ = *epilogue;
  loop_ = depthwise_loop(ElementType::f32, d_.y.type, finish_.finish);
  auto full = make_panel(width);
  if (!full) return std::unexpected(full.error());
  auto last = make_panel(channels - (panels_ - 1) * panel_width);
  if (!last) return std::unexpected(last.error());
  full_ = std::move(*full);
  last_ = std::move(*last);
  return {};
}

void ExpandedDepthwiseKernel::describe() {
  // What is done on the way stands at the end, as everywhere: kernels that differ in that alone are a family.
  const std::string done = e_.epilogue.steps.empty() ? to_string(d_.epilogue)
                           : d_.epilogue.steps.empty()
                               ? to_string(e_.epilogue)
                               : to_string(e_.epilogue) + ", " + to_string(d_.epilogue);
  info_.name = fmt::format("expansion and depthwise convolution, {} strips of {} rows x {} channels{}{}",
                           strips_.size(), strip_rows_, full_.channels, done.empty() ? "" : " + ", done);
  info_.flops = 2 * (multiply_adds(e_) + multiply_adds(d_));
  const std::int64_t taps = d_.window.height * d_.window.width;
  info_.bytes = static_cast<double>(
      bytes(e_.x.type) * (e_.x.element_count() + d_.x.channels * e_.x.channels) +
      bytes(d_.y.type) * d_.y.element_count() + bytes(ElementType::f32) * d_.x.channels * taps);
  info_.arithmetic = multiplied_as(e_.x.type);
  const std::int64_t columns = strip_rows_ * buffer_.columns + product_columns;
  info_.scratch_bytes = static_cast<std::size_t>(columns * full_.channels) * sizeof(float);
  info_.inputs = 3 + e_.epilogue.inputs() + d_.epilogue.inputs();
  info_.outputs = 1;
  info_.parts = std::clamp<std::int64_t>(units_, 1, most_parts);
  info_.weights = expansion_layout({e_, d_});
}

Prepared ExpandedDepthwiseKernel::prepare(const ExpandedDepthwise& described_pair) {
  const ExpandedDepthwise pair = with_f32_between(described_pair);
  if (std::string fault = fault_of(pair); !fault.empty()) return refuse(name, fault);
  const auto finish = depthwise_epilogue(pair.depthwise.epilogue);
  if (!finish) return refuse(name, "the depthwise loop has no such epilogue");
  std::unique_ptr<ExpandedDepthwiseKernel> kernel(new ExpandedDepthwiseKernel(pair, *finish));
  if (auto prepared = kernel->prepare_panels(); !prepared) return refuse(name, prepared.error());
  kernel->describe();
  return kernel;
}

// Panels lie outside, so that a panel's weights are read from memory once.
void ExpandedDepthwiseKernel::run_unit(const Arguments& arguments, std::int64_t number) const {
  const auto strips = static_cast<std::int64_t>(strips_.size());
  const std::int64_t panel = number / (strips * d_.x.batch);
  const Unit unit{strips_[static_cast<std::size_t>(number % strips)], panel + 1 == panels_ ? last_ : full_,
                  number / strips % d_.x.batch, panel * panel_width};
  auto* tile = static_cast<float*>(arguments.scratch);
  float* buffer = tile + product_columns * full_.channels;
  clear_margins(unit, buffer);
  expand(arguments, unit, buffer, tile);
  convolve(arguments, unit, buffer);
}

void ExpandedDepthwiseKernel::clear_margins(const Unit& unit, float* buffer) const {
  const std::int64_t channels = unit.panel.channels, right = buffer_.pad_left + buffer_.width;
  for (std::int64_t row = 0; row < unit.strip.sources; ++row, buffer += buffer_.columns * channels) {
    std::fill_n(buffer, buffer_.pad_left * channels, 0.0f);
    std::fill_n(buffer + right * channels, (buffer_.columns - right) * channels, 0.0f);
  }
}

void ExpandedDepthwiseKernel::expand(const Arguments& arguments, const Unit& unit, float* buffer,
                                     float* tile) const {
  const std::int64_t channels = unit.panel.channels;
  const std::int64_t size = bytes(e_.x.type);
  const std::byte* weights =
      static_cast<const std::byte*>(arguments.inputs[1]) + unit.first_channel * e_.x.channels * size;
  for (const ProductTile& t : product_tiles(unit.strip.sources, buffer_.width)) {
    const std::int64_t column = (unit.strip.first_source + t.row) * e_.x.width + t.column;
    const std::byte* x = static_cast<const std::byte*>(arguments.inputs[0]) +
                         (column * e_.x.batch + unit.image) * e_.x.column_stride * size;
    unit.panel.products.at(t.rows * t.columns)(weights, x, tile);
    for (std::int64_t row = 0; row < t.rows; ++row) {
      const std::int64_t target = (t.row + row) * buffer_.columns + buffer_.pad_left + t.column;
      epilogue_.apply({tile + row * t.columns * channels, channels, buffer + target * channels,
                       ElementType::f32, channels, t.columns, channels},
                      {.channel = unit.first_channel}, arguments.inputs.data() + 2, nullptr);
    }
  }
}

void ExpandedDepthwiseKernel::convolve(const Arguments& arguments, const Unit& unit,
                                       const float* buffer) const {
  const Window& w = d_.window;
  const std::size_t weights = 2 + e_.epilogue.inputs();  // the slot
  const std::int64_t channels = unit.panel.channels,
                     tiles = (d_.y.width + most_depthwise_columns - 1) / most_depthwise_columns;
  DepthwiseRun run{.columns = 0, .channels = channels, .taps = {}};
  run.weights = static_cast<const float*>(arguments.inputs[weights]) + unit.first_channel;
  if (finish_.bias) run.bias = static_cast<const float*>(arguments.inputs[weights + 1]) + unit.first_channel;
  run.low = finish_.low, run.high = finish_.high;
  run.source_stride = w.stride_w * channels;
  run.result_stride = d_.y.batch * d_.y.column_stride;
  auto* y = static_cast<std::byte*>(arguments.outputs[0]) +
            (unit.image * d_.y.column_stride + unit.first_channel) * bytes(d_.y.type);
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const PartRange columns = part_range(d_.y.width, tile, tiles);
    run.columns = columns.end - columns.begin;
    for (std::int64_t i = 0; i < unit.strip.results; ++i) {
      const std::int64_t row = unit.strip.first_result + i;
      const TapRange taps = valid_taps(row, w.height, w.stride_h, w.dilation_h, w.pad_top, d_.x.height);
      const std::int64_t source =
          row * w.stride_h - w.pad_top + taps.begin * w.dilation_h - unit.strip.first_source;
      run.taps = {(taps.end - taps.begin) * w.width, unit.panel.source_offsets.data(),
                  weight_offsets_.data() + taps.begin * w.width};
      run.source = buffer + (source * buffer_.columns + columns.begin * w.stride_w) * channels;
      run.result = y + (row * d_.y.row_stride + columns.begin * run.result_stride) * bytes(d_.y.type);
      loop_(run);
    }
  }
}

}  // namespace

WeightLayout expansion_layout(const ExpandedDepthwise& pair) {
  return pair.expand.x.type == ElementType::bf16 ? WeightLayout::taps_in_out_pairs
                                                 : WeightLayout::taps_in_out;
}

Prepared prepare(const ExpandedDepthwise& pair) { return ExpandedDepthwiseKernel::prepare(pair); }

}  // namespace superstep::kernels
