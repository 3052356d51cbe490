#include "superstep/target/cpu/kernels/convolution/planar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "superstep/base/integers.h"
#include "superstep/target/cpu/kernels/convolution/planar_loops.h"
#include "superstep/target/cpu/kernels/core/epilogue_run.h"
#include "superstep/target/cpu/kernels/core/range_kernel.h"

namespace superstep::kernels {
namespace {

// A plane as the image of one channel that epilogues run over.
Image image_of(const Planes& planes) {
  Image image = dense_image(planes.height, planes.width, 1, 1, planes.type);
  image.row_stride = std::max(planes.row, planes.width);
  return image;
}

struct PlanarPart {
  Planes y;
  EpilogueRunner epilogue;
  std::size_t first_input;  // the slot of its weights
  bool direct;              // sums are written where they belong, and that is all
};

// Channels that are summed side by side, which may belong to different parts.
struct PlanarChannel {
  std::size_t part;
  std::int64_t channel;
};

class PlanarKernel final : public RangeKernel {
 public:
  PlanarKernel(KernelInfo info, const PlanarConvolution& convolution, std::vector<PlanarPart> parts)
      : RangeKernel(std::move(info)), c_(convolution), parts_(std::move(parts)), loops_(planar_loops()) {
    for (std::size_t part = 0; part < parts_.size(); ++part)
      for (std::int64_t channel = 0; channel < parts_[part].y.channels; ++channel)
        channels_.push_back({part, channel});
    const Window& w = c_.window;
    slots_ = (w.height - 1) * w.dilation_h + 1;
    line_ = round_up(y().width, loops_.lanes) + (w.width - 1) * w.dilation_w;
    inside_ = std::clamp<std::int64_t>(line_ - w.pad_left, 0, c_.x.width);
    info_.scratch_bytes = workspace(nullptr).bytes;
    info_.parts = std::clamp<std::int64_t>(units(), 1, most_parts);
  }

  const PlanarConvolution& convolution() const { return c_; }

  // A unit is a row of a sample.
  std::int64_t units() const override { return c_.batch * y().height; }
  bool reads_units(std::size_t) const override { return false; }
  bool writes_units(std::size_t output) const override {
    const Planes& y = parts_[output].y;
    return y.channels == 1 && y.row == y.width && (c_.batch == 1 || y.sample == y.height * y.row);
  }

