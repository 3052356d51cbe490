#include "superstep/machine/rates/fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace superstep::machine {
namespace {

// Calls off by more than this count linearly: no single one decides (chosen; a factor of 1.35).
constexpr double huber = 0.3;
// A kind is known from so many calls on (chosen).
constexpr std::size_t least_calls = 6, least_of_style = 30;
// Of fewer models (of kernels: machines) a kind is drawn to its parent the more strongly (chosen).
constexpr std::size_t least_groups = 3;
// Fits of constants and of factors in turn, and Gauss-Newton's steps of one fit: more change nothing.
constexpr int rounds = 3, steps = 12;
// How strongly a kind's constants are drawn to its parent's, and a factor to one: as so many calls that say
// so would (chosen).
constexpr double pull_of_kind = 0.3, pull_of_factor = 0.3;
// Ranges that no constant leaves: launches 0.1 us to a second, a thousandth of a peak to what the law's calls
// allow.
constexpr double least_time = 1e-7, most_time = 1, least_share = 1e-3, unbounded_share = 3;
constexpr double start_launch = 10e-6, start_share = 0.5, start_collective = 20e-6;  // where a search begins

constexpr std::size_t size = 7;
using Logs = std::array<double, size>;  // of what a term is multiplied by
using Parts = std::array<double, size>;
enum Index : std::size_t { launch, arithmetic, bytes, vectors, grouped, link, collective };

bool is_time(std::size_t i) { return i == launch || i == collective; }

Logs logs_of(const LawConstants& c) {
  return {std::log(c.launch),        -std::log(c.compute_share), -std::log(c.memory_share),
          -std::log(c.vector_share), -std::log(c.grouped_share), -std::log(c.link_share),
          std::log(c.collective)};
}

LawConstants constants_of(const Logs& logs) {
  return {.launch = std::exp(logs[launch]),
          .compute_share = std::exp(-logs[arithmetic]),
          .memory_share = std::exp(-logs[bytes]),
          .vector_share = std::exp(-logs[vectors]),
          .grouped_share = std::exp(-logs[grouped]),
          .link_share = std::exp(-logs[link]),
          .collective = std::exp(logs[collective])};
}

Logs start() {
  return logs_of({.launch = start_launch,
                  .compute_share = start_share,
                  .memory_share = start_share,
                  .vector_share = start_share,
                  .grouped_share = start_share,
                  .link_share = start_share,
                  .collective = start_collective});
}

// Seconds of each constant's terms; of arithmetic and bytes at the same time the longer counts.
Parts parts_of(const Terms& t, const Logs& logs) {
  Parts parts{t.launches, t.serial, 0, t.vectors, t.grouped, t.link, t.collectives};
  for (std::size_t i = 0; i < size; ++i) parts[i] *= std::exp(logs[i]);
  const double compute = t.compute * std::exp(logs[arithmetic]), memory = t.memory * std::exp(logs[bytes]);
  parts[compute >= memory ? arithmetic : bytes] += std::max(compute, memory);
  return parts;
}

double sum_of(const Parts& parts) {
  double sum = 0;
  for (const double part : parts) sum += part;
  return sum;
}

double huber_of(double error) {
  const double size_of = std::abs(error);
  return size_of < huber ? error * error / (2 * huber) : size_of - huber / 2;
}

// A call with what its factors say taken off.
struct Seen {
  const MeasuredCall* call;
  double log_seconds;
};

double loss_of(const std::vector<Seen>& calls, const Logs& logs) {
  double sum = 0;
  for (const Seen& seen : calls)
    sum +=
        seen.call->weight * huber_of(std::log(sum_of(parts_of(seen.call->terms, logs))) - seen.log_seconds);
  return sum;
}

double pulled(const Logs& logs, const Logs& parent, double pull) {
  double sum = 0;
  for (std::size_t i = 0; i < size; ++i) sum += (logs[i] - parent[i]) * (logs[i] - parent[i]);
  return pull * sum / 2;
}

using Matrix = std::array<std::array<double, size>, size>;

// Solves a positive definite system by elimination; `right` becomes the answer.
void solve(Matrix a, std::array<double, size>& right) {
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = i + 1; j < size; ++j) {
      const double ratio = a[j][i] / a[i][i];
      for (std::size_t k = i; k < size; ++k) a[j][k] -= ratio * a[i][k];
      right[j] -= ratio * right[i];
    }
  for (std::size_t i = size; i-- > 0;) {
    for (std::size_t k = i + 1; k < size; ++k) right[i] -= a[i][k] * right[k];
    right[i] /= a[i][i];
  }
}

