#include "superstep/target/cpu/kernels/quantize.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/integer_finish.h"

namespace superstep::kernels {

namespace {

constexpr std::int64_t least_part = 4096;  // elements: a part costs more to claim than fewer take

class QuantizeKernel final : public Kernel {
 public:
  QuantizeKernel(KernelInfo info, const Quantize& quantize)
      : Kernel(std::move(info)), q_(quantize), function_(quantize_block()) {
    info_.parts = std::clamp<std::int64_t>(q_.elements / least_part, 1, most_parts);
  }

  void run(const Arguments& arguments) const override { quantize(arguments, {0, q_.elements}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    quantize(arguments, part_range(q_.elements, part, info_.parts));
  }

 private:
  void quantize(const Arguments& arguments, PartRange range) const {
    const std::int64_t count = range.end - range.begin;
    function_({static_cast<const float*>(arguments.inputs[0]) + range.begin, count,
               static_cast<std::uint8_t*>(arguments.outputs[0]) + range.begin, count, 1, count, 1 / q_.scale,
               static_cast<float>(q_.zero_point)});
  }

  Quantize q_;
  QuantizeFunction* function_;
};

}  // namespace

Prepared prepare(const Quantize& quantize) {
  if (quantize.elements < 1) return refuse("quantize", "there are no elements");
  if (!(quantize.scale > 0)) return refuse("quantize", "the scale is not positive");
  if (quantize.zero_point < 0 || quantize.zero_point > 255)
    return refuse("quantize", "the zero point is no byte");
  KernelInfo info{.name = fmt::format("quantize, {} elements", quantize.elements),
                  .flops = 2 * static_cast<double>(quantize.elements),
                  .bytes = 5 * static_cast<double>(quantize.elements),
                  .inputs = 1,
                  .outputs = 1};
  return std::make_unique<QuantizeKernel>(std::move(info), quantize);
}

}  // namespace superstep::kernels
