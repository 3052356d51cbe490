// Fields of samples, in memory or read when they are wanted from data that do not fit there.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/file/source/sample_rows.h"
#include "superstep/workload/generated.h"

namespace superstep::workload {

class FieldRows {
 public:
  explicit FieldRows(Fields fields) : fields_(std::move(fields)) {}
  // Columns of `rows`, by name.
  FieldRows(std::shared_ptr<const data::SampleRows> rows, std::vector<std::string> names);

  bool held() const { return !rows_ || rows_->held(); }
  bool contains(const std::string& field) const;
  Shape shape(const std::string& field) const;

  // All samples; only where they are held.
  const Fields& all() const { return fields_; }
  // Samples of these fields, numbered as they come. Thread-safe.
  Fields of(std::span<const std::int64_t> indices, std::span<const std::string> fields) const;
  // The same in place of all samples, numbered as in the file: what was not asked for is zero, and takes up
  // addresses alone. Throws Error (out_of_memory) where there are too few.
  Fields among_all(std::span<const std::int64_t> indices, std::span<const std::string> fields) const;

  const data::SampleSource* source() const { return rows_ ? &rows_->source() : nullptr; }  // null: none
  data::ForcedOrder forced_order() const { return rows_ ? rows_->forced_order() : data::ForcedOrder(); }

 private:
  std::vector<std::size_t> columns_of(std::span<const std::string> fields) const;

  Fields fields_;
  std::shared_ptr<const data::SampleRows> rows_;
  std::vector<std::string> names_;  // of its columns
};

}  // namespace superstep::workload