  void run(const Arguments& arguments) const override { run_range(arguments, {0, units()}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_range(arguments, part_range(units(), part, info_.parts));
  }
  void run_range(const Arguments& arguments, PartRange units) const override;

 private:
  // Memory of one run, cut out of the scratch.
  struct Workspace {
    float* lines;    // [slot][channel of x]: rows of x between zeros, by their number modulo the slots
    float* weights;  // of the channels together: [tap's row][channel of x][tap][channel of y]
    float* rows;     // of y, before an epilogue
    const float** pointers;  // lines under a row of windows
    std::size_t bytes;
  };
  struct Row {
    std::int64_t sample, row;
    TapRange taps;  // rows of taps inside the image
  };

  const Planes& y() const { return parts_.front().y; }
  std::int64_t taps() const { return c_.window.height * c_.window.width; }
  Workspace workspace(void* scratch) const;
  void arrange_weights(const Arguments& arguments, const Workspace& w) const;
  void fill_line(const Arguments& arguments, const Workspace& w, std::int64_t sample, std::int64_t row) const;
  void run_row(const Arguments& arguments, const Workspace& w, const Row& row) const;
  void finish(const Arguments& arguments, const PlanarChannel& channel, const Row& row,
              const float* sums) const;
  float* line_at(const Workspace& w, std::int64_t row, std::int64_t channel) const {
    return w.lines + (row % slots_ * c_.x.channels + channel) * line_;
  }
  // Channels from `first` on that are summed side by side.
  std::size_t together(std::size_t first) const {
    return std::min<std::size_t>(channels_.size() - first, planar_channels_together);
  }
  std::int64_t offset(const Planes& planes, std::int64_t sample, std::int64_t channel,
                      std::int64_t row) const {
    return sample * planes.sample + channel * planes.channel + row * planes.row;
  }

  PlanarConvolution c_;
  std::vector<PlanarPart> parts_;
  std::vector<PlanarChannel> channels_;
  const PlanarLoops& loops_;
  std::int64_t slots_ = 1;   // rows of x that lie between zeros at a time
  std::int64_t line_ = 0;    // elements of such a row
  std::int64_t inside_ = 0;  // those of the image
};

PlanarKernel::Workspace PlanarKernel::workspace(void* scratch) const {
  std::size_t used = 0;
  const auto take = [&](std::int64_t count, std::size_t size) -> void* {
    std::byte* const part = scratch ? static_cast<std::byte*>(scratch) + used : nullptr;
    used += round_up(static_cast<std::size_t>(count) * size, std::size_t{64});
    return part;
  };
  Workspace w{};
  w.lines = static_cast<float*>(take(slots_ * c_.x.channels * line_, sizeof(float)));
  w.weights = static_cast<float*>(
      take(static_cast<std::int64_t>(channels_.size()) * c_.x.channels * taps(), sizeof(float)));
  w.rows = static_cast<float*>(take(planar_channels_together * y().width, sizeof(float)));
  w.pointers = static_cast<const float**>(take(c_.window.height * c_.x.channels, sizeof(float*)));
  w.bytes = used;
  return w;
}

void PlanarKernel::arrange_weights(const Arguments& arguments, const Workspace& w) const {
  const bool narrow = c_.x.type == ElementType::bf16;
  const std::int64_t in = c_.x.channels, width = c_.window.width;
  float* to = w.weights;
  for (std::size_t first = 0; first < channels_.size(); first += together(first))
    for (std::int64_t h = 0; h < c_.window.height; ++h)
      for (std::int64_t c = 0; c < in; ++c)
        for (std::int64_t k = 0; k < width; ++k)
          for (std::size_t i = first; i < first + together(first); ++i) {
            const auto* weights =
                static_cast<const float*>(arguments.inputs[parts_[channels_[i].part].first_input]);
            const float weight =
                weights[((channels_[i].channel * in + c) * c_.window.height + h) * width + k];
            *to++ = narrow ? static_cast<float>(bf16(weight)) : weight;
          }
}

void PlanarKernel::fill_line(const Arguments& arguments, const Workspace& w, std::int64_t sample,
                             std::int64_t row) const {
  const auto* x = static_cast<const std::byte*>(arguments.inputs[0]);
  const auto element = static_cast<std::int64_t>(size_in_bytes(c_.x.type));
  const std::int64_t left = std::min(c_.window.pad_left, line_);
  PlanarLine* const copy = c_.x.type == ElementType::f32 ? loops_.line_of_f32 : loops_.line_of_bf16;
  for (std::int64_t c = 0; c < c_.x.channels; ++c) {
    float* const line = line_at(w, row, c);
    std::fill_n(line, left, 0.0f);
    copy(x + offset(c_.x, sample, c, row) * element, inside_, line + left);
    std::fill(line + left + inside_, line + line_, 0.0f);
  }
}

void PlanarKernel::run_range(const Arguments& arguments, PartRange units) const {
  const Workspace w = workspace(arguments.scratch);
  const Window& window = c_.window;
  arrange_weights(arguments, w);
  std::int64_t sample = -1, filled = 0;  // rows of the sample's x before this one were copied
  for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
    Row row{unit / y().height, unit % y().height, {}};
    if (row.sample != sample) sample = row.sample, filled = 0;
    row.taps =
        valid_taps(row.row, window.height, window.stride_h, window.dilation_h, window.pad_top, c_.x.height);
    const std::int64_t top = row.row * window.stride_h - window.pad_top;
    if (row.taps.begin < row.taps.end) {
      // A row that dilated taps step over now may be another row's.
      filled = std::max({filled, top, std::int64_t{0}});
      for (; filled <= top + (row.taps.end - 1) * window.dilation_h; ++filled)
        fill_line(arguments, w, sample, filled);
    }
    run_row(arguments, w, row);
  }
}

void PlanarKernel::run_row(const Arguments& arguments, const Workspace& w, const Row& row) const {
  const Window& window = c_.window;
  const std::int64_t top = row.row * window.stride_h - window.pad_top, in = c_.x.channels;
  std::int64_t lines = 0;
  for (std::int64_t tap = row.taps.begin; tap < row.taps.end; ++tap)
    for (std::int64_t c = 0; c < in; ++c) w.pointers[lines++] = line_at(w, top + tap * window.dilation_h, c);
  const float* weights = w.weights;
  for (std::size_t first = 0; first < channels_.size(); first += together(first)) {
    const auto count = static_cast<std::int64_t>(together(first));
    float* to[planar_channels_together] = {};
    for (std::int64_t i = 0; i < count; ++i) {
      const auto& [part, channel] = channels_[first + static_cast<std::size_t>(i)];
      const PlanarPart& own = parts_[part];
      to[i] = own.direct
                  ? static_cast<float*>(arguments.outputs[part]) + offset(own.y, row.sample, channel, row.row)
                  : w.rows + i * own.y.width;
    }
    loops_.of[count - 1]({w.pointers, lines, weights + row.taps.begin * in * window.width * count,
                          window.width, window.dilation_w, to, y().width});
    for (std::int64_t i = 0; i < count; ++i)
      finish(arguments, channels_[first + static_cast<std::size_t>(i)], row, to[i]);
    weights += in * taps() * count;
  }
}

void PlanarKernel::finish(const Arguments& arguments, const PlanarChannel& channel, const Row& row,
                          const float* sums) const {
  const PlanarPart& part = parts_[channel.part];
  if (part.direct) return;
  const std::int64_t at = row.sample * part.y.sample + channel.channel * part.y.channel;
  auto* const y = static_cast<std::byte*>(arguments.outputs[channel.part]) +
                  (at + row.row * part.y.row) * static_cast<std::int64_t>(size_in_bytes(part.y.type));
  // The channel's number leads into vectors of channels; tensors are whole planes apart instead.
  part.epilogue.apply({.source = sums,
                       .source_stride = 1,
                       .result = y,
                       .result_type = part.y.type,
                       .result_stride = 1,
                       .columns = part.y.width,
                       .channels = 1,
                       .steps = nullptr,
                       .step_count = 0},
                      {.row = row.row, .channel = channel.channel, .shift = at - channel.channel},
                      arguments.inputs.data() + part.first_input + 1, nullptr);
}

bool is_plane_type(ElementType type) { return type == ElementType::f32 || type == ElementType::bf16; }

std::string fault_of(const Planes& planes, std::int64_t batch) {
  if (planes.channels < 1 || planes.height < 1 || planes.width < 1 || batch < 1)
    return "an extent is not positive";
  if (planes.channels > most_planar_channels)
    return fmt::format("more than {} channels", most_planar_channels);
  if (!is_plane_type(planes.type)) return "planes must be f32 or bf16";
  if (planes.height > 1 && planes.row < planes.width) return "rows of a plane overlap";
  return {};
}

std::string fault_of(const PlanarConvolution& c) {
  if (std::string fault = fault_of(c.window); !fault.empty()) return fault;
  if (std::string fault = fault_of(c.x, c.batch); !fault.empty()) return fault;
  if (c.window.depth != 1) return "a window over three axes";
  if (c.window.stride_w != 1) return "the window goes on by more than a column";
  if (c.window.pad_left < 0 || c.window.pad_top < 0) return "a negative padding";
  if (c.parts.empty()) return "there is no result";
  for (const auto& part : c.parts) {
    if (std::string fault = fault_of(part.y, c.batch); !fault.empty()) return fault;
    if (part.y.height != c.parts[0].y.height || part.y.width != c.parts[0].y.width)
      return "the results are not of the same extents";
    if (part.epilogue.outputs() > 0) return "the epilogue writes a tensor";
  }
  return {};
}

// Multiply-adds with what is inside the image.
double multiply_adds(const PlanarConvolution& c, std::int64_t channels) {
  const auto taps_along = [](std::int64_t taps, std::int64_t stride, std::int64_t dilation, std::int64_t pad,
                             std::int64_t input, std::int64_t output) {
    double count = 0;
    for (std::int64_t o = 0; o < output; ++o) {
      const TapRange range = valid_taps(o, taps, stride, dilation, pad, input);
      count += static_cast<double>(std::max<std::int64_t>(0, range.end - range.begin));
    }
    return count;
  };
  const Window& w = c.window;
  const Planes& y = c.parts[0].y;
  return taps_along(w.height, w.stride_h, w.dilation_h, w.pad_top, c.x.height, y.height) *
         taps_along(w.width, w.stride_w, w.dilation_w, w.pad_left, c.x.width, y.width) *
         static_cast<double>(c.batch * c.x.channels * channels);
}

double bytes_of(const Planes& planes, std::int64_t batch) {
  return static_cast<double>(batch * planes.channels * planes.height * planes.width) *
         static_cast<double>(size_in_bytes(planes.type));
}

}  // namespace

Prepared prepare(const PlanarConvolution& c) {
  if (std::string fault = fault_of(c); !fault.empty()) return refuse("planes", fault);
  KernelInfo info;
  info.inputs = 1;
  info.outputs = c.parts.size();
  info.bytes = bytes_of(c.x, c.batch);
  info.arithmetic = ElementType::f32;
  std::int64_t channels = 0;
  std::vector<PlanarPart> parts;
  for (const auto& part : c.parts) {
    auto epilogue = EpilogueRunner::prepare(part.epilogue, image_of(part.y));
    if (!epilogue) return refuse("planes", epilogue.error());
    const bool direct = epilogue->empty() && part.y.type == ElementType::f32;
    const double elements = bytes_of(part.y, c.batch) / static_cast<double>(size_in_bytes(part.y.type));
    info.bytes += bytes_of(part.y, c.batch) + elements * epilogue->bytes_per_element();
    channels += part.y.channels;
    parts.push_back({part.y, *epilogue, info.inputs, direct});
    info.inputs += 1 + epilogue->inputs();
  }
  info.flops = 2 * multiply_adds(c, channels);
  info.name = fmt::format("planar convolution, {} to {} channels, {} x {} taps", c.x.channels, channels,
                          c.window.height, c.window.width);
  return std::make_unique<PlanarKernel>(std::move(info), c, std::move(parts));
}

bool is_planar(const Kernel& kernel) { return dynamic_cast<const PlanarKernel*>(&kernel) != nullptr; }

std::optional<PlanarConvolution> joined(const Kernel& first, const Kernel& second) {
  const auto* a = dynamic_cast<const PlanarKernel*>(&first);
  const auto* b = dynamic_cast<const PlanarKernel*>(&second);
  if (!a || !b) return std::nullopt;
  const PlanarConvolution &one = a->convolution(), &other = b->convolution();
  const Planes &y = one.parts[0].y, &z = other.parts[0].y;
  if (one.batch != other.batch || one.x != other.x || !(one.window == other.window) || y.height != z.height ||
      y.width != z.width)
    return std::nullopt;
  PlanarConvolution both = one;
  both.parts.insert(both.parts.end(), other.parts.begin(), other.parts.end());
  return both;
}

}  // namespace superstep::kernels
