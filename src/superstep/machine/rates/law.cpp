#include "superstep/machine/rates/law.h"

#include <algorithm>
#include <cmath>

#include "superstep/machine/rates/fit.h"

namespace superstep::machine {
namespace {

// Neighbours that count, and how fast their weight falls: by a factor of e a doubling in every direction.
// What another machine took over the law says less (chosen).
constexpr std::size_t nearest = 4;
constexpr double reach = 0.7;
// One more that says nothing: what lies far from all is the law's alone.
const double silent_own = std::exp(-4.0), silent_related = 0.5;

double squared_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

using Near = std::vector<std::pair<double, double>>;  // squared distance, residual

void add_near(const std::vector<FittedLaws::Neighbour>& all, const std::vector<double>& place, Near& near) {
  for (const FittedLaws::Neighbour& one : all)
    near.emplace_back(squared_distance(one.place, place), one.residual);
}

double residual_by(Near& near, double silent) {
  const std::size_t count = std::min(nearest, near.size());
  std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count), near.end());
  double weights = silent, sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double weight = std::exp(-std::sqrt(near[i].first) / reach);
    weights += weight;
    sum += weight * near[i].second;
  }
  return sum / weights;
}

}  // namespace

double law_seconds(const Terms& terms, const LawConstants& constants) {
  return constants.launch * terms.launches + terms.serial / constants.compute_share +
         std::max(terms.compute / constants.compute_share, terms.memory / constants.memory_share) +
         terms.vectors / constants.vector_share + terms.grouped / constants.grouped_share +
         terms.link / constants.link_share + constants.collective * terms.collectives;
}

FittedLaws::FittedLaws(const std::vector<const MeasuredCall*>& calls) {
  fit_laws(calls, constants_, factors_);
  for (const MeasuredCall* call : calls)
    if (!call->place.empty())
      add(call->own, call->relatives,
          {call->place, std::log(call->seconds / seconds(*call)), call->may_be_kept});
}

void FittedLaws::add(const std::string& own, const std::vector<std::string>& relatives, Neighbour neighbour) {
  const auto [found, is_new] = neighbours_.try_emplace(own);
  if (is_new) {
    found->second.relatives = relatives;
    for (const std::string& group : relatives) related_[group].push_back(own);
  }
  found->second.all.push_back(std::move(neighbour));
}

const LawConstants* FittedLaws::constants_of(const MeasuredCall& call) const {
  for (const std::string& kind : call.kinds)
    if (const auto found = constants_.find(kind); found != constants_.end()) return &found->second;
  return nullptr;
}

double FittedLaws::factor_of(const MeasuredCall& call) const {
  double log = 0;
  for (const std::string& name : call.factors)
    if (const auto found = factors_.find(name); found != factors_.end()) log += found->second.log;
  return std::exp(log);
}

double FittedLaws::seconds(const MeasuredCall& call) const {
  const LawConstants* constants = constants_of(call);
  return constants ? law_seconds(call.terms, *constants) * factor_of(call) : 0;
}

double FittedLaws::seconds_by_neighbours(const MeasuredCall& call) const {
  const double by_law = seconds(call);
  if (call.place.empty()) return by_law;
  Near near;
  if (const auto own = neighbours_.find(call.own); own != neighbours_.end()) {
    add_near(own->second.all, call.place, near);
    return by_law * std::exp(residual_by(near, silent_own));
  }
  for (const std::string& group : call.relatives) {
    const auto found = related_.find(group);
    if (found == related_.end()) continue;
    for (const std::string& name : found->second) add_near(neighbours_.at(name).all, call.place, near);
    return by_law * std::exp(residual_by(near, silent_related));
  }
  return by_law;
}

bool FittedLaws::measured(const MeasuredCall& call) const { return neighbours_.contains(call.own); }

std::size_t FittedLaws::constant_count() const {
  std::size_t count = factors_.size();
  for (const auto& [kind, constants] : constants_) count += static_cast<std::size_t>(constants.fitted);
  return count;
}

}  // namespace superstep::machine
