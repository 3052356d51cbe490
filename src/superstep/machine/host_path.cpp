#include "superstep/machine/host_path.h"

#include <algorithm>
#include <cmath>

namespace superstep::machine {

double HostPath::without_loader(double step_seconds) const {
  return overlaps ? std::max(step_seconds + call, link) : step_seconds + call + link;
}

double HostPath::with(double step_seconds) const {
  const double step = without_loader(step_seconds);
  return reads_ahead ? std::max(step, loader) : step + loader;
}

const char* HostPath::bound_by(double step_seconds) const {
  if (loader > without_loader(step_seconds)) return "host loader";
  if (link > step_seconds && link > call) return "host link";
  return call > step_seconds ? "host call" : nullptr;
}

HostPath host_path(const CostModel& model, const HostWork& work) {
  const Machine& machine = model.machine();
  HostPath path;
  const Stack* stack = machine.stack();
  path.overlaps = model.overlaps_transfers();
  path.reads_ahead = work.loaders > 1 || !stack || stack->value("reads_ahead") != 0;
  path.link = work.accumulate * model.host_seconds(work.transfer_bytes);
  path.call = machine.value("host_call") / work.device_iterations;
  const double decode = stack && work.in_files ? stack->value("host_decode") : 0,
               join = stack && work.are_graphs ? stack->value("host_graph") : 0;
  if (work.training)
    path.loader = work.samples / work.loaders *
                  (machine.value("host_sample") + work.loader_bytes / machine.value("host_feed_rate") +
                   work.extra_seconds + decode + join);
  return path;
}

namespace {

// Logarithms of how far up and down a quantity may be, independent causes together.
struct Spread {
  double up = 0, down = 0;
  void add(double factor) {
    const double log = std::log(factor);
    (log > 0 ? up : down) += log * log;
  }
};

}  // namespace

FedInterval fed_interval(const Machine& machine, const HostWork& work, double step_seconds, double shortest,
                         double longest) {
  const HostPath usual = host_path(*cost_model(machine), work);
  const double fed = usual.with(step_seconds), alone = usual.without_loader(step_seconds);
  Spread with, without;
  const auto add = [&](const HostPath& path, double step) {
    with.add(path.with(step) / fed);
    without.add(path.without_loader(step) / alone);
  };
  for (const double end : {shortest, longest}) add(usual, end);
  const auto move = [&](const Constant& constant) {
    for (const double end : {constant.low, constant.high})
      if (end > 0) add(host_path(*cost_model(machine.with(constant.name, end)), work), step_seconds);
  };
  for (const char* name : {"host_rate", "host_latency", "host_call", "host_sample", "host_feed_rate"})
    move(machine.constant(name));
  if (machine.stack())
    for (const Constant& constant : machine.stack()->constants)
      if (constant.name == "host_decode" || constant.name == "host_graph") move(constant);
  return {fed * std::exp(-std::sqrt(with.down)), fed * std::exp(std::sqrt(with.up)),
          alone * std::exp(-std::sqrt(without.down)), alone * std::exp(std::sqrt(without.up))};
}

}  // namespace superstep::machine
