#include "superstep/file/source/row_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"

namespace superstep::data {
namespace {

class RowsOfFile : public RowReader {
 public:
  RowsOfFile(std::shared_ptr<const StableFile> file, const FileRows& place)
      : file_(std::move(file)), place_(place) {}

  void read(std::span<const std::int64_t> rows, std::byte* to) const override {
    const std::size_t row = place_.row_bytes;
    for_runs(rows, row, to, [&](std::int64_t first, std::int64_t count, std::byte* at) {
      file_->read(place_.begin + static_cast<std::uint64_t>(first) * row,
                  {at, static_cast<std::size_t>(count) * row});
    });
    file_->require_unchanged();
    put_in_order({to, rows.size() * row});
  }

 private:
  void put_in_order(std::span<std::byte> bytes) const {
    for (std::size_t at = 0; place_.swapped > 0 && at < bytes.size(); at += place_.swapped)
      std::ranges::reverse(bytes.subspan(at, place_.swapped));
    if (!place_.boolean) return;
    for (std::byte& byte : bytes) byte = std::byte{byte != std::byte{0}};
  }

  std::shared_ptr<const StableFile> file_;
  FileRows place_;
};

class RowsOfTensor : public RowReader {
 public:
  RowsOfTensor(std::size_t row_bytes, std::function<Tensor()> load)
      : row_bytes_(row_bytes), load_(std::move(load)) {}

  void read(std::span<const std::int64_t> rows, std::byte* to) const override {
    {
      const std::lock_guard lock(mutex_);
      if (!tensor_) tensor_ = load_();
    }
    for_runs(rows, row_bytes_, to, [&](std::int64_t first, std::int64_t count, std::byte* at) {
      std::memcpy(at, tensor_->bytes() + static_cast<std::size_t>(first) * row_bytes_,
                  static_cast<std::size_t>(count) * row_bytes_);
    });
  }

 private:
  std::size_t row_bytes_;
  std::function<Tensor()> load_;
  mutable std::mutex mutex_;
  mutable std::optional<Tensor> tensor_;
};

}  // namespace

std::unique_ptr<RowReader> rows_of_file(std::shared_ptr<const StableFile> file, const FileRows& place) {
  return std::make_unique<RowsOfFile>(std::move(file), place);
}

std::unique_ptr<RowReader> rows_of_tensor(std::size_t row_bytes, std::function<Tensor()> load) {
  return std::make_unique<RowsOfTensor>(row_bytes, std::move(load));
}

void for_runs(std::span<const std::int64_t> rows, std::size_t row_bytes, std::byte* to,
              const std::function<void(std::int64_t first, std::int64_t count, std::byte* to)>& copy) {
  for (std::size_t i = 0, end = 0; i < rows.size(); i = end) {
    for (end = i + 1; end < rows.size() && rows[end] == rows[end - 1] + 1;) ++end;
    copy(rows[i], static_cast<std::int64_t>(end - i), to + i * row_bytes);
  }
}

void ArraySource::add(SourceArray array, std::unique_ptr<RowReader> rows) {
  arrays_.push_back(std::move(array));
  readers_.push_back(std::move(rows));
}

void ArraySource::read(std::span<const std::int64_t> rows, std::span<const RowsTo> arrays) const {
  for (const RowsTo& wanted : arrays) {
    const std::int64_t count = arrays_[wanted.array].rows;
    for (const std::int64_t row : rows)
      if (row < 0 || row >= count)
        throw Error(ErrorCode::internal, fmt::format("row {} of {} was asked for", row, count),
                    place(wanted.array, row));
    if (arrays_[wanted.array].row_bytes() > 0) readers_[wanted.array]->read(rows, wanted.to);
  }
}

std::string ArraySource::place(std::size_t array, std::int64_t) const {
  const std::string& name = arrays_[array].name;
  return name.empty() ? where_ : fmt::format("{}: {} '{}'", where_, named_, printable(name));
}

std::unique_ptr<SampleSource> source_of(const std::map<std::string, Tensor>& arrays, std::string where) {
  auto source = std::make_unique<ArraySource>(std::move(where), "array");
  for (const auto& [name, tensor] : arrays) {
    const SourceArray array = array_of(name, tensor.type(), tensor.shape());
    source->add(array, rows_of_tensor(array.row_bytes(), [tensor] { return tensor; }));
  }
  return source;
}

SourceArray array_of(std::string name, ElementType type, const Shape& shape) {
  SourceArray array{.name = std::move(name), .type = type, .row = shape, .rows = 1, .single = true};
  if (shape.rank() == 0) return array;
  const auto& extents = shape.extents();
  array.row = Shape(std::vector<std::int64_t>(extents.begin() + 1, extents.end()));
  array.rows = extents[0];
  array.single = false;
  return array;
}

}  // namespace superstep::data
