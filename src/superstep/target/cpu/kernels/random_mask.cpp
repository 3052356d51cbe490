#include "superstep/target/cpu/kernels/random_mask.h"

#include <fmt/format.h>

#include <cmath>

#include "superstep/target/cpu/kernels/random_mask_loops.h"

namespace superstep::kernels {

namespace {

class RandomMaskKernel final : public Kernel {
 public:
  RandomMaskKernel(KernelInfo info, const RandomMask& mask)
      : Kernel(std::move(info)), m_(mask), loop_(mask_loop(mask.image.type)) {}

  void run(const Arguments& arguments) const override {
    const auto& address = *static_cast<const RandomAddress*>(arguments.inputs[0]);
    const Image& image = m_.image;
    for (std::int64_t h = 0; h < image.height; ++h)
      for (std::int64_t w = 0; w < image.width; ++w)
        for (std::int64_t n = 0; n < image.batch; ++n) run_row(address, h, w, n, arguments.outputs[0]);
  }

 private:
  void run_row(const RandomAddress& address, std::int64_t h, std::int64_t w, std::int64_t n,
               void* mask) const {
    const Image& image = m_.image;
    const auto size = static_cast<std::int64_t>(size_in_bytes(image.type));
    MaskRun run{address.seed, address.first_sample + static_cast<std::uint64_t>(n), address.purpose,
                static_cast<std::uint32_t>(std::floor(static_cast<double>(m_.keep) * 0x1p32))};
    run.first = h * m_.number_h + w * m_.number_w;
    run.step = m_.number_c;
    run.n = image.channels;
    run.kept = image.type == ElementType::u8 ? 1.0f : 1.0f / m_.keep;
    run.mask = static_cast<std::byte*>(mask) + (image.offset(h, w) + n * image.column_stride) * size;
    loop_(run);
  }

  RandomMask m_;
  MaskLoop* loop_;
};

std::string fault_of(const RandomMask& m) {
  if (std::string fault = fault_of(m.image); !fault.empty()) return fault;
  if (!(m.keep > 0 && m.keep < 1)) return "the share to keep must lie between 0 and 1";
  if (!mask_loop(m.image.type)) return fmt::format("no mask of {}", name_of(m.image.type));
  if (m.number_h < 0 || m.number_w < 0 || m.number_c < 0) return "element numbers must not be negative";
  return {};
}

}  // namespace

Prepared prepare(const RandomMask& mask) {
  if (std::string fault = fault_of(mask); !fault.empty()) return refuse("random mask", fault);
  RandomMask m = mask;
  if (m.number_h == 0 && m.number_w == 0 && m.number_c == 0) {
    m.number_c = m.image.height * m.image.width;
    m.number_h = m.image.width;
    m.number_w = 1;
  }
  const auto elements = static_cast<double>(m.image.element_count());
  KernelInfo info;
  info.name = fmt::format("random mask, keep {}, {}", m.keep, m.number_c == 1 ? "dense" : "spread");
  info.bytes = elements * static_cast<double>(size_in_bytes(m.image.type));
  info.inputs = info.outputs = 1;
  return std::make_unique<RandomMaskKernel>(std::move(info), m);
}

}  // namespace superstep::kernels
