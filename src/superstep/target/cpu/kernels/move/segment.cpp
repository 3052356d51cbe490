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
// `count` indices as 32 bits: rows in [0, rows), or -1: none.
template <class Index>
void take_indices(const Index* from, std::int64_t count, std::int64_t rows, std::int32_t* to) {
  bool outside = false;
  for (std::int64_t e = 0; e < count; ++e) {
    outside |= from[e] < -1 || from[e] >= rows;
    to[e] = static_cast<std::int32_t>(from[e]);
  }
  if (!outside) return;
  const Index* const first = std::find_if(from, from + count, [&](Index i) { return i < -1 || i >= rows; });
  throw Error(ErrorCode::invalid_argument,
              fmt::format("index {} is neither a row in [0, {}) nor -1, none", *first, rows));
}

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

  // Calls run(piece) for all of the range, with what lies side by side in a pack as one.
  template <class Run>
  void for_each(PartRange range, const Run& run) const {
    for (std::int64_t i = range.begin; i < range.end;) {
      const std::int64_t pack = i / blocks_, last = std::min(range.end, (pack + 1) * blocks_);
      const std::int64_t first = i % blocks_ * columns_of_a_part;
      const std::int64_t end = last % blocks_ == 0 ? p_.width : last % blocks_ * columns_of_a_part;
      run(Piece{pack, first, end - first});
      i = last;
    }
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
        loops_(row_loops(packed.type)),
        size_(static_cast<std::int64_t>(size_in_bytes(packed.type))) {
    info_.parts = std::clamp<std::int64_t>(pieces_.count(), 1, most_parts);
  }
  void run(const Arguments& arguments) const override { run_range(arguments, {0, pieces_.count()}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_range(arguments, part_range(pieces_.count(), part, info_.parts));
  }

 protected:
  virtual void run_range(const Arguments& arguments, PartRange range) const = 0;

  // Those of a pack, of slot 1, or the targets of a product in slot 2.
  void take(const Arguments& arguments, std::size_t slot, std::int64_t pack, std::int64_t rows,
            std::int32_t* to) const {
    const std::int64_t first = pack * (slot == 2 ? p_.target_stride : p_.index_stride);
    if (p_.index_type == ElementType::i64)
      take_indices(static_cast<const std::int64_t*>(arguments.inputs[slot]) + first, p_.entries, rows, to);
    else
      take_indices(static_cast<const std::int32_t*>(arguments.inputs[slot]) + first, p_.entries, rows, to);
  }
  // Column `piece.first` of the first row of a pack that has so many rows.
  std::int64_t offset(const Piece& piece, std::int64_t rows) const {
    return (piece.pack * rows * p_.width + piece.first) * size_;
  }

  PackedRows p_;
  Pieces pieces_;
  RowLoops loops_;
  std::int64_t size_;  // bytes of an element
};

class GatherPacked final : public PackedKernel {
 public:
  GatherPacked(KernelInfo info, const PackedRows& packed) : PackedKernel(std::move(info), packed) {
    info_.scratch_bytes = static_cast<std::size_t>(p_.entries) * sizeof(std::int32_t);
  }

 private:
  static constexpr std::int64_t word = 4;  // bytes that the loop moves at a time

  void run_range(const Arguments& arguments, PartRange range) const override {
    auto* const rows = static_cast<std::int32_t*>(arguments.scratch);
    std::int64_t taken = -1;
    pieces_.for_each(range, [&](const Piece& piece) {
      if (piece.pack != taken) take(arguments, 1, piece.pack, p_.rows, rows);
      taken = piece.pack;
      const std::byte* from = static_cast<const std::byte*>(arguments.inputs[0]) + offset(piece, p_.rows);
      std::byte* to = static_cast<std::byte*>(arguments.outputs[0]) + offset(piece, p_.entries);
      const std::int64_t stride = p_.width * size_, bytes = piece.columns * size_;
      if (stride % word == 0 && bytes % word == 0)
        loops_.copy({.x = from,
                     .y = to,
                     .stride = stride / word,
                     .columns = bytes / word,
                     .entries = p_.entries,
                     .row = rows});
      else
        copy_bytes(from, to, stride, static_cast<std::size_t>(bytes), rows);
    });
  }

  void copy_bytes(const std::byte* from, std::byte* to, std::int64_t stride, std::size_t bytes,
                  const std::int32_t* rows) const {
    for (std::int64_t e = 0; e < p_.entries; ++e, to += stride) {
      if (rows[e] < 0)
        std::memset(to, 0, bytes);
      else
        std::memcpy(to, from + rows[e] * stride, bytes);
    }
  }
};

// The entries of a pack: which row of the data each adds to which row of the result. They are brought into
// the order of the rows they are added to, and in that of the entries among those of one row: every row of
// the result is then summed in registers and written once. (Adding entry by entry in memory, as they come, is
// no quicker: every number of the result is then read and written once an entry.)
class Entries {
 public:
  static std::size_t bytes(const PackedRows& p) {
    return static_cast<std::size_t>(p.count + 1 + 5 * p.entries) * sizeof(std::int32_t);
  }

  Entries(const PackedRows& p, void* scratch)
      : p_(p),
        end_(static_cast<std::int32_t*>(scratch)),
        to_(end_ + p.count + 1),
        from_(to_ + p.entries),
        row_(from_ + p.entries),
        weight_(reinterpret_cast<float*>(row_ + p.entries)),
        ordered_(weight_ + p.entries) {}

  std::int32_t* to() { return to_; }
  std::int32_t* from() { return from_; }
  float* weight() { return weight_; }

  // listed: rows of the data are named by from(), or else entry e adds row e; weights may be null. Row r of
  // the result is place r + 1 here, and place 0 takes what adds to none: no loop asks.
  void arrange(bool listed, const float* weight) {
    for (std::int64_t e = 0; listed && e < p_.entries; ++e) to_[e] = from_[e] < 0 ? -1 : to_[e];
    std::int64_t entries = p_.entries;
    while (entries > 0 && to_[entries - 1] < 0) --entries;
    std::fill_n(end_, p_.count + 1, 0);
    bool in_order = true;
    for (std::int32_t e = 0, before = 0; e < entries; ++e) {
      in_order &= to_[e] >= before;
      before = to_[e];
      ++end_[before + 1];
    }
    if (in_order) {
      std::inclusive_scan(end_, end_ + p_.count + 1, end_);
      rows_ = listed ? from_ : nullptr, weights_ = weight;
      return;
    }
    // From where each place's entries begin to where they end.
    std::exclusive_scan(end_, end_ + p_.count + 1, end_, 0);
    for (std::int32_t e = 0; e < entries; ++e) {
      const std::int32_t place = end_[to_[e] + 1]++;
      row_[place] = listed ? from_[e] : e;
      if (weight) ordered_[place] = weight[e];
    }
    rows_ = row_, weights_ = weight ? ordered_ : nullptr;
  }

  const std::int32_t* begin() const { return end_; }  // of row r: where those of the row before end
  const std::int32_t* rows() const { return rows_; }  // null: the entries' own
  const float* weights() const { return weights_; }

 private:
  const PackedRows& p_;
  std::int32_t *end_, *to_, *from_, *row_;
  float *weight_, *ordered_;
  const std::int32_t* rows_ = nullptr;
  const float* weights_ = nullptr;
};

// In f64 sums are f64, too; few graphs are, and their rows are short: no loop of their own for each vector.
void sum_rows_f64(const RowSums& s) {
  for (std::int64_t r = 0; r < s.count; ++r) {
    double* to = static_cast<double*>(s.y) + r * s.stride;
    std::fill_n(to, s.columns, 0.0);
    for (std::int32_t k = s.begin[r]; k < s.begin[r + 1]; ++k) {
      const double* from = static_cast<const double*>(s.x) + (s.row ? s.row[k] : k) * s.stride;
      for (std::int64_t c = 0; c < s.columns; ++c) to[c] += from[c];
    }
  }
}

// A segment sum, or a sparse product, whose rows are listed and have weights.
class SummingKernel final : public PackedKernel {
 public:
  SummingKernel(KernelInfo info, const PackedRows& packed, bool is_product)
      : PackedKernel(std::move(info), packed), is_product_(is_product) {
    if (!loops_.sum) loops_.sum = sum_rows_f64;
    info_.scratch_bytes = Entries::bytes(packed);
  }

 private:
  void run_range(const Arguments& arguments, PartRange range) const override {
    Entries entries(p_, arguments.scratch);
    std::int64_t taken = -1;
    pieces_.for_each(range, [&](const Piece& piece) {
      if (piece.pack != taken) take_entries(arguments, piece.pack, entries);
      taken = piece.pack;
      const void* x = static_cast<const std::byte*>(arguments.inputs[0]) +
                      offset(piece, is_product_ ? p_.rows : p_.entries);
      void* y = static_cast<std::byte*>(arguments.outputs[0]) + offset(piece, p_.count);
      loops_.sum({.x = x,
                  .y = y,
                  .stride = p_.width,
                  .columns = piece.columns,
                  .count = p_.count,
                  .begin = entries.begin(),
                  .row = entries.rows(),
                  .weight = entries.weights()});
    });
  }

  void take_entries(const Arguments& arguments, std::int64_t pack, Entries& entries) const {
    take(arguments, is_product_ ? 2 : 1, pack, p_.count, entries.to());
    if (is_product_) take(arguments, 1, pack, p_.rows, entries.from());
    if (is_product_ && p_.type == ElementType::bf16)
      std::transform(static_cast<const bf16*>(arguments.inputs[3]) + pack * p_.entries,
                     static_cast<const bf16*>(arguments.inputs[3]) + (pack + 1) * p_.entries,
                     entries.weight(), [](bf16 weight) { return static_cast<float>(weight); });
    entries.arrange(is_product_, weights(arguments, pack, entries));
  }

  const float* weights(const Arguments& arguments, std::int64_t pack, Entries& entries) const {
    if (!is_product_) return nullptr;
    if (p_.type == ElementType::bf16) return entries.weight();
    return static_cast<const float*>(arguments.inputs[3]) + pack * p_.entries;
  }

  bool is_product_;
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
  return std::make_unique<SummingKernel>(std::move(info), p, false);
}

Prepared prepare_sparse_product(const PackedRows& p) {
  if (std::string fault = fault_of(p); !fault.empty()) return refuse("sparse product", fault);
  if (p.type == ElementType::f64) return refuse("sparse product", "its weights are f32 or bf16");
  const double elements = product_of(p.packs, p.rows + p.count, p.width) + product_of(p.packs, p.entries, 1);
  KernelInfo info = describe(p, "sparse product", elements, 2 * product_of(p.packs, p.entries, 1),
                             2 * product_of(p.packs, p.entries, p.width));
  info.inputs = 4;
  return std::make_unique<SummingKernel>(std::move(info), p, true);
}

}  // namespace superstep::kernels
