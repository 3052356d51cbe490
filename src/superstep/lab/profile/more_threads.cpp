#include "superstep/lab/profile/more_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/lab/machine/host_times.h"
#include "superstep/lab/machine/rates.h"
#include "superstep/record/environment.h"

namespace superstep::lab {
namespace {

using target::PlanStep;
using target::PlanSummary;

// Seconds until a processor sees what another one wrote: measured on virtual machines of one host, from one
// hour to the next (docs/figures.md).
constexpr double near_processors = 40e-9, far_processors = 250e-9;

// The share of a run below which nothing is said to limit it. Chosen.
constexpr double too_little = 0.02;

// A schedule on its way: phase after phase.
class Walk {
 public:
  Walk(const PlanSummary& plan, const ThreadCosts& costs)
      : plan_(plan),
        costs_(costs),
        stays_in_cache_(static_cast<double>(plan.bytes_in_all()) <= costs.last_cache) {}

  SimulatedTime run() {
    const auto count = static_cast<std::size_t>(plan_.batch / plan_.micro_batch);
    if (plan_.in_step)
      walk_in_step(count);
    else if (plan_.groups > 1)
      take_groups(shares_of(count), plan_.steps);
    else
      for (std::size_t i = 0; i < count; ++i) take_in_order(plan_.steps);
    take_in_order(plan_.update);
    return time_;
  }

 private:
  double threads() const { return plan_.threads; }
  double meeting(double called) const { return called < 2 ? 0 : costs_.calling + costs_.each * (called - 2); }

  // `count` micro-batches over the groups, as first_of() has it.
  std::vector<std::size_t> shares_of(std::size_t count) const {
    std::vector<std::size_t> shares;
    for (std::size_t group = 0; group < plan_.groups; ++group)
      shares.push_back((group + 1) * count / plan_.groups - group * count / plan_.groups);
    return shares;
  }

  // A phase that takes at least `seconds`, in which `work` seconds of one thread are done and `bytes` pass.
  void phase(double work, double seconds, bool by_one, double bytes) {
    time_.shared += work / threads();
    (by_one ? time_.alone : time_.uneven) += seconds - work / threads();
    const double moved = std::min(bytes, work * costs_.one_rate);
    const double moving = stays_in_cache_ ? 0 : moved / costs_.memory_rate;
    time_.memory += std::max(0.0, moving - seconds);
  }

  // Every step of a single micro-batch, divided where that pays.
  void take_in_order(const std::vector<PlanStep>& steps) {
    for (const PlanStep& step : steps) divide(step, step.parts, step.seconds, step.bytes);
  }

  // A step in so many pieces, which threads take as they are free.
  void divide(const PlanStep& step, std::int64_t pieces, double work, double bytes) {
    if (step.threads < 2) return phase(work, work, true, bytes);
    const double called = std::min<double>(step.threads, static_cast<double>(pieces));
    const double rounds = std::ceil(static_cast<double>(pieces) / called);
    phase(work, step.evenly ? work / called : work * rounds / static_cast<double>(pieces), false, bytes);
    time_.calling += meeting(called);
  }

  // Groups of so many micro-batches each, which threads take one at a time.
  void take_groups(const std::vector<std::size_t>& shares, std::span<const PlanStep> steps) {
    double one = 0, bytes = 0, all = 0;
    for (const PlanStep& step : steps) {
      one += step.seconds;
      bytes += step.bytes;
    }
    std::vector<double> busy(static_cast<std::size_t>(plan_.threads), 0.0);
    for (const std::size_t share : shares) {
      *std::ranges::min_element(busy) += one * static_cast<double>(share);
      all += static_cast<double>(share);
    }
    phase(one * all, std::ranges::max(busy), false, bytes * all);
    time_.calling += meeting(std::min(threads(), static_cast<double>(shares.size())));
  }

  void walk_in_step(std::size_t count) {
    if (std::ranges::any_of(plan_.steps, &PlanStep::joins)) return walk_round(shares_of(count));
    for (std::size_t left = count; left > 0; left -= std::min(left, plan_.groups))
      walk_round(std::vector<std::size_t>(std::min(left, plan_.groups), 1));
  }

  // From one step that all groups take together to the next, in which each goes on alone.
  void walk_round(const std::vector<std::size_t>& shares) {
    std::size_t count = 0;
    for (const std::size_t share : shares) count += share;
    const auto all = static_cast<double>(count);
    const std::span<const PlanStep> steps = plan_.steps;
    const auto together = [](const PlanStep& step) { return step.joins || step.threads > 1; };
    for (std::size_t begin = 0, end = 0; begin < steps.size(); begin = end) {
      while (end < steps.size() && !together(steps[end])) ++end;
      if (end > begin) take_groups(shares, steps.subspan(begin, end - begin));
      for (; end < steps.size() && together(steps[end]); ++end)
        if (const PlanStep& step = steps[end]; step.joins)
          phase(step.seconds, step.seconds, true, 0);
        else
          divide(step, step.parts * static_cast<std::int64_t>(count), step.seconds * all, step.bytes * all);
    }
  }

