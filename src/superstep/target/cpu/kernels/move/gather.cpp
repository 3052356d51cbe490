#include <fmt/format.h>

#include <cstring>

#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/kernels/rows/column_sum.h"

namespace superstep::kernels {

namespace {

class RowIndices {
 public:
  RowIndices(const GatherRows& g, const void* indices) : g_(g), indices_(indices) {}
  // The row of the table, or -1 when the index lies outside.
  std::int64_t operator[](std::int64_t r) const {
    const std::int64_t index = g_.index_type == ElementType::i64
                                   ? static_cast<const std::int64_t*>(indices_)[r]
                                   : static_cast<const std::int32_t*>(indices_)[r];
    const std::int64_t row = index < 0 ? index + g_.table_rows : index;
    return row >= 0 && row < g_.table_rows ? row : -1;
  }

 private:
  const GatherRows& g_;
  const void* indices_;
};

class GatherKernel final : public Kernel {
 public:
  GatherKernel(KernelInfo info, const GatherRows& g) : Kernel(std::move(info)), g_(g) {}

  void run(const Arguments& arguments) const override {
    const RowIndices rows(g_, arguments.inputs[1]);
    const auto size = static_cast<std::int64_t>(size_in_bytes(g_.type));
    const auto bytes = static_cast<std::size_t>(g_.length * size);
    const auto* table = static_cast<const std::byte*>(arguments.inputs[0]);
    auto* y = static_cast<std::byte*>(arguments.outputs[0]);
    for (std::int64_t r = 0; r < g_.rows; ++r) {
      const std::int64_t row = rows[r];
      std::byte* to = y + r * g_.y_stride * size;
      if (row < 0)
        std::memset(to, 0, bytes);
      else
        std::memcpy(to, table + row * g_.table_stride * size, bytes);
    }
  }

 private:
  GatherRows g_;
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
      if (const std::int64_t row = rows[r]; row >= 0)
        add_row_(dy + r * g_.y_stride, 0, 1, g_.length, table + row * g_.table_stride);
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
