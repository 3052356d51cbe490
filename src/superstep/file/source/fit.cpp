#include "superstep/file/source/fit.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/file/source/arranged_source.h"

namespace superstep::data {
namespace {

// For each axis wanted the extent of the one that it is made of: 1 where the array has none. Extents that
// agree are taken before axes of one element are put in or left out.
class Alignment {
 public:
  Alignment(const Extents& have, const Extents& want, bool crop) : have_(have), want_(want), crop_(crop) {}

  std::optional<Extents> find() { return from(0, 0) ? std::optional(found_) : std::nullopt; }

 private:
  bool from(std::size_t h, std::size_t w) {
    if (h == have_.size() && w == want_.size()) return true;
    const bool both = h < have_.size() && w < want_.size();
    if (both && pairs(have_[h], want_[w]) && take(have_[h], h + 1, w + 1)) return true;
    if (w < want_.size() && want_[w] == 1 && take(1, h, w + 1)) return true;
    return h < have_.size() && have_[h] == 1 && from(h + 1, w);
  }

  bool pairs(std::int64_t have, std::int64_t want) const {
    return want < 0 || have == want || (crop_ && want > 1 && have > want);
  }

  bool take(std::int64_t extent, std::size_t h, std::size_t w) {
    found_.push_back(extent);
    if (from(h, w)) return true;
    found_.pop_back();
    return false;
  }

  const Extents &have_, &want_;
  bool crop_;
  Extents found_;
};

// Two axes at least that are no single elements: the middle of a list of numbers is no smaller picture.
bool is_picture(const Extents& want) {
  return std::ranges::count_if(want, [](std::int64_t extent) { return extent != 1; }) >= 2;
}

Fit fit_of(const Extents& from, const Extents& want, bool one_sample) {
  Extents row = from;
  for (std::size_t i = 0; i < row.size(); ++i)
    if (want[i] >= 0) row[i] = want[i];
  return {Shape(row), Shape(from), one_sample};
}

std::string told(const SourceArray& array, const Fit& fit) {
  SourceArray as = array;
  as.row = fit.row;
  as.rows = fit.one_sample ? 1 : array.rows;
  as.single = false;
  if (fit.crops())
    return fmt::format("the middle {} of each sample of {}", to_string(fit.row), to_string(array.row));
  return fmt::format("{} is taken as {}{}", to_string(array.shape()), to_string(as.shape()),
                     fit.one_sample ? ", one sample" : "");
}

const WantedRow* wanted_as(const SampleSource& source, const SourceArray& array,
                           std::span<const WantedRow> wanted) {
  const auto found = std::ranges::find(wanted, array.name, &WantedRow::name);
  if (found != wanted.end()) return &*found;
  const bool alone = array.name.empty() && source.arrays().size() == 1 && wanted.size() == 1;
  return alone ? wanted.data() : nullptr;
}

}  // namespace

std::optional<Fit> fit_to(const SourceArray& have, const Extents& wanted, bool crop) {
  const Extents& row = have.row.extents();
  if (!have.single) {
    if (const auto from = Alignment(row, wanted, false).find()) return fit_of(*from, wanted, false);
    if (crop && is_picture(wanted))
      if (const auto from = Alignment(row, wanted, true).find()) return fit_of(*from, wanted, false);
  }
  // Of open extents any array would be a sample.
  if (std::ranges::any_of(wanted, [](std::int64_t extent) { return extent < 0; })) return std::nullopt;
  const Shape whole = have.shape();
  const auto from = Alignment(whole.extents(), wanted, false).find();
  return from ? std::optional(fit_of(*from, wanted, true)) : std::nullopt;
}

std::string hint_to_fit(const SourceArray& have, const Extents& want) {
  const std::optional<Fit> fit = fit_to(have, want, true);
  return fit && fit->crops()
             ? fmt::format("--crop center takes the middle {} of each sample", to_string(fit->row))
             : "";
}

std::shared_ptr<const SampleSource> fitted(std::shared_ptr<const SampleSource> source,
                                           std::span<const WantedRow> wanted, bool crop) {
  std::vector<Arranged> arranged;
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < source->arrays().size(); ++i) {
    const SourceArray& array = source->arrays()[i];
    arranged.push_back({.part = 0, .array = i, .as = array, .from = array.row, .whole = false});
    const WantedRow* want = wanted_as(*source, array, wanted);
    const std::optional<Fit> fit = want ? fit_to(array, want->row, crop) : std::nullopt;
    if (!fit || (fit->row == array.row && !fit->one_sample && !array.single)) continue;
    Arranged& changed = arranged.back();
    changed.as.row = fit->row;
    changed.as.single = false;
    if (fit->one_sample) changed.as.rows = 1;
    changed.from = fit->from;
    changed.whole = fit->one_sample;
    notes.push_back(fmt::format("{}: {}", source->place(i, 0), told(array, *fit)));
  }
  if (notes.empty()) return source;
  return arranged_source({std::move(source)}, std::move(arranged), std::move(notes));
}

}  // namespace superstep::data
