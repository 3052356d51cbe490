#include "superstep/study/search/halving.h"

#include <algorithm>
#include <cmath>

namespace superstep::study {
namespace {

bool better(const Standing& a, const Standing& b, std::size_t rung) {
  return a.losses[rung] != b.losses[rung] ? a.losses[rung] < b.losses[rung] : a.number < b.number;
}

// Those that have done the rung, best first.
std::vector<const Standing*> done(const std::vector<Standing>& trials, std::size_t rung) {
  std::vector<const Standing*> all;
  for (const Standing& trial : trials)
    if (trial.losses.size() > rung) all.push_back(&trial);
  std::ranges::sort(all, [&](const Standing* a, const Standing* b) { return better(*a, *b, rung); });
  return all;
}

bool waits_on(const Standing& trial, std::size_t rung) {
  return trial.state == Standing::State::paused && static_cast<std::size_t>(trial.rung) == rung &&
         std::isfinite(trial.losses[rung]);
}

}  // namespace

Halving halving_of(double most, int least, int keep_one_in) {
  Halving halving{.epochs = {static_cast<int>(std::max(1.0, std::ceil(most)))}, .keep_one_in = keep_one_in};
  while (keep_one_in > 1 && halving.epochs.front() / keep_one_in >= std::max(1, least))
    halving.epochs.insert(halving.epochs.begin(), halving.epochs.front() / keep_one_in);
  return halving;
}

std::optional<std::int64_t> promoted(const std::vector<Standing>& trials, const Halving& halving) {
  for (std::size_t rung = halving.epochs.size() - 1; rung-- > 0;) {
    const std::vector<const Standing*> all = done(trials, rung);
    const std::size_t kept = all.size() / static_cast<std::size_t>(halving.keep_one_in);
    for (std::size_t i = 0; i < kept; ++i)
      if (waits_on(*all[i], rung)) return all[i]->number;
  }
  return std::nullopt;
}

std::optional<std::int64_t> last_promoted(const std::vector<Standing>& trials, const Halving& halving) {
  const std::size_t last = halving.epochs.size() - 1;
  const bool ended = std::ranges::any_of(trials, [&](const Standing& trial) {
    return trial.losses.size() > last && std::isfinite(trial.losses[last]);
  });
  if (ended) return std::nullopt;
  for (std::size_t rung = last; rung-- > 0;)
    for (const Standing* trial : done(trials, rung))
      if (waits_on(*trial, rung)) return trial->number;
  return std::nullopt;
}

}  // namespace superstep::study