// Takes a constant out of the equations.
void hold(std::size_t i, Matrix& curve, std::array<double, size>& right) {
  for (std::size_t j = 0; j < size; ++j) curve[i][j] = curve[j][i] = 0;
  curve[i][i] = 1;
  right[i] = 0;
}

// The normal equations of the loss about `logs`: its curvature and its downhill direction.
void normal_equations(const std::vector<Seen>& calls, const Logs& logs, Matrix& curve,
                      std::array<double, size>& down) {
  for (const Seen& seen : calls) {
    const Parts parts = parts_of(seen.call->terms, logs);
    const double sum = sum_of(parts), error = std::log(sum) - seen.log_seconds;
    const double weight = seen.call->weight / std::max(huber, std::abs(error));
    for (std::size_t i = 0; i < size; ++i) {
      down[i] -= weight * error * parts[i] / sum;
      for (std::size_t j = 0; j < size; ++j) curve[i][j] += weight * parts[i] * parts[j] / (sum * sum);
    }
  }
}

double clamped(std::size_t i, double log, double most_share) {
  // Bookkeeping is no share of a peak.
  const double most = i == vectors ? unbounded_share : most_share;
  return is_time(i) ? std::clamp(log, std::log(least_time), std::log(most_time))
                    : std::clamp(log, -std::log(most), -std::log(least_share));
}

using Free = std::array<bool, size>;  // which constants a kind has of its own

// Damped Gauss-Newton from the parent's constants, of those that are free.
Logs descend(const std::vector<Seen>& calls, const Logs& parent, double pull, const Free& free) {
  Logs logs = parent;
  double best = loss_of(calls, logs), damping = 1e-3;
  for (int step = 0; step < steps; ++step) {
    Matrix curve{};
    std::array<double, size> down{};
    normal_equations(calls, logs, curve, down);
    bool moved = false;
    for (int attempt = 0; attempt < 6 && !moved; ++attempt) {
      Matrix damped = curve;
      std::array<double, size> move = down;
      for (std::size_t i = 0; i < size; ++i) {
        move[i] -= pull * (logs[i] - parent[i]);
        if (!free[i]) hold(i, damped, move);
        damped[i][i] += pull + damping * (curve[i][i] + 1e-9) + 1e-9;
      }
      solve(damped, move);
      Logs tried = logs;
      for (std::size_t i = 0; i < size; ++i)
        tried[i] = clamped(i, logs[i] + std::clamp(move[i], -2.0, 2.0), calls.front().call->most_share);
      const double found = loss_of(calls, tried) + pulled(tried, parent, pull);
      moved = found < best;
      damping = moved ? damping / 4 : damping * 8;
      if (!moved) continue;
      if (best - found < 1e-5 * best) step = steps;
      best = found;
      logs = tried;
    }
    if (!moved) break;
  }
  return logs;
}

