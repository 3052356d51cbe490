#include "superstep/file/source/joined_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "superstep/base/error.h"

namespace superstep::data {
namespace {

using Parts = std::vector<std::unique_ptr<SampleSource>>;

class JoinedSource : public SampleSource {
 public:
  JoinedSource(Parts parts, std::vector<std::string> files)
      : parts_(std::move(parts)), files_(std::move(files)) {
    for (const auto& part : parts_) {
      begins_.push_back(rows_);
      rows_ += usual_rows(*part);
    }
    for (const SourceArray& array : parts_[0]->arrays()) add(array);
    find_shards();
  }

  const std::vector<SourceArray>& arrays() const override { return arrays_; }

  void read(std::span<const std::int64_t> rows, std::span<const RowsTo> wanted) const override {
    std::vector<RowsTo> joined, shared;
    for (const RowsTo& one : wanted) (joined_[one.array] ? joined : shared).push_back(one);
    if (!shared.empty()) read_of(0, rows, shared);
    if (!joined.empty()) read_joined(rows, joined);
  }

  std::string place(std::size_t array, std::int64_t row) const override {
    const std::size_t part = joined_[array] ? part_of(row) : 0;
    return parts_[part]->place(positions_[part][array], row - begins_[part]);
  }

  std::vector<std::int64_t> shards() const override { return shards_; }
  std::vector<std::string> others() const override { return parts_[0]->others(); }
  std::vector<std::string> notes() const override {
    std::vector<std::string> notes;
    for (const auto& part : parts_) std::ranges::copy(part->notes(), std::back_inserter(notes));
    return notes;
  }

 private:
  void add(const SourceArray& first) {
    const bool joined = !first.single && first.rows == usual_rows(*parts_[0]);
    SourceArray whole = first;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      const std::size_t at = find_array(*parts_[part], first.name);
      if (at == parts_[part]->arrays().size()) missing(first.name, part);
      const SourceArray& other = parts_[part]->arrays()[at];
      require_same(first, other, joined ? usual_rows(*parts_[part]) : first.rows, part);
    }
    if (joined) whole.rows = rows_;
    positions_.resize(parts_.size());
    for (std::size_t part = 0; part < parts_.size(); ++part)
      positions_[part].push_back(find_array(*parts_[part], first.name));
    arrays_.push_back(std::move(whole));
    joined_.push_back(joined);
  }

  [[noreturn]] void missing(const std::string& name, std::size_t part) const {
    throw Error(ErrorCode::bad_file, fmt::format("has no array '{}', which {} has", name, files_[0]),
                files_[part]);
  }

  void require_same(const SourceArray& first, const SourceArray& other, std::int64_t rows,
                    std::size_t part) const {
    if (other.type == first.type && other.row == first.row && other.single == first.single &&
        other.rows == rows && other.classes == first.classes)
      return;
    throw Error(ErrorCode::bad_file,
                other.classes == first.classes
                    ? fmt::format("array '{}' is {} of shape {}, that of {} is {} of {}", first.name,
                                  name_of(other.type), to_string(other.shape()), files_[0],
                                  name_of(first.type), to_string(first.shape()))
                    : fmt::format("the classes of '{}' are not those of {}", first.name, files_[0]),
                files_[part], "files that are read together hold the same arrays");
  }

  std::size_t part_of(std::int64_t row) const {
    const auto after = std::ranges::upper_bound(begins_, std::clamp<std::int64_t>(row, 0, rows_));
    return static_cast<std::size_t>(after - begins_.begin()) - 1;
  }

  void read_of(std::size_t part, std::span<const std::int64_t> rows, std::vector<RowsTo> wanted) const {
    for (RowsTo& one : wanted) one.array = positions_[part][one.array];
    parts_[part]->read(rows, wanted);
  }

  // Rows of one file after the other, each into its place among all of them.
  void read_joined(std::span<const std::int64_t> rows, const std::vector<RowsTo>& wanted) const {
    for (std::size_t i = 0, end = 0; i < rows.size(); i = end) {
      const std::size_t part = part_of(rows[i]);
      std::vector<std::int64_t> own;
      for (end = i; end < rows.size() && part_of(rows[end]) == part; ++end)
        own.push_back(rows[end] - begins_[part]);
      std::vector<RowsTo> here = wanted;
      for (RowsTo& one : here) one.to += i * arrays_[one.array].row_bytes();
      read_of(part, own, std::move(here));
    }
  }

  // Of parts of which one can only be read in order each is a shard at least.
  void find_shards() {
    const auto in_order = [](const auto& part) { return !part->shards().empty(); };
    if (std::ranges::none_of(parts_, in_order)) return;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      const std::vector<std::int64_t> own = parts_[part]->shards();
      if (own.empty()) shards_.push_back(begins_[part]);
      for (const std::int64_t first : own) shards_.push_back(begins_[part] + first);
    }
  }

  Parts parts_;
  std::vector<std::string> files_;
  std::vector<std::int64_t> begins_;  // by part: its first row
  std::int64_t rows_ = 0;
  std::vector<SourceArray> arrays_;
  std::vector<bool> joined_;                         // by array
  std::vector<std::vector<std::size_t>> positions_;  // by part and array
  std::vector<std::int64_t> shards_;
};

}  // namespace

std::int64_t usual_rows(const SampleSource& source) {
  std::map<std::int64_t, int> counts;
  for (const SourceArray& array : source.arrays())
    if (!array.single) ++counts[array.rows];
  std::pair<int, std::int64_t> most{0, 0};
  for (const auto& [rows, count] : counts) most = std::max(most, {count, rows});
  return most.second;
}

std::unique_ptr<SampleSource> joined_sources(Parts parts, std::vector<std::string> files) {
  if (parts.size() == 1) return std::move(parts[0]);
  return std::make_unique<JoinedSource>(std::move(parts), std::move(files));
}

}  // namespace superstep::data
