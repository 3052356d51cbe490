#include "superstep/run/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

namespace superstep::run {
namespace {

using Kind = Schedule::Kind;

double epochs_of(const Moment& moment) {
  return static_cast<double>(moment.step) /
         static_cast<double>(std::max<std::int64_t>(1, moment.steps_an_epoch));
}

// Of the way from the lowest rate to the peak.
double triangle(double epochs, double half, bool halving) {
  const double halves = epochs / half, cycle = std::floor(halves / 2);
  const double height = std::max(0.0, 1 - std::abs(halves - 2 * cycle - 1));
  return halving ? height * std::exp2(-cycle) : height;
}

double warming_rate(const Schedule& schedule, const Moment& moment, double warm_up) {
  const double from = schedule.shape.warm_up_from;
  if (!schedule.shape.warm_up_by_epoch)
    return from + (schedule.peak - from) * (static_cast<double>(moment.step) + 1) / warm_up;
  const double share = std::floor(epochs_of(moment)) / schedule.shape.warm_up_epochs;
  return from * (1 - share) + schedule.peak * share;
}

}  // namespace

std::int64_t warm_up_steps(const workload::Schedule& shape, const Moment& moment) {
  if (shape.warm_up_epochs > 0)
    return static_cast<std::int64_t>(
        std::ceil(shape.warm_up_epochs * static_cast<double>(moment.steps_an_epoch)));
  return static_cast<std::int64_t>(
      std::ceil(shape.warm_up_share * static_cast<double>(std::max<std::int64_t>(1, moment.steps))));
}

double learning_rate(const Schedule& schedule, const Moment& moment, double reduced) {
  const workload::Schedule& shape = schedule.shape;
  const double total = static_cast<double>(std::max<std::int64_t>(1, moment.steps));
  const auto warm_up = static_cast<double>(warm_up_steps(shape, moment));
  const double at = static_cast<double>(moment.step), low = shape.final_share * schedule.peak;
  if (at < warm_up) return warming_rate(schedule, moment, warm_up);
  const double progress = std::min(1.0, (at - warm_up) / std::max(1.0, total - warm_up));
  const double decays = shape.period > 0 ? epochs_of(moment) / shape.period : 0;
  switch (shape.kind) {
    case Kind::constant: return schedule.peak;
    case Kind::linear: return low + (schedule.peak - low) * (1 - progress);
    case Kind::cosine:
      return low + (schedule.peak - low) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
    case Kind::triangular:
    case Kind::triangular2:
      return low + (schedule.peak - low) *
                       triangle(epochs_of(moment), shape.period, shape.kind == Kind::triangular2);
    case Kind::exponential: return std::max(low, schedule.peak * std::pow(shape.factor, decays));
    case Kind::stairs: return std::max(low, schedule.peak * std::pow(shape.factor, std::floor(decays)));
    case Kind::plateau: return std::max(low, schedule.peak * reduced);
  }
  return schedule.peak;
}

void watch(Plateau& plateau, const workload::Schedule& shape, double value, bool gained, bool warming_up) {
  ++plateau.waited;
  ++plateau.without_gain;
  if (gained) {
    plateau.best = value;
    plateau.waited = plateau.without_gain = 0;
  }
  if (shape.kind != Kind::plateau || plateau.waited < std::max(1, shape.patience)) return;
  plateau.waited = 0;
  if (!warming_up) plateau.reduced = std::max(shape.final_share, plateau.reduced * shape.factor);
}

bool gives_up(const Plateau& plateau, const workload::Schedule& shape) {
  return shape.give_up > 0 && plateau.without_gain >= shape.give_up;
}

nlohmann::json to_json(const Schedule& schedule) {
  const workload::Schedule& shape = schedule.shape;
  nlohmann::json object{{"kind", name_of(shape.kind)},
                        {"peak", schedule.peak},
                        {"final_share", shape.final_share},
                        {"warm_up_share", shape.warm_up_share}};
  if (shape.warm_up_epochs > 0) object["warm_up_epochs"] = shape.warm_up_epochs;
  if (shape.warm_up_from > 0) object["warm_up_from"] = shape.warm_up_from;
  if (shape.period > 0) object["period"] = shape.period;
  if (shape.factor != 1) object["factor"] = shape.factor;
  if (shape.patience > 0) object["patience"] = shape.patience;
  if (!shape.monitor.empty()) object["monitor"] = shape.monitor;
  if (shape.give_up > 0) object["give_up"] = shape.give_up;
  return object;
}

}  // namespace superstep::run
