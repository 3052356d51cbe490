#include "superstep/target/cpu/kernels/move/segment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/target/cpu/kernels/move/segment_loops.h"

namespace superstep::kernels {

namespace {

// Columns that one part sums, where there are fewer packs than parts: whole cache lines of either type.
constexpr std::int64_t columns_of_a_part = 64;

// The indices of one pack.
class PackIndices {
 public:
  PackIndices(const void* memory, ElementType type, std::int64_t first, std::int64_t rows)
      : memory_(memory), wide_(type == ElementType::i64), first_(first), rows_(rows) {}

  // The row in [0, rows), or -1: none.
  std::int32_t operator[](std::int64_t entry) const {
    const std::int64_t at = first_ + entry, index = wide_ ? static_cast<const std::int64_t*>(memory_)[at]
                                                          : static_cast<const std::int32_t*>(memory_)[at];
    if (index < -1 || index >= rows_)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("index {} is neither a row in [0, {}) nor -1, none", index, rows_),
                  "an index of rows");
    return static_cast<std::int32_t>(index);
  }

 private:
  const void* memory_;
  bool wide_;
  std::int64_t first_, rows_;
};

// A pack, or a range of a pack's columns where packs alone would not occupy the threads.
struct Piece {
  std::int64_t pack, first, columns;
};

class Pieces {
 public:
  explicit Pieces(const PackedRows& p) : p_(p) {
    if (p.packs < most_parts) blocks_ = std::max<std::int64_t>(1, p.width / columns_of_a_part);
  }
  std::int64_t count() const { return p_.packs * blocks_; }
  Piece operator[](std::int64_t i) const {
    const std::int64_t block = i % blocks_, first = block * columns_of_a_part;
    return {i / blocks_, first, block + 1 == blocks_ ? p_.width - first : columns_of_a_part};
  }

 private:
  PackedRows p_;
  std::int64_t blocks_ = 1;
};

PackedRows with_strides(PackedRows p) {
  if (p.index_stride == 0) p.index_stride = p.entries;
  if (p.target_stride == 0) p.target_stride = p.entries;
  return p;
}

class PackedKernel : public Kernel {
 public:
  PackedKernel(KernelInfo info, const PackedRows& packed)
      : Kernel(std::move(info)),
        p_(with_strides(packed)),
        pieces_(packed),
        size_(static_cast<std::int64_t>(size_in_bytes(packed.type))) {
    info_.parts = std::clamp<std::int64_t>(pieces_.count(), 1, most_parts);
  }
  void run(const Arguments& arguments) const override { run_range(arguments, {0, pieces_.count()}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_range(arguments, part_range(pieces_.count(), part, info_.parts));
  }

 protected:
  virtual void run_range(const Arguments& arguments, PartRange range) const = 0;

  // Those of slot 1, or the targets of a product in slot 2.
  PackIndices indices(const Arguments& arguments, std::size_t slot, const Piece& piece,
                      std::int64_t rows) const {
    const std::int64_t stride = slot == 2 ? p_.target_stride : p_.index_stride;
    return {arguments.inputs[slot], p_.index_type, piece.pack * stride, rows};
  }
  // Column `piece.first` of the first row of a pack that has so many rows.
  std::int64_t offset(const Piece& piece, std::int64_t rows) const {
    return (piece.pack * rows * p_.width + piece.first) * size_;
  }

  PackedRows p_;
  Pieces pieces_;
  std::int64_t size_;  // bytes of an element
};

class GatherPacked final : public PackedKernel {
 public:
  using PackedKernel::PackedKernel;

 private:
  void run_range(const Arguments& arguments, PartRange range) const override {
    for (std::int64_t i = range.begin; i < range.end; ++i) gather(arguments, pieces_[i]);
  }