class Fit {
 public:
  explicit Fit(const std::vector<const MeasuredCall*>& calls)
      : calls_(calls), worth_(calls.empty() ? 0 : calls.front()->worth) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const MeasuredCall& call = *calls[i];
      for (std::size_t up = 0; up < call.kinds.size(); ++up) {
        if (levels_.size() <= up) levels_.resize(up + 1);
        levels_[up][call.kinds[call.kinds.size() - 1 - up]].push_back(i);
      }
      for (const std::string& name : call.factors) by_factor_[name].push_back(i);
    }
    logs_.resize(calls.size());
    offset_.resize(calls.size());
  }

  void run(std::map<std::string, LawConstants>& constants,
           std::map<std::string, FittedLaws::Factor>& factors) {
    for (int round = 0; round < rounds; ++round) {
      fit_kinds(constants);
      fit_factors();
      if (round + 1 < rounds) drop_factors();
    }
    for (const auto& [name, log] : factors_)
      if (log != 0) factors[name] = {log, by_factor_.at(name).size()};
  }

 private:
  void fit_kinds(std::map<std::string, LawConstants>& constants) {
    constants.clear();
    std::map<std::string, Logs> found;
    for (std::size_t up = 0; up < levels_.size(); ++up)
      for (const auto& [kind, of] : levels_[up]) {
        // The styles of machines have little in common: each begins anew where it has calls enough.
        const bool anew = up == 0 || (up == 1 && of.size() >= least_of_style);
        const Logs* parent = anew ? nullptr : parent_of(*calls_[of.front()], up, found);
        if (!anew && of.size() < least_calls) continue;
        fit_kind(kind, of, parent, found, constants);
      }
  }

  // The constants of the most particular kind above a level that has its own.
  static const Logs* parent_of(const MeasuredCall& call, std::size_t up,
                               const std::map<std::string, Logs>& found) {
    for (std::size_t i = call.kinds.size() - up; i < call.kinds.size(); ++i)
      if (const auto at = found.find(call.kinds[i]); at != found.end()) return &at->second;
    return nullptr;
  }

  void fit_kind(const std::string& kind, const std::vector<std::size_t>& of, const Logs* parent,
                std::map<std::string, Logs>& found, std::map<std::string, LawConstants>& constants) {
    std::set<std::string> groups;
    for (const std::size_t i : of) groups.insert(calls_[i]->group);
    std::vector<Seen> seen;
    for (const std::size_t i : of) seen.push_back({calls_[i], std::log(calls_[i]->seconds) - offset_[i]});
    constexpr double loose = 1e-3;  // a law has no parent: only what nothing sets stays where it began
    const Logs from = parent ? *parent : start();
    // Few models say little of others: the parent's constants, but for a factor of all.
    const double few = std::max(1.0, static_cast<double>(least_groups) / static_cast<double>(groups.size()));
    const double pull = parent ? pull_of_kind * few * few : loose;
    Free free;
    free.fill(true);
    Logs logs = descend(seen, from, pull, free);
    if (parent) keep_what_pays(seen, from, pull, free, logs);
    const auto own = static_cast<int>(std::ranges::count(free, true));
    if (parent && loss_of(seen, from) - loss_of(seen, logs) < worth_ * own) return keep_offsets(of, from);
    LawConstants as = constants_of(logs);
    for (std::size_t i = 0; i < size; ++i) as.fitted += logs[i] != from[i];
    as.calls = of.size();
    as.groups = groups.size();
    found[kind] = logs;
    constants[kind] = as;
    keep_offsets(of, logs);
  }

  // Gives back to the parent one constant after the other, as long as that costs less than it is worth.
  void keep_what_pays(const std::vector<Seen>& seen, const Logs& from, double pull, Free& free,
                      Logs& logs) const {
    for (;;) {
      double least = worth_;
      std::size_t which = size;
      const double now = loss_of(seen, logs);
      for (std::size_t i = 0; i < size; ++i) {
        if (!free[i]) continue;
        Logs without = logs;
        without[i] = from[i];
        const double costs = loss_of(seen, without) - now;
        if (costs < least) {
          least = costs;
          which = i;
        }
      }
      if (which == size) return;
      free[which] = false;
      logs = descend(seen, from, pull, free);
    }
  }

  // What the kind's law says of each call; particular kinds come last and have the last word.
  void keep_offsets(const std::vector<std::size_t>& of, const Logs& logs) {
    for (const std::size_t i : of) logs_[i] = std::log(sum_of(parts_of(calls_[i]->terms, logs)));
  }

  double error_of(std::size_t i) const { return std::log(calls_[i]->seconds) - logs_[i] - offset_[i]; }

  void fit_factors() {
    for (const auto& [name, of] : by_factor_)
      if (!factors_.contains(name)) factors_[name] = 0;
    for (int sweep = 0; sweep < 6; ++sweep)
      for (auto& [name, log] : factors_) {
        if (dropped_.contains(name)) continue;
        double weights = pull_of_factor, sum = 0;
        for (const std::size_t i : by_factor_.at(name)) {
          const double alone = error_of(i) + log;  // without this factor
          const double weight = calls_[i]->weight / std::max(1.0, std::abs(alone - log) / huber);
          weights += weight;
          sum += weight * alone;
        }
        set_factor(name, log, sum / weights);
      }
  }

  void set_factor(const std::string& name, double& log, double value) {
    for (const std::size_t i : by_factor_.at(name)) offset_[i] += value - log;
    log = value;
  }

  void drop_factors() {
    for (auto& [name, log] : factors_) {
      double gain = 0;
      for (const std::size_t i : by_factor_.at(name))
        gain += calls_[i]->weight * (huber_of(error_of(i) + log) - huber_of(error_of(i)));
      if (gain >= worth_ || dropped_.contains(name)) continue;
      set_factor(name, log, 0);
      dropped_.insert(name);
    }
  }

  const std::vector<const MeasuredCall*>& calls_;
  double worth_;
  std::vector<std::map<std::string, std::vector<std::size_t>>> levels_;  // from the law downwards
  std::map<std::string, std::vector<std::size_t>> by_factor_;
  std::map<std::string, double> factors_;
  std::set<std::string> dropped_;
  std::vector<double> logs_, offset_;  // of each call: its law's seconds, its factors
};

}  // namespace

void fit_laws(const std::vector<const MeasuredCall*>& calls, std::map<std::string, LawConstants>& constants,
              std::map<std::string, FittedLaws::Factor>& factors) {
  Fit(calls).run(constants, factors);
}

}  // namespace superstep::machine
