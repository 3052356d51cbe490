#include "superstep/target/cpu/kernels/rows/reduce.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/rows/reduce_loops.h"
#include "superstep/target/cpu/kernels/rows/wide_reduce.h"

namespace superstep::kernels {

namespace {

const char* name_of(Reduction reduction) {
  static constexpr const char* names[] = {"sum", "mean", "max", "min", "sum of squares", "product"};
  return names[static_cast<int>(reduction)];
}

class ReduceKernel final : public Kernel {
 public:
  ReduceKernel(KernelInfo info, const Reduce& reduce)
      : Kernel(std::move(info)), r_(reduce), loops_(reduce_loops(reduce.reduction, reduce.type)) {
    info_.parts = std::clamp<std::int64_t>(r_.outer, 1, most_parts);
  }

  void run(const Arguments& arguments) const override { run_outer(arguments, {0, r_.outer}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_outer(arguments, part_range(r_.outer, part, info_.parts));
  }

 private:
  void run_outer(const Arguments& arguments, PartRange outer) const {
    const auto size = static_cast<std::int64_t>(size_in_bytes(r_.type));
    const auto* x = static_cast<const std::byte*>(arguments.inputs[0]);
    auto* y = static_cast<float*>(arguments.outputs[0]);
    auto* fresh = r_.accumulate ? static_cast<float*>(arguments.scratch) : y;
    const bool contiguous = r_.inner == 1 && r_.reduced_stride == 1;
    for (std::int64_t o = outer.begin; o < outer.end; ++o) {
      float* to = r_.accumulate ? fresh : y + o * r_.inner;
      const ReduceRun run{x + o * r_.outer_stride * size, r_.reduced, r_.reduced_stride, r_.inner, to};
      (contiguous ? loops_.row : loops_.columns)(run);
      finish(to, y + o * r_.inner);
    }
  }

  void finish(const float* fresh, float* y) const {
    if (r_.reduction == Reduction::mean && r_.reduced > 0)  // of nothing the mean is the sum: 0
      for (std::int64_t i = 0; i < r_.inner; ++i) y[i] /= static_cast<float>(r_.reduced);
    if (r_.accumulate)
      for (std::int64_t i = 0; i < r_.inner; ++i) y[i] = combine(r_.reduction, y[i], fresh[i]);
  }

  Reduce r_;
  ReduceLoops loops_;
};

std::string fault_of(const Reduce& r) {
  if (r.outer < 0 || r.inner < 0 || r.reduced < 0) return "an extent is negative";
  if (r.type != ElementType::f32 && r.type != ElementType::bf16 && !is_wide(r.type))
    return fmt::format("no reduction of {}", name_of(r.type));
  if (r.accumulate && r.reduction == Reduction::mean) return "a mean cannot be added to";
  return {};
}

}  // namespace

Prepared prepare(const Reduce& reduce) {
  if (std::string fault = fault_of(reduce); !fault.empty()) return refuse("reduction", fault);
  Reduce r = reduce;
  if (r.reduced_stride == 0) r.reduced_stride = r.inner;
  if (r.outer_stride == 0) r.outer_stride = r.reduced * r.reduced_stride;
  const auto elements = static_cast<double>(r.outer * r.reduced * r.inner);
  KernelInfo info;
  info.name = fmt::format("{}, {} x {} x {}", name_of(r.reduction), r.outer, r.reduced, r.inner);
  info.flops = elements * (r.reduction == Reduction::sum_of_squares ? 2 : 1);
  info.bytes = elements * static_cast<double>(size_in_bytes(r.type)) +
               static_cast<double>(is_wide(r.type) ? size_in_bytes(r.type) : sizeof(float)) *
                   static_cast<double>(r.outer * r.inner);
  info.inputs = info.outputs = 1;
  if (is_wide(r.type)) return prepare_wide_reduce(r, std::move(info));
  if (r.accumulate) info.scratch_bytes = static_cast<std::size_t>(r.inner) * sizeof(float);
  return std::make_unique<ReduceKernel>(std::move(info), r);
}

}  // namespace superstep::kernels
