#include "superstep/baseline/language/kneser_ney.h"

#include <algorithm>

namespace superstep::baseline {

bool KneserNeyLevel::count(std::uint64_t context, std::uint64_t event) {
  Context& seen = contexts_[context];
  double& times = counts_[event];
  seen.total += 1;
  if (times == 0) seen.kinds += 1, ++once_;
  if (times == 1) --once_, ++twice_;
  if (times == 2) --twice_;
  times += 1;
  return times == 1;
}

// H. Ney, U. Essen and R. Kneser, Computer Speech and Language 8, 1 (1994).
double KneserNeyLevel::discount() const {
  constexpr double usual = 0.75, least = 0.1;
  return once_ > 0 && twice_ > 0 ? std::max(least, once_ / (once_ + 2 * twice_)) : usual;
}

double KneserNeyLevel::mix(std::uint64_t context, std::uint64_t event, double below) const {
  const auto seen = contexts_.find(context);
  if (seen == contexts_.end()) return below;
  const auto times = counts_.find(event);
  const double taken = discount(), hits = times == counts_.end() ? 0 : times->second - taken;
  return (hits + taken * seen->second.kinds * below) / seen->second.total;
}

}  // namespace superstep::baseline