  void gather(const Arguments& arguments, const Piece& piece) const {
    const PackIndices rows = indices(arguments, 1, piece, p_.rows);
    const std::byte* from = static_cast<const std::byte*>(arguments.inputs[0]) + offset(piece, p_.rows);
    std::byte* to = static_cast<std::byte*>(arguments.outputs[0]) + offset(piece, p_.entries);
    const std::int64_t stride = p_.width * size_;
    const auto bytes = static_cast<std::size_t>(piece.columns * size_);
    for (std::int64_t e = 0; e < p_.entries; ++e, to += stride) {
      const std::int32_t row = rows[e];
      if (row < 0)
        std::memset(to, 0, bytes);
      else
        std::memcpy(to, from + row * stride, bytes);
    }
  }
};

// The entries of a pack, brought into the order of the rows they are added to, and in that of the entries
// among those of one row. Then every row of the result is summed in registers and written once.
class EntryOrder {
 public:
  static std::size_t bytes(const PackedRows& p) {
    return static_cast<std::size_t>(p.count + 1 + 2 * p.entries) * sizeof(std::int32_t);
  }

  EntryOrder(const PackedRows& p, void* scratch)
      : p_(p),
        begin_(static_cast<std::int32_t*>(scratch)),
        row_(begin_ + p.count + 1),
        weight_(reinterpret_cast<float*>(row_ + p.entries)) {}

  // row_of(e): which row of the data the entry adds, -1 for none; weight_of(e) its weight.
  template <class RowOf, class WeightOf>
  void arrange(const PackIndices& target, const RowOf& row_of, const WeightOf& weight_of) {
    std::fill_n(begin_, p_.count + 1, 0);
    for (std::int64_t e = 0; e < p_.entries; ++e)
      if (const std::int32_t to = target[e]; to >= 0 && row_of(e) >= 0) ++begin_[to];
    std::inclusive_scan(begin_, begin_ + p_.count + 1, begin_);
    // From the last entry on: each is put in front of those of its row that follow it.
    for (std::int64_t e = p_.entries; e-- > 0;) {
      const std::int32_t to = target[e], row = row_of(e);
      if (to < 0 || row < 0) continue;
      const std::int32_t place = --begin_[to];
      row_[place] = row;
      weight_[place] = weight_of(e);
    }
  }

  const std::int32_t* begin() const { return begin_; }
  const std::int32_t* row() const { return row_; }
  const float* weight() const { return weight_; }

 private:
  const PackedRows& p_;
  std::int32_t *begin_, *row_;
  float* weight_;
};

// In f64 sums are f64, too; few graphs are, and their rows are short: no loop of their own for each vector.
void sum_rows_f64(const RowSums& s) {
  for (std::int64_t r = 0; r < s.count; ++r) {
    double* to = static_cast<double*>(s.y) + r * s.stride;
    std::fill_n(to, s.columns, 0.0);
    for (std::int32_t k = s.begin[r]; k < s.begin[r + 1]; ++k) {
      const double* from = static_cast<const double*>(s.x) + s.row[k] * s.stride;
      for (std::int64_t c = 0; c < s.columns; ++c) to[c] += from[c];
    }
  }
}

class SummingKernel : public PackedKernel {
 public:
  SummingKernel(KernelInfo info, const PackedRows& packed)
      : PackedKernel(std::move(info), packed),
        sum_(packed.type == ElementType::f64 ? sum_rows_f64 : row_sum_loop(packed.type)) {
    info_.scratch_bytes = EntryOrder::bytes(packed);
  }

 protected:
  virtual void arrange(const Arguments& arguments, const Piece& piece, EntryOrder& order) const = 0;
  virtual std::int64_t data_rows() const = 0;
  virtual bool is_weighted() const = 0;

 private:
  void run_range(const Arguments& arguments, PartRange range) const override {
    EntryOrder order(p_, arguments.scratch);
    std::int64_t arranged = -1;
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const Piece piece = pieces_[i];
      if (piece.pack != arranged) arrange(arguments, piece, order);
      arranged = piece.pack;
      sum_({.x = static_cast<const std::byte*>(arguments.inputs[0]) + offset(piece, data_rows()),
            .y = static_cast<std::byte*>(arguments.outputs[0]) + offset(piece, p_.count),
            .stride = p_.width,
            .columns = piece.columns,
            .count = p_.count,
            .begin = order.begin(),
            .row = order.row(),
            .weight = is_weighted() ? order.weight() : nullptr});
    }
  }

  RowSumLoop* sum_;
};

class SegmentSum final : public SummingKernel {
 public:
  using SummingKernel::SummingKernel;

