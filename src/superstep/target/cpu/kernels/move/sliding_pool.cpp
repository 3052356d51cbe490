// Pooling by windows that move on by one position: rows first, then columns, so that a window of k x k costs
// what its two sides cost and not its area. A maximum over k positions is one over two runs of a power of two
// positions each, and those are made by doubling: 9 x 9 takes 8 comparisons per result in place of 80.
// Columns of few channels, a single one above all, are one long run like any other.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "superstep/target/cpu/kernels/move/pool.h"
#include "superstep/target/cpu/kernels/move/pool_plan.h"
#include "superstep/target/cpu/kernels/move/sliding_loops.h"

namespace superstep::kernels {

namespace {

// Below so many taps reading each window anew is as fast: passes over scratch read twice and write once. Of
// fewer elements than a vector of 16 a window at a time is slow whatever its size.
constexpr std::int64_t least_taps_of_maxima = 25, least_taps_of_averages = 49, elements_of_a_vector = 16;
// Elements of scratch that stay in a second-level cache of 256 KB, the smallest there are, with room to
// spare.
constexpr std::int64_t block_elements = 32 * 1024;

class SlidingPool final : public Kernel {
 public:
  SlidingPool(KernelInfo info, const Pool& pool)
      : Kernel(std::move(info)),
        pool_(pool),
        loops_(sliding_loops(pool.x.type, pool.y.type)),
        run_(pool.x.batch * pool.x.channels),
        row_((pool.y.width + reach(pool.window.width, pool.window.dilation_w)) * run_),
        halo_(reach(pool.window.height, pool.window.dilation_h)),
        block_rows_(std::min(pool.y.height, std::max(block_elements / row_ - halo_, std::max(halo_, one)))),
        is_max_(pool.pooling == Pooling::max) {
    const std::int64_t buffers = is_max_ ? 1 : 2;
    info_.scratch_bytes = static_cast<std::size_t>(buffers * block_size()) * sizeof(float);
    info_.parts = std::clamp<std::int64_t>(pool.y.height / std::max(halo_, one), 1, most_parts);
    if (!is_max_) count_columns();
  }

