#include "superstep/target/cpu/kernels/product/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/kernels/product/pair_panel.h"

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

// A panel of a group as the model stores it; taps are neighbours.
struct Panel {
  std::int64_t stored, width, depth, width_stride, depth_stride;
};

// From stored order to [tap][depth][width].
StridedCopy copy_of(const Panel& p, std::int64_t taps) {
  return {{taps, p.depth, p.width}, {1, p.depth_stride, p.width_stride}, {p.depth * p.width, p.width, 1}};
}

// One contiguous piece of the packed form (a panel of a group) as a copy between the two orders.
struct Piece {
  std::int64_t packed_offset, stored_offset;
  StridedCopy copy;  // x: stored, y: packed
};

// The same of a layout of pairs.
struct PairPiece {
  std::int64_t packed_offset;
  Panel panel;
};

class WeightPieces {
 public:
  explicit WeightPieces(const WeightTransfer& t) : t_(t), taps_(t.taps()) {
    const bool out_first = t.order == WeightOrder::out_in_taps;
    out_stride_ = out_first ? t.in * taps_ : taps_;
    in_stride_ = out_first ? taps_ : t.out * taps_;
    if (t.layout == WeightLayout::taps_channels)
      add_channels();
    else
      for (std::int64_t group = 0; group < t.groups; ++group) add_group(group);
  }

  std::vector<Piece> pieces;
  std::vector<PairPiece> panels;
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
      add_panel({stored, panel, depth, width_stride, depth_stride});
    }
  }

  void add_panel(const Panel& panel) {
    const std::int64_t rows = in_pairs(t_.layout) ? padded_depth(panel.depth) : panel.depth;
    pieces.push_back({packed_count, panel.stored, copy_of(panel, taps_)});
    panels.push_back({packed_count, panel});
    packed_count += taps_ * rows * panel.width;
  }

  const WeightTransfer& t_;
  std::int64_t taps_, out_stride_ = 0, in_stride_ = 0;
};

std::string fault_of(const WeightTransfer& t) {
  if (t.groups < 1 || t.in < 1 || t.out < 1 || std::min({t.kernel_d, t.kernel_h, t.kernel_w}) < 1)
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
  WeightKernel(KernelInfo info, std::vector<Part> parts) : Kernel(std::move(info)), parts_(std::move(parts)) {
    info_.parts = std::clamp<std::int64_t>(static_cast<std::int64_t>(parts_.size()), 1, most_parts);
  }

  void run(const Arguments& arguments) const override {
    copy(arguments, {0, static_cast<std::int64_t>(parts_.size())});
  }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    copy(arguments, part_range(static_cast<std::int64_t>(parts_.size()), part, info_.parts));
  }

 private:
  void copy(const Arguments& arguments, PartRange range) const {
    const auto* from = static_cast<const std::byte*>(arguments.inputs[0]);
    auto* to = static_cast<std::byte*>(arguments.outputs[0]);
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const Part& part = parts_[static_cast<std::size_t>(i)];
      const void* source = from + part.source_bytes;
      void* destination = to + part.destination_bytes;
      part.copy->run({{&source, 1}, {&destination, 1}, nullptr});
    }
  }

  std::vector<Part> parts_;
};

KernelInfo describe(const WeightTransfer& t, bool pack) {
  const auto count = static_cast<double>(t.groups * t.in * t.out * t.taps());
  return {.name = fmt::format("{} weights, {}", pack ? "pack" : "unpack", name_of(t.layout)),
          .bytes = 4 * count + static_cast<double>(packed_elements(t) * size_in_bytes(t.type)),
          .inputs = 1,
          .outputs = 1,
          .weights = t.layout};
}

// Pairs of bf16. A single tap is packed as it is read; several are brought into order in f32 first, some rows
// at a time so that they stay in the cache.
class PairWeightKernel final : public Kernel {
 public:
  static constexpr std::int64_t most_rows = 64;

  // Some rows of a panel.
  struct Part {
    std::shared_ptr<const Kernel> order;  // none: a single tap
    std::shared_ptr<const Kernel> pairs;
    std::int64_t source, destination;           // elements
    std::int64_t ordered_tap, destination_tap;  // elements between taps
  };
  PairWeightKernel(KernelInfo info, std::vector<Part> parts, std::int64_t taps)
      : Kernel(std::move(info)), parts_(std::move(parts)), taps_(taps) {
    info_.parts = std::clamp<std::int64_t>(static_cast<std::int64_t>(parts_.size()), 1, most_parts);
  }

  void run(const Arguments& arguments) const override {
    for (const Part& part : parts_) pack(arguments, part);
  }
  void run_part(const Arguments& arguments, std::int64_t number) const override {
    const PartRange range = part_range(static_cast<std::int64_t>(parts_.size()), number, info_.parts);
    for (std::int64_t i = range.begin; i < range.end; ++i)
      pack(arguments, parts_[static_cast<std::size_t>(i)]);
  }

 private:
  static void apply(const Kernel& kernel, const float* from, void* to) {
    const void* source = from;
    kernel.run({{&source, 1}, {&to, 1}, nullptr});
  }

  void pack(const Arguments& arguments, const Part& part) const {
    const float* from = static_cast<const float*>(arguments.inputs[0]) + part.source;
    auto* to = static_cast<bf16*>(arguments.outputs[0]) + part.destination;
    auto* ordered = static_cast<float*>(arguments.scratch);
    if (part.order) apply(*part.order, from, ordered), from = ordered;
    for (std::int64_t tap = 0; tap < taps_; ++tap)
      apply(*part.pairs, from + tap * part.ordered_tap, to + tap * part.destination_tap);
  }

