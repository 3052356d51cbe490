// Some arrays of a source as the elements that a model takes: in memory where they fit into what they may
// take, else read when rows are wanted. Both give the same bits.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/file/source/order.h"
#include "superstep/file/source/sample_source.h"

namespace superstep::data {

// Bytes that samples may take: what was asked for, or a quarter of what is free.
double data_memory(double asked = 0);

class SampleRows {
 public:
  struct Column {
    std::size_t array = 0;                // of the source
    ElementType type = ElementType::f32;  // wanted
    bool finite = true;                   // NaN and infinity are refused
    std::string unless = {};              // added to what is said to be done about them
  };
  // All columns have as many rows. Reads them here, and says how far it is, where they fit into `most_bytes`.
  // Throws Error (bad_file) naming array and element: a number that is not finite, or that the type wanted
  // cannot hold.
  SampleRows(std::shared_ptr<const SampleSource> source, std::vector<Column> columns, double most_bytes);

  const SampleSource& source() const { return *source_; }
  // Of the source, held or not, so that the memory changes nothing; the buffer is a matter of their size
  // alone.
  ForcedOrder forced_order() const;
  std::int64_t count() const { return count_; }
  bool held() const { return held_; }
  // Bytes of a row of all columns, as they are given.
  std::size_t row_bytes() const;

  Shape shape(std::size_t column) const { return source_->arrays()[columns_[column].array].shape(); }
  // All rows of a column; only where they are held.
  const Tensor& column(std::size_t column) const { return tensors_[column]; }
  // Rows of these columns, [rows, ...] each. Thread-safe. Throws as the constructor, and what reading throws.
  std::vector<Tensor> rows(std::span<const std::int64_t> rows, std::span<const std::size_t> columns) const;

 private:
  void hold();
  std::vector<Tensor> stored(std::span<const std::int64_t> rows, std::span<const std::size_t> columns) const;
  Tensor wanted(const Tensor& stored, const Column& column, std::span<const std::int64_t> rows) const;

  std::shared_ptr<const SampleSource> source_;
  std::vector<Column> columns_;
  std::int64_t count_ = 0;
  bool held_ = false;
  std::vector<Tensor> tensors_;
};

// `tensor` as `type`, which must hold all of it (require_integers_of() in file/check.h). `rows` number its
// rows.
Tensor exactly_converted(const Tensor& tensor, ElementType type, const std::string& where,
                         std::span<const std::int64_t> rows);

}  // namespace superstep::data