 private:
  void arrange(const Arguments& arguments, const Piece& piece, EntryOrder& order) const override {
    order.arrange(
        indices(arguments, 1, piece, p_.count),
        [](std::int64_t entry) { return static_cast<std::int32_t>(entry); },
        [](std::int64_t) { return 1.0f; });
  }
  std::int64_t data_rows() const override { return p_.entries; }
  bool is_weighted() const override { return false; }
};

class SparseProduct final : public SummingKernel {
 public:
  using SummingKernel::SummingKernel;

 private:
  void arrange(const Arguments& arguments, const Piece& piece, EntryOrder& order) const override {
    const PackIndices source = indices(arguments, 1, piece, p_.rows);
    const auto arrange_with = [&](const auto* weight) {
      order.arrange(
          indices(arguments, 2, piece, p_.count), [&](std::int64_t entry) { return source[entry]; },
          [&](std::int64_t entry) { return static_cast<float>(weight[entry]); });
    };
    const std::int64_t first = piece.pack * p_.entries;
    if (p_.type == ElementType::bf16)
      arrange_with(static_cast<const bf16*>(arguments.inputs[3]) + first);
    else
      arrange_with(static_cast<const float*>(arguments.inputs[3]) + first);
  }
  std::int64_t data_rows() const override { return p_.rows; }
  bool is_weighted() const override { return true; }
};

std::string fault_of(const PackedRows& p) {
  if (p.packs < 0 || p.rows < 0 || p.entries < 0 || p.width < 0 || p.count < 0)
    return "an extent is negative";
  if (p.type != ElementType::f32 && p.type != ElementType::bf16 && p.type != ElementType::f64)
    return fmt::format("rows are {}, none of f32, bf16 and f64", name_of(p.type));
  if (p.index_type != ElementType::i64 && p.index_type != ElementType::i32)
    return fmt::format("indices must be i32 or i64, not {}", name_of(p.index_type));
  for (const std::int64_t stride : {p.index_stride, p.target_stride})
    if (stride != 0 && stride < p.entries) return "indices of packs overlap";
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() - 1;
  if (p.rows > most || p.entries > most || p.count > most) return "a pack has 2^31 rows or more";
  return {};
}

// Elements that are read once and written once, beside the indices: the least that a run can move.
KernelInfo describe(const PackedRows& p, const char* name, double elements, double indices, double flops) {
  return {.name = fmt::format("{}, {} packs of {} entries of {}", name, p.packs, p.entries, p.width),
          .flops = flops,
          .bytes = elements * static_cast<double>(size_in_bytes(p.type)) +
                   indices * static_cast<double>(size_in_bytes(p.index_type)),
          .outputs = 1};
}

double product_of(std::int64_t a, std::int64_t b, std::int64_t c) {
  return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
}

}  // namespace

Prepared prepare_gather_packed(const PackedRows& p) {
  if (std::string fault = fault_of(p); !fault.empty()) return refuse("rows of packs", fault);
  const double elements = product_of(p.packs, p.rows, p.width) + product_of(p.packs, p.entries, p.width);
  KernelInfo info = describe(p, "rows of packs", elements, product_of(p.packs, p.entries, 1), 0);
  info.inputs = 2;
  return std::make_unique<GatherPacked>(std::move(info), p);
}

Prepared prepare_segment_sum(const PackedRows& p) {
  if (std::string fault = fault_of(p); !fault.empty()) return refuse("segment sum", fault);
  const double summed = product_of(p.packs, p.entries, p.width);
  KernelInfo info = describe(p, "segment sum", summed + product_of(p.packs, p.count, p.width),
                             product_of(p.packs, p.entries, 1), summed);
  info.inputs = 2;
  return std::make_unique<SegmentSum>(std::move(info), p);
}

Prepared prepare_sparse_product(const PackedRows& p) {
  if (std::string fault = fault_of(p); !fault.empty()) return refuse("sparse product", fault);
  if (p.type == ElementType::f64) return refuse("sparse product", "its weights are f32 or bf16");
  const double elements = product_of(p.packs, p.rows + p.count, p.width) + product_of(p.packs, p.entries, 1);
  KernelInfo info = describe(p, "sparse product", elements, 2 * product_of(p.packs, p.entries, 1),
                             2 * product_of(p.packs, p.entries, p.width));
  info.inputs = 4;
  return std::make_unique<SparseProduct>(std::move(info), p);
}

}  // namespace superstep::kernels
