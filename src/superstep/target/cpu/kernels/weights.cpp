#include "superstep/target/cpu/kernels/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/target/cpu/kernels/copy.h"
#include "superstep/target/cpu/kernels/winograd_weights.h"

namespace superstep::kernels {

namespace {

bool in_pairs(WeightLayout layout) {
  return layout == WeightLayout::taps_in_out_pairs || layout == WeightLayout::taps_out_in_pairs;
}

bool out_is_contiguous(WeightLayout layout) {
  return layout == WeightLayout::taps_in_out || layout == WeightLayout::taps_in_out_pairs ||
         layout == WeightLayout::taps_in_out_rows;
}

bool in_panels(WeightLayout layout) {
  return layout != WeightLayout::taps_in_out_rows && layout != WeightLayout::taps_out_in_rows;
}

// One contiguous piece of the packed form (a panel of a group) as a copy between the two orders.
struct Piece {
  std::int64_t packed_offset, stored_offset;
  StridedCopy copy;  // x: stored, y: packed
};

class WeightPieces {
 public:
  explicit WeightPieces(const WeightTransfer& t) : t_(t), taps_(t.kernel_h * t.kernel_w) {
    const bool out_first = t.order == WeightOrder::out_in_taps;
    out_stride_ = out_first ? t.in * taps_ : taps_;
    in_stride_ = out_first ? taps_ : t.out * taps_;
    if (t.layout == WeightLayout::taps_channels)
      add_channels();
    else
      for (std::int64_t group = 0; group < t.groups; ++group) add_group(group);
  }

  std::vector<Piece> pieces;
  std::int64_t packed_count = 0;

 private:
  void add_channels() {
    pieces.push_back({0, 0, {{taps_, t_.groups}, {1, taps_}, {t_.groups, 1}}});
    packed_count = taps_ * t_.groups;
  }

  void add_group(std::int64_t group) {
    const bool out_inner = out_is_contiguous(t_.layout);
    const std::int64_t width = out_inner ? t_.out : t_.in, depth = out_inner ? t_.in : t_.out;
    const std::int64_t width_stride = out_inner ? out_stride_ : in_stride_;
    const std::int64_t depth_stride = out_inner ? in_stride_ : out_stride_;
    const std::int64_t widest = in_panels(t_.layout) ? panel_width : width;
    for (std::int64_t first = 0; first < width; first += widest) {
      const std::int64_t panel = std::min(widest, width - first);
      const std::int64_t stored = group * t_.in * t_.out * taps_ + first * width_stride;
      if (in_pairs(t_.layout))
        add_pairs(stored, panel, depth, width_stride, depth_stride);
      else
        add_plain(stored, panel, depth, width_stride, depth_stride);
    }
  }

  void add_plain(std::int64_t stored, std::int64_t panel, std::int64_t depth, std::int64_t width_stride,
                 std::int64_t depth_stride) {
    pieces.push_back({packed_count,
                      stored,
                      {{taps_, depth, panel}, {1, depth_stride, width_stride}, {depth * panel, panel, 1}}});
    packed_count += taps_ * depth * panel;
  }

  // The even and the odd half of each pair; with an odd depth the last odd half stays zero.
  void add_pairs(std::int64_t stored, std::int64_t panel, std::int64_t depth, std::int64_t width_stride,
                 std::int64_t depth_stride) {
    const std::int64_t pairs = (depth + 1) / 2;
    for (std::int64_t half = 0; half < 2; ++half) {
      const std::int64_t count = half == 0 ? pairs : depth / 2;
      pieces.push_back(
          {packed_count + half,
           stored + half * depth_stride,
           {{taps_, count, panel}, {1, 2 * depth_stride, width_stride}, {pairs * panel * 2, panel * 2, 2}}});
    }
    packed_count += taps_ * pairs * panel * 2;
  }

