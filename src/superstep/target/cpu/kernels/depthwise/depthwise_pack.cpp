#include "superstep/target/cpu/kernels/depthwise/depthwise_pack.h"

#include <algorithm>
#include <cstring>

#include "superstep/target/cpu/kernels/depthwise/depthwise_loops.h"

namespace superstep::kernels {

namespace {

constexpr std::int64_t wide = 32, narrow = 16;  // channels: two lines of the cache, one; of f32
constexpr std::int64_t wide_bytes = 256 * 1024, block_bytes = 512 * 1024;  // of a block
constexpr std::int64_t streamed_bytes = 4 << 20, most_streamed = 192;      // of an image; channels
constexpr std::int64_t least_blocks = 3, least_reads = 16;

std::int64_t element_bytes(const Image& image) {
  return static_cast<std::int64_t>(size_in_bytes(image.type));
}

template <std::size_t bytes>
void copy_columns(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step,
                  std::int64_t columns) {
  for (std::int64_t i = 0; i < columns; ++i, from += from_step, to += to_step) std::memcpy(to, from, bytes);
}

}  // namespace

DepthwiseBlock depthwise_block(const Image& source, std::int64_t reads_of_an_element) {
  const DepthwiseBlock plain{std::min(source.channels, wide)};
  if (reads_of_an_element < least_reads) return plain;
  const auto serves = [&](std::int64_t channels, std::int64_t limit) {
    return source.channels > (least_blocks - 1) * channels &&
           source.positions() * channels * element_bytes(source) <= limit;
  };
  if (serves(wide, wide_bytes)) return {wide, true};
  if (serves(narrow, block_bytes)) return {narrow, true};
  return plain;
}

DepthwiseBlock streamed_block(const Image& source, std::int64_t most_bytes,
                              std::int64_t reads_of_an_element) {
  if (most_bytes > streamed_bytes && source.channels <= most_streamed) return {source.channels};
  return depthwise_block(source, reads_of_an_element);
}

Image packed_block(Image source, const DepthwiseBlock& block) {
  if (block.widened) source.type = ElementType::f32;
  source.width += block.left + block.right;
  source.column_stride = block.channels;
  source.row_stride = source.columns() * block.channels;
  return source;
}

std::size_t packed_block_bytes(const Image& source, const DepthwiseBlock& block) {
  if (!block.packed) return 0;
  const Image packed = packed_block(source, block);
  return static_cast<std::size_t>(packed.positions() * block.channels * element_bytes(packed));
}

void pack_block(const Image& source, const DepthwiseBlock& block, std::int64_t channels,
                const std::byte* from, std::byte* to) {
  const std::int64_t size = element_bytes(source), columns = source.columns();
  const std::int64_t from_step = source.column_stride * size,
                     to_step = block.channels * element_bytes(packed_block(source, block));
  WidenLoop* const widen = widen_loop();
  const std::int64_t bytes = channels * size, left = block.left * source.batch,
                     right = block.right * source.batch;
  for (std::int64_t row = 0; row < source.height; ++row) {
    const std::byte* line = from + row * source.row_stride * size;
    std::byte* target = to + row * (left + columns + right) * to_step;
    std::memset(target, 0, static_cast<std::size_t>(left * to_step));
    target += left * to_step;
    std::memset(target + columns * to_step, 0, static_cast<std::size_t>(right * to_step));
    if (block.widened)
      widen({reinterpret_cast<const bf16*>(line), source.column_stride, reinterpret_cast<float*>(target),
             block.channels, columns, channels});
    else if (bytes == 128)
      copy_columns<128>(line, from_step, target, to_step, columns);
    else if (bytes == 64)
      copy_columns<64>(line, from_step, target, to_step, columns);
    else
      for (std::int64_t i = 0; i < columns; ++i)
        std::memcpy(target + i * to_step, line + i * from_step, static_cast<std::size_t>(bytes));
  }
}

}  // namespace superstep::kernels
