#include "superstep/target/cpu/kernels/move/pool_places.h"

#include <array>

namespace superstep::kernels {

namespace {

class PoolPlacesKernel final : public Kernel {
 public:
  // `pooling` writes the winning taps, a byte each, into scratch; behind them lies scratch of its own.
  PoolPlacesKernel(KernelInfo info, const PoolPlaces& places, KernelPointer pooling)
      : Kernel(std::move(info)), p_(places), pooling_(std::move(pooling)) {
    const Window& k = p_.pool.window;
    const Image& x = p_.pool.x;
    for (std::int64_t d = 0; d < k.depth; ++d)
      for (std::int64_t h = 0; h < k.height; ++h)
        for (std::int64_t w = 0; w < k.width; ++w)
          steps_.push_back((d * k.dilation_d * x.rows() + h * k.dilation_h) * x.width + w * k.dilation_w);
  }

  void run(const Arguments& arguments) const override {
    pooling_->run(of_pooling(arguments, slots_of(arguments)));
    count_rows(arguments, {0, p_.pool.y.height});
  }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    pooling_->run_part(of_pooling(arguments, slots_of(arguments)), part);
    count_rows(arguments, part_range(p_.pool.y.height, part, info_.parts));
  }

 private:
  using Slots = std::array<void*, 2>;
  static Slots slots_of(const Arguments& arguments) { return {arguments.outputs[0], arguments.scratch}; }
  Arguments of_pooling(const Arguments& arguments, const Slots& outputs) const {
    return {arguments.inputs, outputs, nullptr};
  }

  void count_rows(const Arguments& arguments, PartRange rows) const {
    const Image& y = p_.pool.y;
    for (std::int64_t h = rows.begin; h < rows.end; ++h)
      for (std::int64_t w = 0; w < y.width; ++w) count_position(arguments, h, w);
  }

  void count_position(const Arguments& arguments, std::int64_t h, std::int64_t w) const {
    const Image &x = p_.pool.x, &y = p_.pool.y;
    const Window& k = p_.pool.window;
    const std::int64_t d = h / y.rows(), row = h % y.rows();
    const std::int64_t first =
        ((d * k.stride_d - k.pad_front) * x.rows() + row * k.stride_h - k.pad_top) * x.width +
        w * k.stride_w - k.pad_left;
    const std::int64_t picture = x.height * x.width;
    const auto* winner =
        static_cast<const std::uint8_t*>(arguments.scratch) + (h * y.width + w) * y.batch * y.channels;
    auto* to = static_cast<std::int64_t*>(arguments.outputs[1]) + d * p_.plane + row * p_.row + w * p_.column;
    for (std::int64_t n = 0; n < y.batch; ++n)
      for (std::int64_t c = 0; c < y.channels; ++c)
        to[n * p_.batch + c * p_.channel] = (n * y.channels + c) * picture + first + steps_[*winner++];
  }

  PoolPlaces p_;
  KernelPointer pooling_;
  std::vector<std::int64_t> steps_;  // from a window's first place to that of each tap
};

}  // namespace

Prepared prepare(const PoolPlaces& places) {
  Pool pool = places.pool;
  if (pool.pooling != Pooling::max) return refuse("places of maxima", "averages have none");
  pool.save_argmax = true;
  auto pooling = prepare_pool(pool);
  if (!pooling) return std::unexpected(pooling.error());
  KernelInfo info = (*pooling)->info();
  info.name += ", with places";
  info.bytes += 8 * static_cast<double>(pool.y.element_count());
  info.scratch_bytes = static_cast<std::size_t>(pool.y.element_count());
  return std::make_unique<PoolPlacesKernel>(std::move(info), places, std::move(*pooling));
}

}  // namespace superstep::kernels