  const WeightTransfer& t_;
  std::int64_t taps_, out_stride_ = 0, in_stride_ = 0;
};

std::string fault_of(const WeightTransfer& t) {
  if (t.groups < 1 || t.in < 1 || t.out < 1 || t.kernel_h < 1 || t.kernel_w < 1)
    return "an extent of the weights is not positive";
  if (t.layout == WeightLayout::none) return "the kernel takes no packed weights";
  if (t.layout == WeightLayout::taps_channels && (t.in != 1 || t.out != 1))
    return "the depthwise layout needs one input and one output channel a group";
  if (t.type != ElementType::f32 && t.type != ElementType::bf16)
    return std::string("no packed weights of ") + name_of(t.type);
  if (in_pairs(t.layout) && t.type != ElementType::bf16) return "pairs are a layout of bf16";
  return {};
}

class WeightKernel final : public Kernel {
 public:
  struct Part {
    KernelPointer copy;
    std::size_t source_bytes, destination_bytes;
  };
  WeightKernel(KernelInfo info, std::vector<Part> parts, std::size_t clear_bytes)
      : Kernel(std::move(info)), parts_(std::move(parts)), clear_bytes_(clear_bytes) {}

  void run(const Arguments& arguments) const override {
    const auto* from = static_cast<const std::byte*>(arguments.inputs[0]);
    auto* to = static_cast<std::byte*>(arguments.outputs[0]);
    std::memset(to, 0, clear_bytes_);
    for (const Part& part : parts_) {
      const void* source = from + part.source_bytes;
      void* destination = to + part.destination_bytes;
      part.copy->run({{&source, 1}, {&destination, 1}, nullptr});
    }
  }

 private:
  std::vector<Part> parts_;
  std::size_t clear_bytes_;
};

Prepared prepare_transfer(const WeightTransfer& t, bool pack) {
  if (std::string fault = fault_of(t); !fault.empty()) return refuse("weights", fault);
  const WeightPieces all(t);
  const std::size_t packed_size = size_in_bytes(t.type);
  std::vector<WeightKernel::Part> parts;
  for (Piece piece : all.pieces) {
    if (piece.copy.extents[0] * piece.copy.extents.back() == 0) continue;
    std::size_t from = static_cast<std::size_t>(piece.stored_offset) * sizeof(float);
    std::size_t to = static_cast<std::size_t>(piece.packed_offset) * packed_size;
    piece.copy.y_type = t.type;
    if (!pack) {
      std::swap(from, to);
      std::swap(piece.copy.x_strides, piece.copy.y_strides);
    }
    Prepared copy = prepare(piece.copy);
    if (!copy) return copy;
    parts.push_back({std::move(*copy), from, to});
  }
  const auto count = static_cast<double>(t.groups * t.in * t.out * t.kernel_h * t.kernel_w);
  const std::size_t bytes = packed_elements(t) * packed_size;
  KernelInfo info{.name = fmt::format("{} weights, {}", pack ? "pack" : "unpack", name_of(t.layout)),
                  .bytes = 4 * count + static_cast<double>(bytes),
                  .inputs = 1,
                  .outputs = 1,
                  .weights = t.layout};
  const bool padded = pack && in_pairs(t.layout);
  return std::make_unique<WeightKernel>(std::move(info), std::move(parts), padded ? bytes : 0);
}

}  // namespace

WeightTransfer weight_transfer(const Convolution& c, WeightLayout layout, WeightOrder order,
                               ElementType type) {
  return {c.groups,
          c.x.channels / c.groups,
          c.y.channels / c.groups,
          c.window.height,
          c.window.width,
          order,
          layout,
          type};
}

std::size_t packed_elements(const WeightTransfer& transfer) {
  if (winograd_tile_of(transfer.layout) > 0) return winograd_packed_elements(transfer);
  return static_cast<std::size_t>(WeightPieces(transfer).packed_count);
}

Prepared prepare_pack(const WeightTransfer& transfer) {
  if (winograd_tile_of(transfer.layout) > 0) return prepare_winograd_pack(transfer);
  return prepare_transfer(transfer, true);
}

Prepared prepare_unpack(const WeightTransfer& transfer) {
  if (transfer.type != ElementType::f32) return refuse("weights", "gradients are unpacked in f32 only");
  if (winograd_tile_of(transfer.layout) > 0) return refuse("weights", "transformed weights are not unpacked");
  return prepare_transfer(transfer, false);
}

}  // namespace superstep::kernels