  void run(const Arguments& arguments) const override { run_rows(arguments, {0, pool_.y.height}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_rows(arguments, part_range(pool_.y.height, part, info_.parts));
  }

 private:
  static constexpr std::int64_t one = 1;
  static std::int64_t reach(std::int64_t taps, std::int64_t dilation) { return (taps - 1) * dilation; }
  std::int64_t block_size() const { return (block_rows_ + halo_) * row_; }

  // Taps of each output column that are counted, once an element.
  void count_columns() {
    const Window& k = pool_.window;
    for (std::int64_t w = 0; w < pool_.y.width; ++w) {
      const TapRange taps = valid_taps(w, k.width, 1, k.dilation_w, k.pad_left, pool_.x.width);
      const bool all = pool_.pooling == Pooling::average_with_padding;
      counts_.insert(counts_.end(), static_cast<std::size_t>(run_),
                     static_cast<float>(all ? k.width : taps.end - taps.begin));
    }
  }

  void run_rows(const Arguments& arguments, PartRange rows) const {
    auto* block = static_cast<float*>(arguments.scratch);
    for (std::int64_t first = rows.begin; first < rows.end; first += block_rows_) {
      const std::int64_t count = std::min(block_rows_, rows.end - first);
      for (std::int64_t r = 0; r < count + halo_; ++r)
        fill_row(arguments, first - pool_.window.pad_top + r, block + r * row_);
      if (is_max_)
        largest(arguments, first, count, block);
      else
        averages(arguments, first, count, block, block + block_size());
    }
  }

  // A row of the image with its padding, as f32; one outside of the image is padding alone.
  void fill_row(const Arguments& arguments, std::int64_t h, float* to) const {
    const float padding = is_max_ ? -std::numeric_limits<float>::infinity() : 0;
    if (h < 0 || h >= pool_.x.height) return void(std::fill_n(to, row_, padding));
    const std::int64_t left = pool_.window.pad_left * run_;
    const std::int64_t columns = std::min(pool_.x.width, row_ / run_ - pool_.window.pad_left);
    std::fill_n(to, left, padding);
    std::fill(to + left + columns * run_, to + row_, padding);
    const auto size = static_cast<std::int64_t>(size_in_bytes(pool_.x.type));
    const auto* x = static_cast<const std::byte*>(arguments.inputs[0]) + h * pool_.x.row_stride * size;
    if (pool_.x.column_stride == pool_.x.channels) return loops_.widen(x, columns * run_, to + left);
    for (std::int64_t c = 0; c < columns * pool_.x.batch; ++c)
      loops_.widen(x + c * pool_.x.column_stride * size, pool_.x.channels, to + left + c * pool_.x.channels);
  }

  // store(elements from the row's beginning, how many, where to) of every run of an output row.
  template <class Store>
  void for_each_run(const Arguments& arguments, std::int64_t h, const Store& store) const {
    const auto size = static_cast<std::int64_t>(size_in_bytes(pool_.y.type));
    auto* y = static_cast<std::byte*>(arguments.outputs[0]) + h * pool_.y.row_stride * size;
    if (pool_.y.column_stride == pool_.y.channels) return store(std::int64_t{0}, pool_.y.width * run_, y);
    for (std::int64_t c = 0; c < pool_.y.columns(); ++c)
      store(c * pool_.y.channels, pool_.y.channels, y + c * pool_.y.column_stride * size);
  }

  // Over windows of a power of two steps; returns how far the other window of the same size lies that
  // completes `taps` of them, 0 if none is needed.
  std::int64_t doubled(float* block, std::int64_t size, std::int64_t taps, std::int64_t step) const {
    std::int64_t width = 1;
    for (; 2 * width <= taps; width *= 2)
      loops_.larger(block, block + width * step, size - width * step, block);
    return (taps - width) * step;
  }

  void largest(const Arguments& arguments, std::int64_t first, std::int64_t rows, float* block) const {
    const Window& k = pool_.window;
    const std::int64_t size = (rows + halo_) * row_;
    const std::int64_t across = doubled(block, size, k.width, k.dilation_w * run_);
    if (across > 0) loops_.larger(block, block + across, size - across, block);
    const std::int64_t down = doubled(block, size, k.height, k.dilation_h * row_);
    for (std::int64_t r = 0; r < rows; ++r)
      for_each_run(arguments, first + r, [&](std::int64_t at, std::int64_t n, void* to) {
        const float* here = block + r * row_ + at;
        loops_.store_larger(here, here + down, n, to);
      });
  }

  // The sums over `taps` steps from each element on. Without taps but one, what is there.
  const float* summed(const float* from, float* to, std::int64_t size, std::int64_t taps,
                      std::int64_t step) const {
    if (taps == 1) return from;
    loops_.sum(from, from + step, size - step, to);
    for (std::int64_t tap = 2; tap < taps; ++tap) loops_.sum(to, from + tap * step, size - tap * step, to);
    return to;
  }

  void averages(const Arguments& arguments, std::int64_t first, std::int64_t rows, float* block,
                float* other) const {
    const Window& k = pool_.window;
    const std::int64_t size = (rows + halo_) * row_;
    const float* across = summed(block, other, size, k.width, k.dilation_w * run_);
    const float* sums = summed(across, across == block ? other : block, size, k.height, k.dilation_h * row_);
    for (std::int64_t r = 0; r < rows; ++r) {
      const TapRange taps = valid_taps(first + r, k.height, 1, k.dilation_h, k.pad_top, pool_.x.height);
      const bool all = pool_.pooling == Pooling::average_with_padding;
      const auto height = static_cast<float>(all ? k.height : taps.end - taps.begin);
      for_each_run(arguments, first + r, [&](std::int64_t at, std::int64_t n, void* to) {
        loops_.store_average(sums + r * row_ + at, counts_.data() + at, height, n, to);
      });
    }
  }

  Pool pool_;
  SlidingLoops loops_;
  std::int64_t run_, row_, halo_, block_rows_;  // elements of a position and of a padded row; rows
  bool is_max_;
  std::vector<float> counts_;
};

bool is_real(ElementType type) { return type == ElementType::f32 || type == ElementType::bf16; }

Prepared prepare(const Pool& pool) {
  const Window& k = pool.window;
  const auto no = [](std::string why) { return refuse("sliding windows", std::move(why)); };
  if (pool.save_argmax) return no("the places of the maxima are wanted");
  if (!is_real(pool.x.type) || !is_real(pool.y.type)) return no("images must be f32 or bf16");
  if (k.stride_h != 1 || k.stride_w != 1) return no("windows move on by more than one position");
  if (pool.x.planes > 1 || k.depth > 1) return no("a volume");
  if (k.pad_top < 0 || k.pad_left < 0) return no("padding below 0");
  if (pool.y.element_count() == 0) return no("nothing to do");
  const std::int64_t run = pool.x.batch * pool.x.channels;
  const std::int64_t least = pool.pooling == Pooling::max ? least_taps_of_maxima : least_taps_of_averages;
  if (k.taps() < 2 || (k.taps() < least && run >= elements_of_a_vector))
    return no(fmt::format("fewer than {} taps", least));
  KernelInfo info = describe_pooling(pool, false);
  info.name += ", rows then columns";
  return std::make_unique<SlidingPool>(std::move(info), pool);
}

}  // namespace

extern constinit const Implementation<Pool> sliding_windows{"sliding windows", prepare};

}  // namespace superstep::kernels
