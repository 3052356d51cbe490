#include "superstep/target/cpu/kernels/convolution/planar_gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "superstep/target/cpu/kernels/convolution/plane_lines.h"

namespace superstep::kernels {
namespace {

// Rows of dy whose products are summed in f32, lane by lane. Chosen: sums over them err as those of a few
// hundred terms do, and adding up the lanes costs a hundredth of the products of rows of 100 columns.
constexpr std::int64_t rows_a_sum = 16;

struct Channel {
  std::size_t part;
  std::int64_t channel;
};

class PlanarGradientKernel final : public Kernel {
 public:
  PlanarGradientKernel(KernelInfo info, const PlanarWeightGradient& gradient)
      : Kernel(std::move(info)),
        g_(gradient),
        loops_(planar_loops()),
        lines_(g_.x, g_.window, g_.parts.front().dy.width) {
    for (std::size_t part = 0; part < g_.parts.size(); ++part)
      for (std::int64_t channel = 0; channel < g_.parts[part].dy.channels; ++channel)
        channels_.push_back({part, channel});
    info_.scratch_bytes = workspace(nullptr).bytes;
  }

  const PlanarWeightGradient& gradient() const { return g_; }

  void run(const Arguments& arguments) const override {
    const Workspace w = workspace(arguments.scratch);
    std::fill_n(w.sums, sums() * loops_.lanes, 0.0f);
    std::fill_n(w.totals, sums(), 0.0);
    PlaneLines::Progress progress;
    for (std::int64_t sample = 0, summed = 0; sample < g_.batch; ++sample)
      for (std::int64_t row = 0; row < dy().height; ++row) {
        const TapRange taps = lines_.advance(progress, arguments.inputs[0], w.lines, sample, row);
        add_row(arguments, w, sample, row, taps);
        if (++summed % rows_a_sum == 0) add_lanes(w);
      }
    add_lanes(w);
    store(arguments, w);
  }

 private:
  // Memory of one run, cut out of the scratch. Sums are by channel together, in the order of the loops:
  // [channels together][tap's row][channel of x][taps together][tap][channel].
  struct Workspace {
    float* lines;    // rows of x between zeros
    float* rows;     // of dy in f32, where it is bf16
    float* sums;     // vectors
    double* totals;  // of their lanes
    std::size_t bytes;
  };

  const Planes& dy() const { return g_.parts.front().dy; }
  std::int64_t taps() const { return g_.window.height * g_.window.width; }
  std::int64_t sums() const { return static_cast<std::int64_t>(channels_.size()) * g_.x.channels * taps(); }
  Workspace workspace(void* scratch) const;
  const float* row_of(const Arguments& arguments, const Workspace& w, std::size_t channel, std::int64_t at,
                      std::int64_t sample, std::int64_t row) const;
  void add_row(const Arguments& arguments, const Workspace& w, std::int64_t sample, std::int64_t row,
               TapRange inside) const;
  void add_taps(const Workspace& w, const float* const* dy, std::int64_t count, std::int64_t row,
                TapRange taps, float* sums) const;
  void add_lanes(const Workspace& w) const;
  void store(const Arguments& arguments, const Workspace& w) const;
  std::size_t together(std::size_t first) const {
    return std::min<std::size_t>(channels_.size() - first, planar_channels_together);
  }

