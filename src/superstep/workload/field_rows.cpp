#include "superstep/workload/field_rows.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "superstep/base/error.h"

namespace superstep::workload {
namespace {

// Zeros that take up memory where they are written to.
Tensor sparse_zeros(ElementType type, const Shape& shape) {
  const std::size_t bytes =
      std::max<std::size_t>(1, static_cast<std::size_t>(shape.element_count()) * size_in_bytes(type));
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(ErrorCode::out_of_memory,
                "pictures of these samples need more addresses than the limit leaves", "",
                "raise the limit (ulimit -v)");
  const std::shared_ptr<std::byte> owned(static_cast<std::byte*>(memory),
                                         [bytes](std::byte* zeros) { ::munmap(zeros, bytes); });
  return Tensor::over(type, shape, owned);
}

}  // namespace

FieldRows::FieldRows(std::shared_ptr<const data::SampleRows> rows, std::vector<std::string> names)
    : rows_(std::move(rows)), names_(std::move(names)) {
  if (!rows_->held()) return;
  for (std::size_t i = 0; i < names_.size(); ++i) fields_.emplace(names_[i], rows_->column(i));
}

bool FieldRows::contains(const std::string& field) const {
  return fields_.contains(field) || std::ranges::find(names_, field) != names_.end();
}

std::vector<std::size_t> FieldRows::columns_of(std::span<const std::string> fields) const {
  std::vector<std::size_t> columns;
  for (const std::string& field : fields) {
    const auto found = std::ranges::find(names_, field);
    if (found == names_.end()) throw Error(ErrorCode::bad_file, "is not there", "field " + field);
    columns.push_back(static_cast<std::size_t>(found - names_.begin()));
  }
  return columns;
}

Shape FieldRows::shape(const std::string& field) const {
  if (const auto found = fields_.find(field); found != fields_.end()) return found->second.shape();
  return rows_->shape(columns_of({&field, 1})[0]);
}

Fields FieldRows::of(std::span<const std::int64_t> indices, std::span<const std::string> fields) const {
  const std::vector<Tensor> tensors = rows_->rows(indices, columns_of(fields));
  Fields found;
  for (std::size_t i = 0; i < fields.size(); ++i) found.emplace(fields[i], tensors[i]);
  return found;
}

Fields FieldRows::among_all(std::span<const std::int64_t> indices,
                            std::span<const std::string> fields) const {
  Fields some = of(indices, fields);
  for (auto& [name, rows] : some) {
    Tensor all = sparse_zeros(rows.type(), shape(name));
    const std::size_t bytes = rows.byte_count() / std::max<std::size_t>(1, indices.size());
    for (std::size_t i = 0; i < indices.size(); ++i)
      std::memcpy(all.bytes() + static_cast<std::size_t>(indices[i]) * bytes, rows.bytes() + i * bytes,
                  bytes);
    rows = std::move(all);
  }
  return some;
}

}  // namespace superstep::workload
