#include "superstep/openmp/command.h"

namespace superstep::openmp {

std::vector<Turns> find_turns(const std::vector<int>& row) {
  constexpr std::size_t longest_period = 8;
  std::vector<Turns> result;
  for (std::size_t i = 0; i < row.size();) {
    Turns best{i, 1, 1};
    for (std::size_t period = 1; period <= longest_period && i + 2 * period <= row.size(); ++period) {
      std::size_t same = 0;
      while (i + period + same < row.size() && row[i + same] == row[i + period + same]) ++same;
      const std::size_t count = 1 + same / period;
      if (count > 1 && count * period > best.count * best.period) best = {i, period, count};
    }
    result.push_back(best);
    i += best.period * best.count;
  }
  return result;
}

}  // namespace superstep::openmp