  const PlanSummary& plan_;
  const ThreadCosts& costs_;
  bool stays_in_cache_;  // what steps leave for each other
  SimulatedTime time_;
};

// The times of `measured`, a plan for one thread, so that they make up the whole of its run: what lies
// between steps is theirs.
void take_times(PlanSummary& planned, const Profile& measured) {
  const auto give = [&](std::vector<PlanStep>& to, const std::vector<PlanStep>& from) {
    const bool same = std::ranges::equal(to, from, {}, &PlanStep::node, &PlanStep::node);
    if (!same)
      throw Error(ErrorCode::unsupported,
                  fmt::format("the plan for {} threads has other steps than that for one", planned.threads),
                  measured.name);
    for (std::size_t i = 0; i < to.size(); ++i) to[i].seconds = from[i].seconds;
  };
  give(planned.steps, measured.plan.steps);
  give(planned.update, measured.plan.update);
  double sum = 0;
  for (const auto* steps : {&measured.plan.steps, &measured.plan.update})
    for (const PlanStep& step : *steps) sum += step.seconds * static_cast<double>(step.executions);
  for (auto* steps : {&planned.steps, &planned.update})
    for (PlanStep& step : *steps) step.seconds *= measured.seconds / sum;
}

ProfileSettings on_threads(ProfileSettings settings, int threads, std::int64_t micro_batch) {
  settings.threads = threads;
  settings.micro_batch = micro_batch;
  return settings;
}

PlanSummary planned_for(const target::Target& target, const ProfiledModel& model,
                        const ProfileSettings& settings, int threads) {
  return target
      .compile(model.graph, {.batch = settings.batch,
                             .micro_batch = model.fixed_batch ? settings.batch : settings.micro_batch,
                             .threads = threads})
      ->summary();
}

}  // namespace

ThreadCosts MeasuredCosts::better(int threads) const {
  const double more = std::max(1.0, static_cast<double>(threads) / processors);
  return {calling, each_low, memory_rate * more, last_cache * more, memory_rate};
}

ThreadCosts MeasuredCosts::worse() const {
  return {calling, each_high, memory_rate, last_cache, memory_rate};
}

MeasuredCosts measure_thread_costs() {
  const int here = measuring_threads(1 << 20);
  MeasuredCosts costs{.each_low = near_processors, .each_high = far_processors, .processors = here};
  // A call and the end of it are each one write that another processor sees, as a barrier is.
  costs.calling = here > 1 ? 2 * barrier_time(2).value : 1e-6;
  if (here >= 4)
    costs.each_low = costs.each_high =
        std::max(0.0, (2 * barrier_time(here).value - costs.calling) / (here - 2));
  const MachineFloor floor = measure_floor(here);
  costs.memory_rate = floor.levels.back().bytes_per_second * here;
  costs.last_cache = static_cast<double>(record::cache_sizes().level3);
  return costs;
}

const char* SimulatedRun::limit() const {
  const std::pair<double, const char*> found[] = {{high.memory, "memory"},
                                                  {high.uneven, "uneven shares"},
                                                  {high.alone, "one thread alone"},
                                                  {high.calling, "calling threads"}};
  const auto& most = *std::ranges::max_element(found);
  return most.first < too_little * high.seconds() ? "-" : most.second;
}

SimulatedTime simulate(const PlanSummary& planned, const ThreadCosts& costs) {
  return Walk(planned, costs).run();
}

std::vector<SimulatedRun> simulate_threads(const target::Target& target, const ProfiledModel& model,
                                           const ProfileSettings& settings, std::vector<int> threads,
                                           const MeasuredCosts& costs) {
  if (std::ranges::find(threads, 1) == threads.end()) threads.push_back(1);
  std::ranges::sort(threads);
  const MachineFloor unused{.levels = {{"memory", ~std::size_t{0}, costs.memory_rate}}};
  std::map<std::int64_t, Profile> on_one;  // by micro-batch
  std::vector<SimulatedRun> runs;
  for (const int count : threads) {
    PlanSummary planned = planned_for(target, model, settings, count);
    const std::int64_t micro_batch = planned.micro_batch;
    if (!on_one.contains(micro_batch))
      on_one.emplace(micro_batch,
                     measure_profile(target, model, on_threads(settings, 1, micro_batch), unused));
    take_times(planned, on_one.at(micro_batch));
    SimulatedRun run{
        .threads = count, .micro_batch = micro_batch, .groups = planned.groups, .in_step = planned.in_step};
    run.low = simulate(planned, costs.better(count));
    run.high = simulate(planned, costs.worse());
    if (count == 1)
      run.measured = on_one.at(micro_batch).seconds;
    else if (count <= costs.processors)
      run.measured =
          measure_profile(target, model, on_threads(settings, count, settings.micro_batch), unused).seconds;
    runs.push_back(run);
  }
  return runs;
}

std::string simulated_text(const std::vector<SimulatedRun>& runs, std::int64_t batch,
                           const MeasuredCosts& costs) {
  TextTable table({"threads", "micro-batch", "groups", "simulated", "to", "measured", "samples/s", "to ",
                   "times as fast", "limit"});
  const double one = runs.empty() ? 0 : runs.front().low.seconds();
  for (const SimulatedRun& run : runs)
    table.add_row(
        {std::to_string(run.threads), std::to_string(run.micro_batch),
         fmt::format("{}{}", run.groups, run.in_step ? " in step" : ""), format_seconds(run.low.seconds()),
         format_seconds(run.high.seconds()), run.measured > 0 ? format_seconds(run.measured) : "-",
         format_count(static_cast<double>(batch) / run.high.seconds()),
         format_count(static_cast<double>(batch) / run.low.seconds()),
         fmt::format("{:.2f} to {:.2f}", one / run.high.seconds(), one / run.low.seconds()), run.limit()});
  return table.to_string() +
         fmt::format(
             "simulated from the times of the steps on one thread; a thread has a processor like this one's, "
             "all on one socket.\n"
             "measured here: {} to call a second thread, {} of memory with {} processors. From the better to "
             "the worse: {} to {}\n"
             "for every further thread; the memory's rate and the last cache grow with the threads, or "
             "stay.\n",
             format_seconds(costs.calling), format_si(costs.memory_rate, "B/s"), costs.processors,
             format_seconds(costs.each_low), format_seconds(costs.each_high));
}

}  // namespace superstep::lab
