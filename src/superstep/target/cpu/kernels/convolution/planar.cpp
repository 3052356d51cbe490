#include "superstep/target/cpu/kernels/convolution/planar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "superstep/target/cpu/kernels/convolution/planar_loops.h"
#include "superstep/target/cpu/kernels/convolution/plane_lines.h"
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
      : RangeKernel(std::move(info)),
        c_(convolution),
        parts_(std::move(parts)),
        loops_(planar_loops()),
        lines_(c_.x, c_.window, parts_.front().y.width) {
    for (std::size_t part = 0; part < parts_.size(); ++part)
      for (std::int64_t channel = 0; channel < parts_[part].y.channels; ++channel)
        channels_.push_back({part, channel});
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
    float* lines;            // rows of x between zeros
    float* weights;          // of the channels together: [tap's row][channel of x][tap][channel of y]
    float* rows;             // of y, before an epilogue
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
  void run_row(const Arguments& arguments, const Workspace& w, const Row& row) const;
  void fetch_next_operands(const Arguments& arguments, std::size_t part, std::int64_t at) const;
  void finish(const Arguments& arguments, const PlanarChannel& channel, const Row& row,
              const float* sums) const;
  // Channels from `first` on that are summed side by side.
  std::size_t together(std::size_t first) const {
    return std::min<std::size_t>(channels_.size() - first, planar_channels_together);
  }
  static std::int64_t offset(const Planes& planes, std::int64_t sample, std::int64_t channel,
                             std::int64_t row) {
    return sample * planes.sample + channel * planes.channel + row * planes.row;
  }

  PlanarConvolution c_;
  std::vector<PlanarPart> parts_;
  std::vector<PlanarChannel> channels_;
  const PlanarLoops& loops_;
  PlaneLines lines_;
};

PlanarKernel::Workspace PlanarKernel::workspace(void* scratch) const {
  ScratchPieces pieces(scratch);
  Workspace w{};
  w.lines = pieces.take<float>(lines_.elements());
  w.weights = pieces.take<float>(static_cast<std::int64_t>(channels_.size()) * c_.x.channels * taps());
  w.rows = pieces.take<float>(planar_channels_together * y().width);
  w.pointers = pieces.take<const float*>(c_.window.height * c_.x.channels);
  w.bytes = pieces.bytes();
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

void PlanarKernel::run_range(const Arguments& arguments, PartRange units) const {
  const Workspace w = workspace(arguments.scratch);
  arrange_weights(arguments, w);
  PlaneLines::Progress progress;
  for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
    Row row{unit / y().height, unit % y().height, {}};
    row.taps = lines_.advance(progress, arguments.inputs[0], w.lines, row.sample, row.row);
    run_row(arguments, w, row);
  }
}

void PlanarKernel::run_row(const Arguments& arguments, const Workspace& w, const Row& row) const {
  const Window& window = c_.window;
  const std::int64_t top = lines_.top(row.row), in = c_.x.channels;
  std::int64_t lines = 0;
  for (std::int64_t tap = row.taps.begin; tap < row.taps.end; ++tap)
    for (std::int64_t c = 0; c < in; ++c)
      w.pointers[lines++] = lines_.at(w.lines, top + tap * window.dilation_h, c);
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
  const auto row_bytes = static_cast<std::int64_t>(size_in_bytes(part.y.type)) * part.y.row;
  fetch_next_row(y, row_bytes, true);
  fetch_next_operands(arguments, channel.part, at + row.row * part.y.row);
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

// The next row of what the part's epilogue reads; `at` is this one's first element.
void PlanarKernel::fetch_next_operands(const Arguments& arguments, std::size_t part, std::int64_t at) const {
  std::size_t slot = parts_[part].first_input + 1;
  for (const EpilogueStep& step : c_.parts[part].epilogue.steps) {
    const auto size = static_cast<std::int64_t>(size_in_bytes(step.type));
    if (step.reads_tensor())
      fetch_next_row(static_cast<const std::byte*>(arguments.inputs[slot]) + at * size,
                     parts_[part].y.row * size);
    slot += step.reads_input() ? 1 : 0;
  }
}

std::string fault_of(const PlanarConvolution& c) {
  if (std::string fault = fault_over_planes(c.window); !fault.empty()) return fault;
  if (std::string fault = fault_of(c.x, c.batch); !fault.empty()) return fault;
  if (c.parts.empty()) return "there is no result";
  for (const auto& part : c.parts) {
    if (std::string fault = fault_of(part.y, c.batch); !fault.empty()) return fault;
    if (part.y.height != c.parts[0].y.height || part.y.width != c.parts[0].y.width)
      return "the results are not of the same extents";
    if (part.epilogue.outputs() > 0) return "the epilogue writes a tensor";
  }
  return {};
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
  info.flops =
      2 * multiply_adds_over_planes(c.x, c.window, c.parts[0].y, c.batch) * static_cast<double>(channels);
  info.name = fmt::format("planar convolution, {} to {} channels, {} x {} taps", c.x.channels, channels,
                          c.window.height, c.window.width);
  return std::make_unique<PlanarKernel>(std::move(info), c, std::move(parts));
}

bool is_planar(const Kernel& kernel) { return dynamic_cast<const PlanarKernel*>(&kernel) != nullptr; }

std::optional<PlanarConvolution> joined(const Kernel& first, const Kernel& second) {
  const auto* a = dynamic_cast<const PlanarKernel*>(&first);
  const auto* b = dynamic_cast<const PlanarKernel*>(&second);
  if (!a || !b) return std::nullopt;
  return with_parts_of_both(a->convolution(), b->convolution(), &PlanarConvolution::Part::y);
}

}  // namespace superstep::kernels
