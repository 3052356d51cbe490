#include "superstep/target/cpu/kernels/winograd/winograd_transform.h"

#include <cstddef>
#include <cstring>

namespace superstep::kernels {

namespace {

template <class T>
T* moved(T* data, std::int64_t elements, ElementType type) {
  using Bytes = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return static_cast<Bytes*>(data) + elements * static_cast<std::int64_t>(size_in_bytes(type));
}

// The missing half of the last pair.
void pad_pairs(const WinogradGrid& grid, std::int64_t columns, std::int64_t channels,
               const WinogradPlanes& planes) {
  const std::int64_t last = (columns - 1) * channels;
  for (std::int64_t plane = 0; plane < grid.planes(); ++plane)
    std::memset(moved(planes.data, plane * planes.stride + last, planes.type), 0,
                static_cast<std::size_t>(2 * channels) * size_in_bytes(planes.type));
}

}  // namespace

void transform_tiles(WinogradLoop* loop, const WinogradGrid& grid, const WinogradSource& source,
                     PartRange columns, const WinogradPlanes& planes) {
  const Image& image = source.image;
  const std::int64_t channels = source.channels;
  const bool joined = image.column_stride == channels && !planes.pairs;
  const auto inside = [&](std::int64_t start, std::int64_t extent) {
    return WinogradRun::Range{std::max<std::int64_t>(0, -start), std::min(source.side, extent - start)};
  };
  if (planes.pairs && (columns.end - columns.begin) % 2 != 0)
    pad_pairs(grid, columns.end - columns.begin, channels, planes);
  grid.for_each_piece(columns, [&](const WinogradGrid::Piece& piece) {
    const std::int64_t row = piece.row * grid.tile - source.pad_top,
                       column = piece.column * grid.tile - source.pad_left;
    const std::int64_t samples = piece.end - piece.begin, first = piece.first - columns.begin;
    const std::int64_t start =
        image.offset(row, column) + piece.begin * image.column_stride + source.first_channel;
    loop({.square = const_cast<void*>(moved(source.data, start, image.type)),
          .type = image.type,
          .row_stride = image.row_stride,
          .column_stride = image.batch * image.column_stride,
          .rows = inside(row, image.height),
          .columns = inside(column, image.width),
          .run_stride = image.column_stride,
          .planes = planes.pairs ? planes.data : moved(planes.data, first * channels, planes.type),
          .plane_stride = planes.stride,
          .plane_run_stride = channels,
          .runs = joined ? 1 : samples,
          .length = joined ? samples * channels : channels,
          .first_column = first});
  });
}

}  // namespace superstep::kernels
