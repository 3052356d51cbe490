#include "superstep/file/source/arranged_source.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>

namespace superstep::data {
namespace {

using Parts = std::vector<std::shared_ptr<const SampleSource>>;

// The middle of a row: runs along the last axis, one after the other.
void copy_middle(const std::byte* from, const Shape& of, std::byte* to, const Shape& middle,
                 std::size_t element) {
  const int last = of.rank() - 1;
  const std::size_t run = static_cast<std::size_t>(middle[last]) * element;
  std::vector<std::int64_t> at(static_cast<std::size_t>(of.rank()), 0);
  for (;;) {
    std::int64_t place = 0;
    for (int axis = 0; axis <= last; ++axis)
      place = place * of[axis] + (of[axis] - middle[axis]) / 2 + at[static_cast<std::size_t>(axis)];
    std::memcpy(to, from + static_cast<std::size_t>(place) * element, run);
    to += run;
    int axis = last - 1;
    while (axis >= 0 && ++at[static_cast<std::size_t>(axis)] == middle[axis])
      at[static_cast<std::size_t>(axis--)] = 0;
    if (axis < 0) return;
  }
}

class ArrangedSource : public SampleSource {
 public:
  ArrangedSource(Parts parts, std::vector<Arranged> arranged, std::vector<std::string> notes)
      : parts_(std::move(parts)), arranged_(std::move(arranged)), notes_(std::move(notes)) {
    for (const Arranged& each : arranged_) arrays_.push_back(each.as);
  }

  const std::vector<SourceArray>& arrays() const override { return arrays_; }

  // What belongs to one sample is asked for together, as far as it is of one source.
  void read(std::span<const std::int64_t> rows, std::span<const RowsTo> wanted) const override {
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      std::vector<RowsTo> together;
      std::vector<std::pair<RowsTo, std::vector<std::byte>>> cut;
      for (const RowsTo& one : wanted) {
        const Arranged& each = arranged_[one.array];
        if (each.part != part) continue;
        if (each.whole) {
          read_whole_for(each, rows.size(), one.to);
        } else if (each.from == each.as.row) {
          together.push_back({each.array, one.to});
        } else {
          const std::size_t row = parts_[part]->arrays()[each.array].row_bytes();
          cut.emplace_back(one, std::vector<std::byte>(row * rows.size()));
          together.push_back({each.array, cut.back().second.data()});
        }
      }
      if (!together.empty()) parts_[part]->read(rows, together);
      for (const auto& [one, read] : cut) cut_all(arranged_[one.array], read, rows.size(), one.to);
    }
  }

  std::string place(std::size_t array, std::int64_t row) const override {
    const Arranged& each = arranged_[array];
    return parts_[each.part]->place(each.array, each.whole ? 0 : row);
  }

  // Of all parts that are read in an order: a shard of each begins where one of any does.
  std::vector<std::int64_t> shards() const override {
    std::vector<std::int64_t> shards;
    for (const auto& part : parts_) std::ranges::copy(part->shards(), std::back_inserter(shards));
    std::ranges::sort(shards);
    shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
    return shards;
  }
  std::optional<std::int64_t> training_rows() const override {
    for (const auto& part : parts_)
      if (const auto rows = part->training_rows()) return rows;
    return {};
  }
  std::optional<std::size_t> group() const override {
    for (std::size_t i = 0; i < arranged_.size(); ++i)
      if (parts_[arranged_[i].part]->group() == arranged_[i].array) return i;
    return {};
  }
  std::vector<std::string> others() const override {
    std::vector<std::string> others;
    for (const auto& part : parts_) std::ranges::copy(part->others(), std::back_inserter(others));
    return others;
  }
  std::vector<std::string> notes() const override {
    std::vector<std::string> notes;
    for (const auto& part : parts_) std::ranges::copy(part->notes(), std::back_inserter(notes));
    std::ranges::copy(notes_, std::back_inserter(notes));
    return notes;
  }

 private:
  void read_whole_for(const Arranged& each, std::size_t times, std::byte* to) const {
    const SourceArray& array = parts_[each.part]->arrays()[each.array];
    std::vector<std::int64_t> rows(static_cast<std::size_t>(array.rows));
    std::iota(rows.begin(), rows.end(), 0);
    const std::size_t bytes = each.as.row_bytes();
    const RowsTo all{each.array, to};
    if (times > 0 && bytes > 0) parts_[each.part]->read(rows, {&all, 1});
    for (std::size_t i = 1; i < times; ++i) std::memcpy(to + i * bytes, to, bytes);
  }

  static void cut_all(const Arranged& each, const std::vector<std::byte>& read, std::size_t rows,
                      std::byte* to) {
    const std::size_t from = read.size() / std::max<std::size_t>(1, rows), bytes = each.as.row_bytes();
    for (std::size_t i = 0; i < rows; ++i)
      copy_middle(read.data() + i * from, each.from, to + i * bytes, each.as.row,
                  size_in_bytes(each.as.type));
  }

  Parts parts_;
  std::vector<Arranged> arranged_;
  std::vector<std::string> notes_;
  std::vector<SourceArray> arrays_;
};

}  // namespace

std::unique_ptr<SampleSource> arranged_source(Parts parts, std::vector<Arranged> arrays,
                                              std::vector<std::string> notes) {
  return std::make_unique<ArrangedSource>(std::move(parts), std::move(arrays), std::move(notes));
}

}  // namespace superstep::data