  PlanarWeightGradient g_;
  std::vector<Channel> channels_;
  const PlanarLoops& loops_;
  PlaneLines lines_;
};

PlanarGradientKernel::Workspace PlanarGradientKernel::workspace(void* scratch) const {
  ScratchPieces pieces(scratch);
  Workspace w{};
  w.lines = pieces.take<float>(lines_.elements());
  w.rows = pieces.take<float>(planar_channels_together * dy().width);
  w.sums = pieces.take<float>(sums() * loops_.lanes);
  w.totals = pieces.take<double>(sums());
  w.bytes = pieces.bytes();
  return w;
}

// The row of dy of a channel, the one with number `at` among those together.
const float* PlanarGradientKernel::row_of(const Arguments& arguments, const Workspace& w, std::size_t channel,
                                          std::int64_t at, std::int64_t sample, std::int64_t row) const {
  const Channel& own = channels_[channel];
  const Planes& planes = g_.parts[own.part].dy;
  const void* const all = arguments.inputs[1 + own.part];
  const std::int64_t offset = sample * planes.sample + own.channel * planes.channel + row * planes.row;
  const auto size = static_cast<std::int64_t>(size_in_bytes(planes.type));
  fetch_next_row(static_cast<const std::byte*>(all) + offset * size, planes.row * size);
  if (planes.type == ElementType::f32) return static_cast<const float*>(all) + offset;
  float* const wide = w.rows + at * planes.width;
  loops_.line_of_bf16(static_cast<const bf16*>(all) + offset, planes.width, wide);
  return wide;
}

void PlanarGradientKernel::add_row(const Arguments& arguments, const Workspace& w, std::int64_t sample,
                                   std::int64_t row, TapRange inside) const {
  float* sums = w.sums;
  for (std::size_t first = 0; first < channels_.size(); first += together(first)) {
    const auto count = static_cast<std::int64_t>(together(first));
    const float* rows[planar_channels_together] = {};
    for (std::int64_t i = 0; i < count; ++i)
      rows[i] = row_of(arguments, w, first + static_cast<std::size_t>(i), i, sample, row);
    add_taps(w, rows, count, row, inside, sums);
    sums += count * g_.x.channels * taps() * loops_.lanes;
  }
}

void PlanarGradientKernel::add_taps(const Workspace& w, const float* const* dy, std::int64_t count,
                                    std::int64_t row, TapRange taps, float* sums) const {
  const Window& window = g_.window;
  const std::int64_t most = loops_.taps_together[count - 1];
  for (std::int64_t tap = taps.begin; tap < taps.end; ++tap)
    for (std::int64_t c = 0; c < g_.x.channels; ++c) {
      const float* const line = lines_.at(w.lines, lines_.top(row) + tap * window.dilation_h, c);
      float* const to = sums + (tap * g_.x.channels + c) * window.width * count * loops_.lanes;
      for (std::int64_t k = 0; k < window.width; k += most) {
        const std::int64_t some = std::min(most, window.width - k);
        loops_.gradient_of[count - 1][some - 1]({.x = line + k * window.dilation_w,
                                                 .dilation = window.dilation_w,
                                                 .dy = dy,
                                                 .columns = this->dy().width,
                                                 .sums = to + k * count * loops_.lanes});
      }
    }
}

void PlanarGradientKernel::add_lanes(const Workspace& w) const {
  for (std::int64_t i = 0; i < sums(); ++i) {
    float* const lanes = w.sums + i * loops_.lanes;
    double sum = 0;
    for (std::int64_t lane = 0; lane < loops_.lanes; ++lane) sum += static_cast<double>(lanes[lane]);
    w.totals[i] += sum;
    std::fill_n(lanes, loops_.lanes, 0.0f);
  }
}

void PlanarGradientKernel::store(const Arguments& arguments, const Workspace& w) const {
  const std::int64_t in = g_.x.channels, width = g_.window.width;
  const double* from = w.totals;
  for (std::size_t first = 0; first < channels_.size(); first += together(first))
    for (std::int64_t h = 0; h < g_.window.height; ++h)
      for (std::int64_t c = 0; c < in; ++c)
        for (std::int64_t k = 0; k < width; ++k)
          for (std::size_t i = first; i < first + together(first); ++i) {
            const PlanarWeightGradient::Part& part = g_.parts[channels_[i].part];
            float& to = static_cast<float*>(arguments.outputs[channels_[i].part])
                [((channels_[i].channel * in + c) * g_.window.height + h) * width + k];
            const auto sum = static_cast<float>(*from++);
            to = part.accumulate ? to + sum : sum;
          }
}

std::string fault_of(const PlanarWeightGradient& g) {
  if (std::string fault = fault_over_planes(g.window); !fault.empty()) return fault;
  if (std::string fault = fault_of(g.x, g.batch); !fault.empty()) return fault;
  if (g.parts.empty()) return "there is no cotangent";
  for (const auto& part : g.parts) {
    if (std::string fault = fault_of(part.dy, g.batch); !fault.empty()) return fault;
    if (part.dy.height != g.parts[0].dy.height || part.dy.width != g.parts[0].dy.width)
      return "the cotangents are not of the same extents";
  }
  return {};
}

}  // namespace

Prepared prepare(const PlanarWeightGradient& g) {
  if (std::string fault = fault_of(g); !fault.empty()) return refuse("planes", fault);
  KernelInfo info;
  info.inputs = 1 + g.parts.size();
  info.outputs = g.parts.size();
  info.bytes = bytes_of(g.x, g.batch);
  info.arithmetic = ElementType::f32;
  std::int64_t channels = 0;
  for (const auto& part : g.parts) {
    info.bytes += bytes_of(part.dy, g.batch) +
                  static_cast<double>(part.dy.channels * g.x.channels * g.window.taps()) * sizeof(float);
    channels += part.dy.channels;
  }
  info.flops =
      2 * multiply_adds_over_planes(g.x, g.window, g.parts[0].dy, g.batch) * static_cast<double>(channels);
  info.name = fmt::format("planar weight gradient, {} to {} channels, {} x {} taps", g.x.channels, channels,
                          g.window.height, g.window.width);
  return std::make_unique<PlanarGradientKernel>(std::move(info), g);
}

bool is_planar_gradient(const Kernel& kernel) {
  return dynamic_cast<const PlanarGradientKernel*>(&kernel) != nullptr;
}

std::optional<PlanarWeightGradient> joined_gradients(const Kernel& first, const Kernel& second) {
  const auto* a = dynamic_cast<const PlanarGradientKernel*>(&first);
  const auto* b = dynamic_cast<const PlanarGradientKernel*>(&second);
  if (!a || !b) return std::nullopt;
  return with_parts_of_both(a->gradient(), b->gradient(), &PlanarWeightGradient::Part::dy);
}

}  // namespace superstep::kernels
