#include "superstep/machine/rates/law.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace superstep::machine {
namespace {

// Calls off by more than this count linearly: no single one decides (chosen; a factor of 1.35).
constexpr double huber = 0.3;
// A level is known from so many calls on; a machine's own from 30, as few kernels say little of a machine
// (chosen).
constexpr std::size_t least_calls = 6, least_own_calls = 30;
constexpr int rounds = 16;
constexpr double first_step = 0.7, shrink = 0.75;  // of logarithms
// Ranges that no constant leaves: launches 0.3 us to a second, a thousandth of a peak to half more than it
// (the sheet's clock is not the board's).
constexpr double least_launch = 0.3e-6, most_launch = 1, least_share = 1e-3, most_share = 1.5;
constexpr double least_collective = 1e-7, most_collective = 1;
constexpr double start_launch = 10e-6, start_share = 0.5, start_collective = 20e-6;  // where a search begins

// Neighbours that count, and how fast their weight falls: by a factor of e a doubling in every direction.
constexpr std::size_t nearest = 4;
constexpr double reach = 0.7;

double loss_of(const std::vector<const MeasuredCall*>& calls, const LawConstants& constants) {
  double sum = 0;
  for (const MeasuredCall* call : calls) {
    const double error = std::abs(std::log(law_seconds(call->terms, constants) / call->seconds));
    sum += call->weight * (error < huber ? error * error / (2 * huber) : error - huber / 2);
  }
  return sum;
}

struct Mover {
  double* value;
  double low, high;
};

// One constant after the other, up or down as far as the loss falls, by steps that become smaller.
template <class Loss>
void descend(std::vector<Mover> movers, Loss loss) {
  double best = loss(), step = first_step;
  const auto moves = [&](const Mover& mover, double by) {
    const double old = *mover.value;
    *mover.value = std::clamp(old * std::exp(by), mover.low, mover.high);
    const double found = loss();
    if (found < best) {
      best = found;
      return true;
    }
    *mover.value = old;
    return false;
  };
  for (int round = 0; round < rounds; ++round, step *= shrink)
    for (const Mover& mover : movers)
      for (const double direction : {-step, step}) {
        if (!moves(mover, direction)) continue;
        while (moves(mover, direction)) {
        }
        break;
      }
}

bool any(const std::vector<const MeasuredCall*>& calls, double Terms::*term) {
  return std::ranges::any_of(calls, [&](const MeasuredCall* call) { return call->terms.*term > 0; });
}

LawConstants fit_all(const std::vector<const MeasuredCall*>& calls) {
  LawConstants constants{.launch = start_launch,
                         .compute_share = start_share,
                         .memory_share = start_share,
                         .collective = start_collective};
  std::vector<Mover> movers;
  const auto add = [&](bool wanted, double& value, double low, double high) {
    if (wanted)
      movers.push_back({&value, low, high});
    else
      value = low;
  };
  const bool arithmetic = any(calls, &Terms::compute) || any(calls, &Terms::serial);
  add(any(calls, &Terms::launches), constants.launch, least_launch, most_launch);
  add(arithmetic, constants.compute_share, least_share, most_share);
  add(any(calls, &Terms::memory), constants.memory_share, least_share, most_share);
  add(any(calls, &Terms::collectives), constants.collective, least_collective, most_collective);
  descend(movers, [&] { return loss_of(calls, constants); });
  constants.fitted = static_cast<int>(movers.size());
  return constants;
}

// A machine's own two: its launch, and by how much its shares differ from those of its kind.
LawConstants fit_own(const std::vector<const MeasuredCall*>& calls, const LawConstants& of_kind) {
  LawConstants own = of_kind;
  double factor = 1;
  const auto loss = [&] {
    LawConstants tried = own;
    tried.compute_share *= factor;
    tried.memory_share *= factor;
    return loss_of(calls, tried);
  };
  constexpr double most_factor = 8;
  descend({{&own.launch, least_launch, most_launch}, {&factor, 1 / most_factor, most_factor}}, loss);
  own.compute_share *= factor;
  own.memory_share *= factor;
  own.fitted = 2;
  return own;
}

double squared_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

}  // namespace

double law_seconds(const Terms& terms, const LawConstants& constants) {
  return constants.launch * terms.launches + terms.serial / constants.compute_share +
         std::max(terms.compute / constants.compute_share, terms.memory / constants.memory_share) +
         constants.collective * terms.collectives;
}

FittedLaws::FittedLaws(const std::vector<const MeasuredCall*>& calls) {
  std::array<std::map<std::string, std::vector<const MeasuredCall*>>, 4> by_level;
  for (const MeasuredCall* call : calls)
    for (std::size_t level = 0; level < call->keys.size(); ++level)
      if (!call->keys[level].empty()) by_level[level][call->keys[level]].push_back(call);
  const auto keep = [&](const std::string& key, LawConstants found,
                        const std::vector<const MeasuredCall*>& of) {
    std::set<std::string> groups;
    for (const MeasuredCall* call : of) groups.insert(call->group);
    found.calls = of.size();
    found.groups = groups.size();
    constants_.emplace(key, found);
  };
  for (std::size_t level = by_level.size(); level-- > 1;)
    for (const auto& [key, of] : by_level[level])
      if (of.size() >= least_calls || level + 1 == by_level.size()) keep(key, fit_all(of), of);
  for (const auto& [key, of] : by_level[0]) {
    const LawConstants* kind = find(*of.front());
    if (!kind || of.size() < least_own_calls) continue;
    // A stack on a machine has all four, a machine's kernels two beside their neighbours.
    keep(key, of.front()->place.empty() ? fit_all(of) : fit_own(of, *kind), of);
  }
  for (const MeasuredCall* call : calls)
    if (!call->place.empty())
      neighbours_[call->keys[0]].push_back(
          {call->place, std::log(call->seconds / seconds(*call)), call->may_be_kept});
}

const LawConstants* FittedLaws::find(const MeasuredCall& call) const {
  for (const std::string& key : call.keys)
    if (const auto found = constants_.find(key); !key.empty() && found != constants_.end())
      return &found->second;
  return nullptr;
}

double FittedLaws::seconds(const MeasuredCall& call) const {
  const LawConstants* constants = find(call);
  return constants ? law_seconds(call.terms, *constants) : 0;
}

double FittedLaws::seconds_by_neighbours(const MeasuredCall& call) const {
  const double by_law = seconds(call);
  const auto found = neighbours_.find(call.keys[0]);
  if (call.place.empty() || found == neighbours_.end()) return by_law;
  std::vector<std::pair<double, double>> near;  // squared distance, residual
  for (const Neighbour& neighbour : found->second)
    near.emplace_back(squared_distance(neighbour.place, call.place), neighbour.residual);
  const std::size_t count = std::min(nearest, near.size());
  std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count), near.end());
  // One more that says nothing: what lies far from all is the law's alone.
  double weights = std::exp(-4.0), sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double weight = std::exp(-std::sqrt(near[i].first) / reach);
    weights += weight;
    sum += weight * near[i].second;
  }
  return by_law * std::exp(sum / weights);
}

}  // namespace superstep::machine
