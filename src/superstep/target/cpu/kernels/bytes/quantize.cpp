#include "superstep/target/cpu/kernels/bytes/quantize.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/bytes/integer_finish.h"

namespace superstep::kernels {

namespace {

constexpr std::int64_t least_part = 4096;  // elements: a part costs more to claim than fewer take

class QuantizeKernel final : public Kernel {
 public:
  QuantizeKernel(KernelInfo info, const Quantize& quantize)
      : Kernel(std::move(info)), q_(quantize), function_(quantize_block()) {
    const std::int64_t parts = q_.elements * q_.rows / least_part;
    info_.parts = std::clamp<std::int64_t>(std::min(parts, units()), 1, most_parts);
  }

  void run(const Arguments& arguments) const override { quantize(arguments, {0, units()}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    quantize(arguments, part_range(units(), part, info_.parts));
  }

 private:
  // What is divided: the elements of a single row, or rows.
  std::int64_t units() const { return q_.rows == 1 ? q_.elements : q_.rows; }

  void quantize(const Arguments& arguments, PartRange range) const {
    const bool single = q_.rows == 1;
    const std::int64_t count = range.end - range.begin;
    function_({static_cast<const float*>(arguments.inputs[0]) + range.begin * (single ? 1 : q_.x_stride),
               single ? count : q_.x_stride,
               static_cast<std::uint8_t*>(arguments.outputs[0]) + range.begin * (single ? 1 : q_.y_stride),
               single ? count : q_.y_stride, single ? 1 : count, single ? count : q_.elements, 1 / q_.scale,
               static_cast<float>(q_.zero_point)});
  }

  Quantize q_;
  QuantizeFunction* function_;
};

}  // namespace

Prepared prepare(const Quantize& quantize) {
  if (quantize.elements < 1 || quantize.rows < 1) return refuse("quantize", "there are no elements");
  if (!(quantize.scale > 0)) return refuse("quantize", "the scale is not positive");
  if (quantize.zero_point < 0 || quantize.zero_point > 255)
    return refuse("quantize", "the zero point is no byte");
  const std::int64_t elements = quantize.rows * quantize.elements;
  KernelInfo info{.name = fmt::format("quantize, {} elements", elements),
                  .flops = 2 * static_cast<double>(elements),
                  .bytes = 5 * static_cast<double>(elements),
                  .inputs = 1,
                  .outputs = 1};
  return std::make_unique<QuantizeKernel>(std::move(info), quantize);
}

}  // namespace superstep::kernels
