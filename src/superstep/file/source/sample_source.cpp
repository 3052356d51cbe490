#include "superstep/file/source/sample_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/base/text.h"

namespace superstep::data {

Shape SourceArray::shape() const {
  if (single) return row;
  std::vector<std::int64_t> extents = row.extents();
  extents.insert(extents.begin(), rows);
  return Shape(std::move(extents));
}

std::size_t find_array(const SampleSource& source, std::string_view name) {
  const auto found = std::ranges::find(source.arrays(), name, &SourceArray::name);
  return static_cast<std::size_t>(found - source.arrays().begin());
}

std::size_t require_array(const SampleSource& source, std::string_view name, const std::string& where) {
  const std::size_t found = find_array(source, name);
  if (found < source.arrays().size()) return found;
  std::vector<std::string> known;
  for (const SourceArray& array : source.arrays()) known.push_back(array.name);
  for (const std::string& other : source.others())
    if (other.starts_with(fmt::format("'{}'", name)))
      throw Error(ErrorCode::bad_file, other + " is no array of numbers", where);
  throw Error(ErrorCode::not_found, fmt::format("has no array '{}'", name), where,
              unknown_name_hint(name, known));
}

Tensor read_rows(const SampleSource& source, std::size_t array, std::span<const std::int64_t> rows) {
  SourceArray some = source.arrays()[array];
  some.rows = static_cast<std::int64_t>(rows.size());
  Tensor tensor(some.type, some.shape());
  const RowsTo to{array, tensor.bytes()};
  if (tensor.byte_count() > 0) source.read(rows, {&to, 1});
  return tensor;
}

Tensor read_whole(const SampleSource& source, std::size_t array) {
  constexpr std::size_t block_bytes = 16 << 20;  // chosen: a moment's reading
  const SourceArray& all = source.arrays()[array];
  const std::string where = source.place(array, 0);
  require_memory(all.bytes(), where);
  Tensor tensor(all.type, all.shape());
  if (tensor.byte_count() == 0) return tensor;
  Progress progress("reading " + where, static_cast<double>(all.rows), "rows");
  InterruptCheck stop;
  const auto block = static_cast<std::int64_t>(std::max<std::size_t>(1, block_bytes / all.row_bytes()));
  std::vector<std::int64_t> rows;
  for (std::int64_t first = 0; first < all.rows; first += block) {
    rows.resize(static_cast<std::size_t>(std::min(block, all.rows - first)));
    std::iota(rows.begin(), rows.end(), first);
    const RowsTo to{array, tensor.bytes() + static_cast<std::size_t>(first) * all.row_bytes()};
    source.read(rows, {&to, 1});
    progress.update(static_cast<double>(first + block));
    stop.throw_if_due(where);
  }
  return tensor;
}

std::int64_t training_rows(const SampleSource& source, std::int64_t count, double share) {
  if (const auto said = source.training_rows()) return std::min(*said, count);
  const auto usual = static_cast<std::int64_t>(share * static_cast<double>(count));
  if (!source.group() || usual < 1 || usual >= count) return usual;
  const auto group_of = [&](std::int64_t row) {
    return read_rows(source, *source.group(), std::span(&row, 1)).at(0);
  };
  // Groups ascend: the first row of the one that the share ends in.
  const double cut = group_of(usual);
  std::int64_t first = 0;
  for (std::int64_t length = usual; length > 0;) {
    const std::int64_t half = length / 2;
    if (group_of(first + half) < cut) {
      first += half + 1;
      length -= half + 1;
    } else {
      length = half;
    }
  }
  return first > 0 ? first : usual;
}

}  // namespace superstep::data
