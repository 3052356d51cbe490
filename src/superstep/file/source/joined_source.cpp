#include "superstep/file/source/joined_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
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
    find_segments();
    for (const SourceArray& array : parts_[0]->arrays()) add(array);
    find_shards();
    find_groups();
  }

  const std::vector<SourceArray>& arrays() const override { return arrays_; }

  void read(std::span<const std::int64_t> rows, std::span<const RowsTo> wanted) const override {
    std::vector<RowsTo> joined, shared;
    for (const RowsTo& one : wanted) (joined_[one.array] ? joined : shared).push_back(one);
    if (!shared.empty()) read_of(0, rows, shared);
    if (!joined.empty()) read_joined(rows, joined);
  }

  std::string place(std::size_t array, std::int64_t row) const override {
    if (!joined_[array]) return parts_[0]->place(positions_[0][array], row);
    const Segment& segment = segments_[segment_of(row)];
    return parts_[segment.part]->place(positions_[segment.part][array], row - segment.begin + segment.first);
  }

  std::vector<std::int64_t> shards() const override { return shards_; }
  std::optional<std::int64_t> training_rows() const override { return training_; }
  std::optional<std::size_t> group() const override { return group_; }
  std::vector<std::string> others() const override { return parts_[0]->others(); }
  std::vector<std::string> notes() const override {
    std::vector<std::string> notes;
    for (const auto& part : parts_) std::ranges::copy(part->notes(), std::back_inserter(notes));
    return notes;
  }

 private:
  // Rows of a part that follow one another here, too.
  struct Segment {
    std::size_t part = 0;
    std::int64_t first = 0, begin = 0;  // its first row, of the part and of the whole
  };

  // Where the files say which rows train, those of all come first.
  void find_segments() {
    std::size_t told = 0;
    for (const auto& part : parts_) told += part->training_rows().has_value();
    if (told == 0) {
      for (std::size_t part = 0; part < parts_.size(); ++part) append(part, 0, usual_rows(*parts_[part]));
      return;
    }
    for (std::size_t part = 0; part < parts_.size(); ++part)
      if (!parts_[part]->training_rows())
        throw Error(ErrorCode::bad_file, "does not say which samples train, as others here do", files_[part],
                    "give folders with train/ and val/ together, or none of them");
    for (std::size_t part = 0; part < parts_.size(); ++part) append(part, 0, *parts_[part]->training_rows());
    training_ = rows_;
    for (std::size_t part = 0; part < parts_.size(); ++part)
      append(part, *parts_[part]->training_rows(), usual_rows(*parts_[part]));
  }
  void append(std::size_t part, std::int64_t first, std::int64_t end) {
    if (end <= first) return;
    segments_.push_back({part, first, rows_});
    rows_ += end - first;
  }

  // Each part numbers its groups from 0: here those of a part follow those of the parts before.
  void find_groups() {
    if (!parts_[0]->group()) return;
    group_ = *parts_[0]->group();
    std::int64_t groups = 0;
    for (const auto& part : parts_) {
      first_groups_.push_back(groups);
      const std::int64_t last[] = {usual_rows(*part) - 1};
      if (part->group() && last[0] >= 0)
        groups += 1 + static_cast<std::int64_t>(read_rows(*part, *part->group(), last).at(0));
    }
  }

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

  std::size_t segment_of(std::int64_t row) const {
    const auto after =
        std::ranges::upper_bound(segments_, std::clamp<std::int64_t>(row, 0, rows_), {}, &Segment::begin);
    return static_cast<std::size_t>(after - segments_.begin()) - 1;
  }

  void read_of(std::size_t part, std::span<const std::int64_t> rows, std::vector<RowsTo> wanted) const {
    for (RowsTo& one : wanted) one.array = positions_[part][one.array];
    parts_[part]->read(rows, wanted);
  }

  // Rows of one file after the other, each into its place among all of them.
  void read_joined(std::span<const std::int64_t> rows, const std::vector<RowsTo>& wanted) const {
    for (std::size_t i = 0, end = 0; i < rows.size(); i = end) {
      const std::size_t at = segment_of(rows[i]);
      const Segment& segment = segments_[at];
      std::vector<std::int64_t> own;
      for (end = i; end < rows.size() && segment_of(rows[end]) == at; ++end)
        own.push_back(rows[end] - segment.begin + segment.first);
      std::vector<RowsTo> here = wanted;
      for (RowsTo& one : here) one.to += i * arrays_[one.array].row_bytes();
      read_of(segment.part, own, here);
      for (const RowsTo& one : here)
        if (one.array == group_) number_on(one.to, own.size(), first_groups_[segment.part]);
    }
  }

  static void number_on(std::byte* groups, std::size_t count, std::int64_t first) {
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t group = 0;
      std::memcpy(&group, groups + i * sizeof group, sizeof group);
      group += first;
      std::memcpy(groups + i * sizeof group, &group, sizeof group);
    }
  }

  // Of parts of which one can only be read in order each is a shard at least.
  void find_shards() {
    const auto in_order = [](const auto& part) { return !part->shards().empty(); };
    if (std::ranges::none_of(parts_, in_order)) return;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      const Segment& segment = segments_[i];
      const std::int64_t end = i + 1 < segments_.size() ? segments_[i + 1].begin : rows_;
      shards_.push_back(segment.begin);
      for (const std::int64_t first : parts_[segment.part]->shards())
        if (const std::int64_t row = first - segment.first + segment.begin; row > segment.begin && row < end)
          shards_.push_back(row);
    }
  }

  Parts parts_;
  std::vector<std::string> files_;
  std::vector<Segment> segments_;
  std::int64_t rows_ = 0;
  std::optional<std::int64_t> training_;
  std::optional<std::size_t> group_;
  std::vector<std::int64_t> first_groups_;  // by part
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
