// Records as rows of arrays: what sources of records share.
#pragma once

#include <string>
#include <vector>

#include "superstep/file/records/record.h"
#include "superstep/file/source/request.h"

namespace superstep::data {

// The first record says which arrays there are: a number or a list of numbers is an array of its name, a
// picture is one as large as it is wanted (file/pictures/picture_forms.h), else as it is, and what is neither
// is told in others(). Where arrays are wanted under names that no record has, the only picture is taken for
// the wanted picture, and the only single whole number, or that named cls, label or class, for the wanted
// one. A wanted array of as many elements gives its shape. Every record must have all arrays; what differs in
// shape, or in numbers that are no whole ones where the first had whole ones, is an error of its record.
class RecordSource : public SampleSource {
 public:
  const std::vector<SourceArray>& arrays() const override { return arrays_; }
  void read(std::span<const std::int64_t> rows, std::span<const RowsTo> arrays) const override;
  std::string place(std::size_t array, std::int64_t row) const override;
  std::vector<std::string> others() const override { return others_; }
  std::vector<std::string> notes() const override { return notes_; }
  std::vector<std::int64_t> shards() const override {
    return is_ordered() ? std::vector<std::int64_t>{0} : std::vector<std::int64_t>{};
  }

 protected:
  // Thread-safe. Throws Error where it is damaged.
  virtual Record record(std::int64_t row) const = 0;
  virtual std::string place_of(std::int64_t row) const = 0;  // "FILE: record 7"
  virtual void require_unchanged() const = 0;
  // Whether records are best read in their order (SampleSource::shards()).
  virtual bool is_ordered() const { return false; }

  // To be called once, when records can be read. With skip_broken all are looked at, and of those that cannot
  // be read none is a row. Throws Error (bad_file) where no record can be read.
  void settle(std::int64_t records, const SourceRequest& request);

  // Of what settle() found, for forms that need no records to read their arrays.
  const std::string& name_in_records(std::size_t array) const { return columns_[array].name; }
  bool is_picture(std::size_t array) const { return columns_[array].picture; }
  std::int64_t number_of(std::int64_t row) const;  // of the record
  void put_picture(std::span<const std::byte> bytes, std::int64_t row, std::size_t array,
                   std::byte* to) const;
  void set_classes(std::size_t array, std::vector<std::string> classes) {
    arrays_[array].classes = std::move(classes);
  }
  void add_note(std::string note) { notes_.push_back(std::move(note)); }
  void add_other(std::string other) { others_.push_back(std::move(other)); }

 private:
  struct Column {
    std::string name;  // in the records
    bool picture = false, as_it_is = false;
  };
  void add(const RecordValue& value, const SourceRequest& request);
  void add_picture(const RecordValue& value, const SourceRequest& request);
  void add_numbers(const RecordValue& value, const SourceRequest& request);
  void rename_number(const SourceRequest& request);
  void put(const Record& record, std::int64_t row, std::size_t array, std::byte* to) const;
  void put_numbers(const Tensor& numbers, std::int64_t row, std::size_t array, std::byte* to) const;

  std::vector<SourceArray> arrays_;
  std::vector<Column> columns_;  // by array
  std::vector<std::string> others_, notes_;
  std::vector<std::int64_t> sound_;  // records by row; empty: all are
};

}  // namespace superstep::data
