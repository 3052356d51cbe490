// A source of samples: arrays whose rows are read when they are wanted, so that data need not fit into
// memory. A form of file is one class behind this interface and one line of the table in
// file/source/forms.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/tensor.h"

namespace superstep::data {

// An array of a source. Its rows are numbered along its first axis: one a sample, or (an array of another
// length, a single value) something that samples share.
struct SourceArray {
  std::string name;  // "" of an npy file, which names nothing
  ElementType type = ElementType::f32;
  Shape row;              // of one row
  std::int64_t rows = 0;  // of a single value 1
  bool single = false;    // has no first axis: its shape is `row`
  // What whole numbers in it stand for, where the form knows: the names of classes.
  std::vector<std::string> classes = {};

  std::size_t row_bytes() const {
    return static_cast<std::size_t>(row.element_count()) * size_in_bytes(type);
  }
  double bytes() const { return static_cast<double>(row_bytes()) * static_cast<double>(rows); }
  Shape shape() const;  // of the whole array
};

// Rows of one array, and where they are put: as many times row_bytes() as rows are asked for.
struct RowsTo {
  std::size_t array = 0;  // its position in arrays()
  std::byte* to = nullptr;
};

class SampleSource {
 public:
  virtual ~SampleSource() = default;

  // Settled when the source is opened; the order is kept.
  virtual const std::vector<SourceArray>& arrays() const = 0;

  // The same rows of several arrays, in the order of `rows`, which may name a row twice: what belongs to one
  // sample (a picture and its label) is found and decoded once. Thread-safe; what it fills depends on `rows`
  // alone. Throws Error (bad_file, io) naming the file and array: a part is damaged, the disk failed, the
  // file was changed since it was opened.
  virtual void read(std::span<const std::int64_t> rows, std::span<const RowsTo> arrays) const = 0;

  // How errors name an array, and the file of this row where there are several: "FILE: array 'NAME'".
  virtual std::string place(std::size_t array, std::int64_t row) const = 0;

  // Of a source that can only be read from a beginning on (a compressed archive): the first rows of its
  // shards, ascending, the first 0. Rows of a shard in ascending order are read once; going back begins the
  // shard again. Empty: any order is as good.
  virtual std::vector<std::int64_t> shards() const { return {}; }

  // Where the files say themselves which rows train (folders train/ and val/): the first so many.
  virtual std::optional<std::int64_t> training_rows() const { return {}; }
  // The array (i64, ascending) that numbers what belongs together, such as the slices of a patient: neighbors
  // of one number are not to be divided between training and validation.
  virtual std::optional<std::size_t> group() const { return {}; }

  // What the files hold beside arrays of numbers, for errors and `show`: "'mask' (compound)".
  virtual std::vector<std::string> others() const { return {}; }
  // What was left out and why, for people: "3 pictures could not be decoded: a.jpg, ...".
  virtual std::vector<std::string> notes() const { return {}; }
};

// The position of an array; none of this name: arrays().size().
std::size_t find_array(const SampleSource& source, std::string_view name);

// The same; throws Error (not_found) with the nearest name or what there is.
std::size_t require_array(const SampleSource& source, std::string_view name, const std::string& where);

// Rows, or all of an array, in memory of their own: [rows, ...]. read_whole() says on the terminal how far it
// is, and throws Error (out_of_memory) before it reads what does not fit.
Tensor read_rows(const SampleSource& source, std::size_t array, std::span<const std::int64_t> rows);
Tensor read_whole(const SampleSource& source, std::size_t array);

// How many of the first `count` rows train: as the files say, else `share` of them, less what would cut a
// group in two. One group alone has to be cut.
std::int64_t training_rows(const SampleSource& source, std::int64_t count, double share);

}  // namespace superstep::data
