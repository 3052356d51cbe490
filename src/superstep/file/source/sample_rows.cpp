#include "superstep/file/source/sample_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/system/free_memory.h"
#include "superstep/base/system/interrupt_check.h"
#include "superstep/file/check.h"
#include "superstep/file/source/ordered_source.h"

namespace superstep::data {
namespace {

constexpr std::size_t block_bytes = 16 << 20;  // read at once: chosen, a moment's reading

std::vector<std::int64_t> numbered(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

// `check(tensor, first)` of rows by their own numbers: it counts from the first of those that it is given.
template <class Check>
void check_rows(const Tensor& tensor, std::span<const std::int64_t> rows, const Check& check) {
  if (tensor.shape().rank() == 0 || rows.empty()) return check(tensor, std::int64_t{0});
  const bool in_turn = rows.back() - rows.front() == static_cast<std::int64_t>(rows.size()) - 1 &&
                       std::ranges::is_sorted(rows);
  if (in_turn) return check(tensor, rows.front());
  try {
    check(tensor, std::int64_t{0});
  } catch (const Error&) {
    std::vector<std::int64_t> extents = tensor.shape().extents();
    extents[0] = 1;
    const std::size_t bytes = tensor.byte_count() / rows.size();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Tensor one(tensor.type(), Shape(extents));
      std::memcpy(one.bytes(), tensor.bytes() + i * bytes, bytes);
      check(one, rows[i]);
    }
    throw;
  }
}

// With what else may be done about it.
template <class Check>
void check_finite(const SampleRows::Column& column, const Check& check) {
  if (!column.finite) return;
  try {
    check();
  } catch (const Error& error) {
    throw Error(error.code(), error.message(), error.where(), error.hint() + column.unless);
  }
}

}  // namespace

double data_memory(double asked) {
  constexpr double unknown = double{1 << 30};  // where the system does not say what is free: chosen
  if (asked > 0) return asked;
  const double free = available_memory();
  return free > 0 ? free / 4 : unknown;
}

Tensor exactly_converted(const Tensor& tensor, ElementType type, const std::string& where,
                         std::span<const std::int64_t> rows) {
  if (tensor.type() == type) return tensor;
  if (is_narrower_integer(type, tensor.type()))
    check_rows(tensor, rows, [&](const Tensor& some, std::int64_t first) {
      require_integers_of(type, some, where, first);
    });
  return tensor.converted(type);
}

SampleRows::SampleRows(std::shared_ptr<const SampleSource> source, std::vector<Column> columns,
                       double most_bytes)
    : source_(std::move(source)), columns_(std::move(columns)) {
  if (!columns_.empty()) count_ = source_->arrays()[columns_[0].array].rows;
  // An array that can only be had as a whole is in memory once it is read: the source says what it takes.
  held_ = static_cast<double>(row_bytes()) * static_cast<double>(count_) <= most_bytes;
  if (held_) hold();
}

std::size_t SampleRows::row_bytes() const {
  std::size_t bytes = 0;
  for (const Column& column : columns_)
    bytes += static_cast<std::size_t>(source_->arrays()[column.array].row.element_count()) *
             size_in_bytes(column.type);
  return bytes;
}

ForcedOrder SampleRows::forced_order() const {
  // Half of what a source keeps, so that batches on their way find theirs, and no more samples than shuffle
  // well: both chosen.
  constexpr double bytes = OrderedSource::default_kept_bytes / 2, most = 4096;
  double sample = 1;
  for (const SourceArray& array : source_->arrays()) sample += static_cast<double>(array.row_bytes());
  return {source_->shards(), static_cast<std::int64_t>(std::clamp(bytes / sample, 1.0, most))};
}

std::vector<Tensor> SampleRows::stored(std::span<const std::int64_t> rows,
                                       std::span<const std::size_t> columns) const {
  std::vector<Tensor> tensors;
  std::vector<RowsTo> places;
  for (const std::size_t column : columns) {
    SourceArray some = source_->arrays()[columns_[column].array];
    some.rows = static_cast<std::int64_t>(rows.size());
    tensors.emplace_back(some.type, some.shape());
    places.push_back({columns_[column].array, tensors.back().bytes()});
  }
  if (!places.empty() && !rows.empty()) source_->read(rows, places);
  return tensors;
}

Tensor SampleRows::wanted(const Tensor& stored, const Column& column,
                          std::span<const std::int64_t> rows) const {
  const std::string where = source_->place(column.array, rows.empty() ? 0 : rows[0]);
  return exactly_converted(stored, column.type, where, rows);
}

std::vector<Tensor> SampleRows::rows(std::span<const std::int64_t> rows,
                                     std::span<const std::size_t> columns) const {
  std::vector<Tensor> tensors = stored(rows, columns);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Column& column = columns_[columns[i]];
    tensors[i] = wanted(tensors[i], column, rows);
    check_finite(column, [&] {
      const std::string where = source_->place(column.array, rows.empty() ? 0 : rows[0]);
      if (is_floating(tensors[i].type()))
        check_rows(tensors[i], rows,
                   [&](const Tensor& some, std::int64_t first) { require_finite(some, where, first); });
    });
  }
  return tensors;
}

// Block by block into the types wanted; what is no number is looked for in the whole, as it is told then.
void SampleRows::hold() {
  const std::string where = columns_.empty() ? "" : source_->place(columns_[0].array, 0);
  require_memory(static_cast<double>(row_bytes()) * static_cast<double>(count_), where);
  for (const Column& column : columns_) {
    SourceArray all = source_->arrays()[column.array];
    all.type = column.type;
    tensors_.emplace_back(all.type, all.shape());
  }
  Progress progress = Progress::passing("reading samples", static_cast<double>(count_), "samples");
  InterruptCheck stop;
  std::vector<std::size_t> all_of_them(columns_.size());
  std::iota(all_of_them.begin(), all_of_them.end(), std::size_t{0});
  const std::size_t row = std::max<std::size_t>(1, row_bytes());
  const auto block = static_cast<std::int64_t>(std::max<std::size_t>(1, block_bytes / row));
  for (std::int64_t first = 0; first < count_; first += block) {
    const std::vector<std::int64_t> rows = numbered(first, std::min(block, count_ - first));
    const std::vector<Tensor> some = stored(rows, all_of_them);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Tensor converted = wanted(some[i], columns_[i], rows);
      const std::size_t each = converted.byte_count() / rows.size();
      std::memcpy(tensors_[i].bytes() + static_cast<std::size_t>(first) * each, converted.bytes(),
                  converted.byte_count());
    }
    progress.update(static_cast<double>(first + block));
    stop.throw_if_due(where);
  }
  for (std::size_t i = 0; i < columns_.size(); ++i)
    check_finite(columns_[i], [&] { require_finite(tensors_[i], source_->place(columns_[i].array, 0)); });
}

}  // namespace superstep::data
