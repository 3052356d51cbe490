#include "superstep/peaks/spot/link.h"

#include <algorithm>
#include <cmath>

namespace superstep::peaks {
namespace {

// For every spot of `now` the spot of `last` that its highest pixel lies in; -1: none.
std::vector<int> holders(const FrameSpots& now, const FrameSpots& last) {
  std::vector<int> holder;
  for (const FoundSpot& spot : now.spots) holder.push_back(label_at(last.runs, spot.row, spot.column));
  return holder;
}

// A spot that goes on in another, and how well: 2 where the highest pixel of the later one lies in the
// earlier one, 1 for the other way round.
struct Link {
  int before = 0, now = 0, rank = 0;
  float maximum = 0;
};

std::vector<Link> links_between(const FrameSpots& last, const FrameSpots& now) {
  std::vector<Link> links;
  const std::vector<int> back = holders(now, last), forth = holders(last, now);
  for (std::size_t i = 0; i < back.size(); ++i)
    if (back[i] >= 0) links.push_back({back[i], static_cast<int>(i), 2, now.spots[i].maximum});
  for (std::size_t i = 0; i < forth.size(); ++i)
    if (forth[i] >= 0) links.push_back({static_cast<int>(i), forth[i], 1, last.spots[i].maximum});
  std::ranges::stable_sort(links, [](const Link& a, const Link& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.maximum > b.maximum;
  });
  return links;
}

}  // namespace

void SpotLinker::add(const FrameSpots& now) {
  const auto first = static_cast<std::int32_t>(sets_.size());
  for (std::size_t i = 0; i < now.spots.size(); ++i) sets_.add();
  if (first > 0 && now.frame == last_.frame + 1)
    parts_ ? link_by_maxima(now, first) : link_by_pixels(now, first);
  last_ = {.frame = now.frame, .spots = now.spots, .runs = now.runs, .patches = {}};
  last_first_ = first;
}

void SpotLinker::link_by_maxima(const FrameSpots& now, std::int32_t first) {
  std::vector<bool> goes_on(last_.spots.size()), comes_from(now.spots.size());
  for (const Link& link : links_between(last_, now)) {
    const auto before = static_cast<std::size_t>(link.before), after = static_cast<std::size_t>(link.now);
    if (goes_on[before] || comes_from[after]) continue;
    goes_on[before] = comes_from[after] = true;
    sets_.join(last_first_ + link.before, first + link.now);
  }
}

void SpotLinker::link_by_pixels(const FrameSpots& now, std::int32_t first) {
  auto other = last_.runs.begin();
  for (const PixelRun& run : now.runs) {
    while (other != last_.runs.end() &&
           (other->row < run.row || (other->row == run.row && other->end <= run.begin)))
      ++other;
    for (auto at = other; at != last_.runs.end() && at->row == run.row && at->begin < run.end; ++at)
      if (run.label >= 0 && at->label >= 0) sets_.join(last_first_ + at->label, first + run.label);
  }
}

std::vector<std::int64_t> SpotLinker::reflections() {
  std::vector<std::int64_t> number(sets_.size());
  std::int64_t count = 0;
  for (std::size_t i = 0; i < number.size(); ++i) {
    const auto root = static_cast<std::size_t>(sets_.find(static_cast<std::int32_t>(i)));
    number[i] = root == i ? count++ : number[root];
  }
  return number;
}

std::vector<std::size_t> parts_over_frames(const std::vector<double>& intensity, double valley) {
  constexpr double sure = 3;  // standard deviations, as within a frame
  std::vector<std::size_t> begins{0};
  std::size_t top = 0, low = 0;  // the highest of this part, and the least behind it
  for (std::size_t i = 1; i < intensity.size(); ++i) {
    if (intensity[i] < intensity[low]) low = i;
    const double lower = std::min(intensity[top], intensity[i]), depth = lower - intensity[low];
    if (depth > valley * lower && depth > sure * std::sqrt(lower + intensity[low])) {
      begins.push_back(low);
      top = low = i;
    } else if (intensity[i] >= intensity[top]) {
      top = low = i;
    }
  }
  return begins;
}

}  // namespace superstep::peaks
