#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/kernels/move/indexed_move.h"
#include "superstep/target/cpu/kernels/rows/column_sum.h"

namespace superstep::kernels {

namespace {

class RowIndices {
 public:
  RowIndices(const GatherRows& g, const void* indices) : g_(g), indices_(indices) {}
  // The row of the table; throws when the index lies outside.
  std::int64_t operator[](std::int64_t r) const {
    const std::int64_t index = g_.index_type == ElementType::i64
                                   ? static_cast<const std::int64_t*>(indices_)[r]
                                   : static_cast<const std::int32_t*>(indices_)[r];
    const std::int64_t row = index < 0 ? index + g_.table_rows : index;
    if (row < 0 || row >= g_.table_rows) [[unlikely]]
      refuse_index(index, g_.table_rows);
    return row;
  }

 private:
  const GatherRows& g_;
  const void* indices_;
};

// Rows in a range, of `bytes` bytes each; `bytes` may be known when this is compiled, and a row is then a
// move of a register instead of a call.
template <std::size_t known_bytes>
void gather_rows(const GatherRows& g, const Arguments& arguments, PartRange range) {
  const RowIndices rows(g, arguments.inputs[1]);
  const auto size = static_cast<std::int64_t>(size_in_bytes(g.type));
  const std::size_t bytes = known_bytes > 0 ? known_bytes : static_cast<std::size_t>(g.length * size);
  const auto* table = static_cast<const std::byte*>(arguments.inputs[0]);
  auto* y = static_cast<std::byte*>(arguments.outputs[0]);
  for (std::int64_t r = range.begin; r < range.end; ++r) {
    const std::int64_t row = rows[r];
    std::memcpy(y + r * g.y_stride * size, table + row * g.table_stride * size, bytes);
  }
}

using GatherLoop = void(const GatherRows&, const Arguments&, PartRange);

GatherLoop* gather_loop(std::size_t bytes) {
  switch (bytes) {
    case 1: return gather_rows<1>;
    case 2: return gather_rows<2>;
    case 4: return gather_rows<4>;
    case 8: return gather_rows<8>;
    case 12: return gather_rows<12>;
    case 16: return gather_rows<16>;
    case 32: return gather_rows<32>;
    case 64: return gather_rows<64>;
    default: return gather_rows<0>;
  }
}

// Bytes that are worth another thread: what one copies while another one wakes.
constexpr std::int64_t undivided_bytes = 64 * 1024;

class GatherKernel final : public Kernel {
 public:
  GatherKernel(KernelInfo info, const GatherRows& g)
      : Kernel(std::move(info)),
        g_(g),
        loop_(gather_loop(static_cast<std::size_t>(g.length) * size_in_bytes(g.type))) {
    const std::int64_t bytes = g.rows * g.length * static_cast<std::int64_t>(size_in_bytes(g.type));
    info_.parts = std::clamp<std::int64_t>(std::min(bytes / undivided_bytes, g.rows), 1, most_parts);
  }

  void run(const Arguments& arguments) const override { loop_(g_, arguments, {0, g_.rows}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    loop_(g_, arguments, part_range(g_.rows, part, info_.parts));
  }

 private:
  GatherRows g_;
  GatherLoop* loop_;
};

class ScatterAddKernel final : public Kernel {
 public:
  ScatterAddKernel(KernelInfo info, const GatherRows& g)
      : Kernel(std::move(info)), g_(g), add_row_(column_sum(ElementType::f32)) {}

  void run(const Arguments& arguments) const override {
    const RowIndices rows(g_, arguments.inputs[1]);
    const auto* dy = static_cast<const float*>(arguments.inputs[0]);
    auto* table = static_cast<float*>(arguments.outputs[0]);
    for (std::int64_t r = 0; r < g_.rows; ++r)
      add_row_(dy + r * g_.y_stride, 0, 1, g_.length, table + rows[r] * g_.table_stride);
  }

 private:
  GatherRows g_;
  ColumnSum* add_row_;
};

std::string fault_of(const GatherRows& g) {
  if (g.table_rows < 0 || g.rows < 0 || g.length < 0) return "an extent is negative";
  if (g.index_type != ElementType::i64 && g.index_type != ElementType::i32)
    return fmt::format("indices must be i32 or i64, not {}", name_of(g.index_type));
  for (std::int64_t stride : {g.table_stride, g.y_stride})
    if (stride != 0 && stride < g.length) return "rows overlap";
  return {};
}

GatherRows with_strides(GatherRows g) {
  if (g.table_stride == 0) g.table_stride = g.length;
  if (g.y_stride == 0) g.y_stride = g.length;
  return g;
}

KernelInfo describe(const GatherRows& g, const char* name, double copies) {
  const double elements = static_cast<double>(g.rows) * static_cast<double>(g.length);
  return {.name = fmt::format("{}, {} rows of {}", name, g.rows, g.length),
          .bytes = copies * elements * static_cast<double>(size_in_bytes(g.type)) +
                   static_cast<double>(g.rows) * static_cast<double>(size_in_bytes(g.index_type)),
          .inputs = 2,
          .outputs = 1};
}

}  // namespace

Prepared prepare_gather(const GatherRows& gather) {
  if (std::string fault = fault_of(gather); !fault.empty()) return refuse("gather", fault);
  const GatherRows g = with_strides(gather);
  return std::make_unique<GatherKernel>(describe(g, "gather", 2), g);
}

Prepared prepare_scatter_add(const GatherRows& gather) {
  if (std::string fault = fault_of(gather); !fault.empty()) return refuse("scatter", fault);
  if (gather.type != ElementType::f32) return refuse("scatter", "gradients are added in f32 only");
  const GatherRows g = with_strides(gather);
  return std::make_unique<ScatterAddKernel>(describe(g, "scatter-add", 3), g);
}

}  // namespace superstep::kernels