  std::vector<Part> parts_;
  std::int64_t taps_;
};

class PairWeightBuilder {
 public:
  explicit PairWeightBuilder(const WeightTransfer& t) : t_(t), taps_(t.taps()) {}

  Prepared build() {
    for (const PairPiece& piece : WeightPieces(t_).panels) {
      const std::int64_t rows = taps_ == 1 ? piece.panel.depth : PairWeightKernel::most_rows;
      for (std::int64_t first = 0; first < piece.panel.depth; first += rows)
        if (auto fault = add_rows(piece, first, std::min(rows, piece.panel.depth - first)))
          return std::unexpected(*fault);
    }
    KernelInfo info = describe(t_, true);
    info.scratch_bytes = static_cast<std::size_t>(scratch_) * sizeof(float);
    return std::make_unique<PairWeightKernel>(std::move(info), std::move(parts_), taps_);
  }

 private:
  using Shared = std::shared_ptr<const Kernel>;

  std::optional<Refusal> add_rows(const PairPiece& piece, std::int64_t first, std::int64_t rows) {
    Panel panel = piece.panel;
    panel.stored += first * panel.depth_stride;
    panel.depth = rows;
    Shared& order = orders_[{rows, panel.width}];
    Shared& pairs = pairs_[{rows, panel.width}];
    if (!pairs) {
      const bool one = taps_ == 1;
      auto made = prepare(PairPanel{rows, panel.width, one ? panel.depth_stride : panel.width,
                                    one ? panel.width_stride : 1, ElementType::f32});
      if (!made) return made.error();
      pairs = std::move(*made);
    }
    if (taps_ > 1 && !order) {
      auto made = prepare(copy_of(panel, taps_));
      if (!made) return made.error();
      order = std::move(*made);
      scratch_ = std::max(scratch_, taps_ * rows * panel.width);
    }
    parts_.push_back({order, pairs, panel.stored, piece.packed_offset + first * panel.width,
                      rows * panel.width, padded_depth(piece.panel.depth) * panel.width});
    return std::nullopt;
  }

  const WeightTransfer& t_;
  std::int64_t taps_, scratch_ = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, Shared> orders_, pairs_;  // by rows and width
  std::vector<PairWeightKernel::Part> parts_;
};

// Panels in stretches of their rows, so that several threads share the copying of large weights: some 64 kB
// each, or as many as there are parts.
std::vector<Piece> divided(const std::vector<Piece>& pieces, std::int64_t total) {
  const std::int64_t wanted = std::max<std::int64_t>(16 * 1024, total / most_parts);
  std::vector<Piece> result;
  for (const Piece& piece : pieces) {
    const StridedCopy& whole = piece.copy;
    const std::int64_t depth = whole.extents[1], row = whole.extents[0] * whole.extents.back();
    if (whole.extents.size() != 3 || depth * row <= wanted) {
      result.push_back(piece);
      continue;
    }
    const std::int64_t rows = std::max<std::int64_t>(1, (wanted + row - 1) / row);
    for (std::int64_t first = 0; first < depth; first += rows) {
      Piece part{piece.packed_offset + first * whole.y_strides[1],
                 piece.stored_offset + first * whole.x_strides[1], whole};
      part.copy.extents[1] = std::min(rows, depth - first);
      result.push_back(std::move(part));
    }
  }
  return result;
}

Prepared prepare_transfer(const WeightTransfer& t, bool pack) {
  if (std::string fault = fault_of(t); !fault.empty()) return refuse("weights", fault);
  if (in_pairs(t.layout)) return PairWeightBuilder(t).build();
  const WeightPieces all(t);
  const std::size_t packed_size = size_in_bytes(t.type);
  std::vector<WeightKernel::Part> parts;
  for (Piece piece : divided(all.pieces, all.packed_count)) {
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
  return std::make_unique<WeightKernel>(describe(t, pack), std::move(parts));
}

}  // namespace

WeightTransfer weight_transfer(const Convolution& c, WeightLayout layout, WeightOrder order,
                               ElementType type) {
  return {c.groups,
          c.x.channels / c.groups,
          c.y.channels / c.groups,
          c.window.depth,
          c.window.height,
          c.window.width,
          order,
          layout,
          type};
}

std::size_t packed_elements(const WeightTransfer& transfer) {
  if (transfer.layout.own()) return transfer.layout.own()->packed_elements(transfer);
  return static_cast<std::size_t>(WeightPieces(transfer).packed_count);
}

bool is_stored_form(const WeightTransfer& t) {
  if (t.type != ElementType::f32 || t.layout.own() || in_pairs(t.layout)) return false;
  const WeightPieces all(t);
  return std::ranges::all_of(all.pieces, [](const Piece& piece) {
    for (std::size_t axis = 0; axis < piece.copy.extents.size(); ++axis)
      if (piece.copy.extents[axis] > 1 && piece.copy.x_strides[axis] != piece.copy.y_strides[axis])
        return false;
    return piece.packed_offset == piece.stored_offset;
  });
}

Prepared prepare_pack(const WeightTransfer& transfer) {
  if (transfer.layout.own()) return transfer.layout.own()->prepare_pack(transfer);
  return prepare_transfer(transfer, true);
}

Prepared prepare_unpack(const WeightTransfer& transfer) {
  if (transfer.type != ElementType::f32) return refuse("weights", "gradients are unpacked in f32 only");
  if (transfer.layout.own()) return refuse("weights", "a kernel's own order of weights is not unpacked");
  return prepare_transfer(transfer, false);
}

}  // namespace superstep::kernels
