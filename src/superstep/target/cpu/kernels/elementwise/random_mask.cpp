#include "superstep/target/cpu/kernels/elementwise/random_mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/target/cpu/kernels/elementwise/random_mask_loops.h"

namespace superstep::kernels {

namespace {

class RandomMaskKernel final : public Kernel {
 public:
  RandomMaskKernel(KernelInfo info, const RandomMask& mask)
      : Kernel(std::move(info)), m_(mask), loop_(mask_loop(mask.image.type)) {
    info_.parts = std::clamp<std::int64_t>(rows(), 1, most_parts);
  }

  void run(const Arguments& arguments) const override { run_rows(arguments, {0, rows()}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_rows(arguments, part_range(rows(), part, info_.parts));
  }

 private:
  std::int64_t rows() const { return m_.image.height * m_.image.width * m_.image.batch; }

  void run_rows(const Arguments& arguments, PartRange range) const {
    const auto& address = *static_cast<const RandomAddress*>(arguments.inputs[0]);
    const Image& image = m_.image;
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      const std::int64_t position = row / image.batch;
      run_row(address, position / image.width, position % image.width, row % image.batch,
              arguments.outputs[0]);
    }
  }

  void run_row(const RandomAddress& address, std::int64_t h, std::int64_t w, std::int64_t n,
               void* mask) const {
    const Image& image = m_.image;
    const auto size = static_cast<std::int64_t>(size_in_bytes(image.type));
    MaskRun run{};
    run.seed = address.seed;
    run.sample = address.first_sample + static_cast<std::uint64_t>(n);
    run.purpose = address.purpose;
    run.threshold = static_cast<std::uint32_t>(std::floor(static_cast<double>(m_.keep) * 0x1p32));
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
