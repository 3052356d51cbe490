// Groups in step. They go together from one step that they take together to the next, each on a thread of its
// own between them. Such a step is
//
//   - a join: it takes a statistic of the whole batch (the moments of a normalisation), so that all
//   micro-batches
//     wait there for each other. All of them lie in memory, and yet every thread stays in that of its own;
//   - divided: there are more threads than groups, and the step is long enough to call them. Every part of
//   it, of
//     every group, goes to whatever thread is free. Nothing is summed in another order by that: the bits are
//     those of one thread.
//
// Where there is no join a group takes its micro-batches one after the other, a round each.
#include <algorithm>

#include "superstep/target/cpu/plan/division.h"
#include "superstep/target/cpu/run/executable_run.h"
#include "superstep/target/cpu/run/flush_denormals.h"

namespace superstep::target::cpu {

std::size_t CpuExecutable::rounds_in_step() const {
  if (plan_.in_step) return 1;
  return (static_cast<std::size_t>(micro_batches_) + groups() - 1) / groups();
}

// Of a group that is through, none.
CpuExecutable::MicroBatches CpuExecutable::in_round(std::size_t group, std::size_t round) const {
  const std::size_t first = first_of(group), behind = first_of(group + 1);
  if (plan_.in_step) return {first, behind};
  const std::size_t begin = std::min(first + round, behind);
  return {begin, std::min(begin + 1, behind)};
}

// A single group that is not in step has its steps divided by run_kernel().
std::vector<bool> CpuExecutable::choose_divided() const {
  std::vector<bool> divided(plan_.body.size(), false);
  const auto threads = static_cast<std::size_t>(pool_.threads());
  if (groups() >= threads || groups() == 1) return divided;
  const auto all = static_cast<std::size_t>(micro_batches_);
  const Together together =
      plan_.in_step ? Together{all, (all + groups() - 1) / groups()} : Together{groups(), 1};
  for (std::size_t i = 0; i < divided.size(); ++i)
    divided[i] = !plan_.body[i].join &&
                 threads_that_pay_together(plan_.body[i].kernel->info(), together, pool_.threads()) > 1;
  return divided;
}

int CpuExecutable::threads_of_divided(std::size_t step) const {
  const std::size_t count = plan_.in_step ? static_cast<std::size_t>(micro_batches_) : groups();
  return std::max(
      2, threads_that_pay_together(plan_.body[step].kernel->info(), {count, count}, pool_.threads()));
}

void CpuExecutable::run_in_step(const Run& run) {
  group_sums_.assign(groups(), nullptr);
  if (sums_ && is_taken_together(0))
    pool_.parallel_for(static_cast<std::int64_t>(groups()), [&](std::int64_t item, int) {
      const auto group = static_cast<std::size_t>(item);
      group_sums_[group] = sums_->begin(group);
    });
  for (std::size_t round = 0; round < rounds_in_step(); ++round) run_round(run, round);
}

void CpuExecutable::run_round(const Run& run, std::size_t round) {
  const std::span<const Step> body = plan_.body;
  for (std::size_t begin = 0, end = 0; begin < body.size(); begin = end) {
    while (end < body.size() && !is_taken_together(end)) ++end;
    const Section section{body.subspan(begin, end - begin), plan_.prepare.size() + begin, true};
    if (end > begin)
      pool_.parallel_for(static_cast<std::int64_t>(groups()), [&](std::int64_t item, int worker) {
        const FlushDenormals flush(plan_.trains && worker != 0);
        const auto group = static_cast<std::size_t>(item);
        run_alone_in_step(run, section, group, in_round(group, round),
                          workers_[static_cast<std::size_t>(worker)]);
      });
    for (; end < body.size() && is_taken_together(end); ++end)
      if (body[end].join)
        run_join(run, end);
      else
        run_divided(run, end, round);
  }
}

void CpuExecutable::run_alone_in_step(const Run& run, const Section& section, std::size_t group,
                                      MicroBatches micro_batches, Worker& worker) {
  for (std::size_t i = micro_batches.begin; i < micro_batches.end; ++i)
    run_steps(section, run, place_in_step(i, group), worker);
}

// By one thread at a time for each group.
CpuExecutable::Place CpuExecutable::place_in_step(std::size_t micro_batch, std::size_t group) {
  if (sums_ && !group_sums_[group]) group_sums_[group] = sums_->begin(group);
  return {.micro_batch = static_cast<std::int64_t>(micro_batch),
          .arena = arenas_.at(plan_.in_step ? micro_batch : group),
          .accumulator = group_sums_[group],
          .all_threads = false,
          .group = group,
          .ends_group = micro_batch + 1 == first_of(group + 1)};
}

void CpuExecutable::gather_joint(const Run& run, const Step& step, std::size_t round) {
  joint_.inputs.clear();
  joint_.outputs.clear();
  joint_.of_each.clear();
  joint_.infos.resize(static_cast<std::size_t>(micro_batches_));
  std::size_t count = 0;
  for (std::size_t group = 0; group < groups(); ++group) {
    const MicroBatches own = in_round(group, round);
    for (std::size_t micro_batch = own.begin; micro_batch < own.end; ++micro_batch, ++count) {
      const Place place = place_in_step(micro_batch, group);
      RunInfo& info = joint_.infos[count] = info_of(place);
      for (const Operand& operand : step.inputs) joint_.inputs.push_back(address(operand, run, place, info));
      for (const Operand& operand : step.outputs)
        joint_.outputs.push_back(address(operand, run, place, info));
    }
  }
  const std::span<const void* const> inputs = joint_.inputs;
  const std::span<void* const> outputs = joint_.outputs;
  for (std::size_t i = 0; i < count; ++i)
    joint_.of_each.push_back({inputs.subspan(i * step.inputs.size(), step.inputs.size()),
                              outputs.subspan(i * step.outputs.size(), step.outputs.size())});
}

void CpuExecutable::run_join(const Run& run, std::size_t step) {
  const double start = options_.measure_steps ? StepRecorder::now() : 0;
  gather_joint(run, plan_.body[step], 0);
  at_node(plan_.body[step], [&] { plan_.body[step].join->join(joint_.of_each); });
  if (options_.measure_steps)
    workers_[0].recorder.add(plan_.prepare.size() + step, -1, start, StepRecorder::now());
}

// Recorded as if the micro-batches had taken it one after the other, each on all of its threads.
void CpuExecutable::run_divided(const Run& run, std::size_t step, std::size_t round) {
  const kernels::Kernel& kernel = *plan_.body[step].kernel;
  const double start = options_.measure_steps ? StepRecorder::now() : 0;
  gather_joint(run, plan_.body[step], round);
  const std::size_t count = joint_.of_each.size();
  const int threads = std::max(2, threads_that_pay_together(kernel.info(), {count, count}, pool_.threads()));
  const std::int64_t parts = kernel.info().parts;
  const auto run_item = [&](std::int64_t item, int thread) {
    const FlushDenormals flush(plan_.trains && thread != 0);
    kernels::Arguments own = joint_.of_each[static_cast<std::size_t>(item / parts)];
    own.scratch = workers_[static_cast<std::size_t>(thread)].scratch.data();
    kernel.run_part(own, item % parts);
  };
  at_node(plan_.body[step],
          [&] { pool_.parallel_for(static_cast<std::int64_t>(count) * parts, run_item, threads); });
  const double each = options_.measure_steps ? (StepRecorder::now() - start) / static_cast<double>(count) : 0;
  double begin = start;
  for (std::size_t group = 0; group < groups(); ++group) {
    const MicroBatches own = in_round(group, round);
    for (std::size_t i = own.begin; i < own.end; ++i, begin += each)
      if (options_.measure_steps)
        workers_[0].recorder.add(plan_.prepare.size() + step, static_cast<std::int64_t>(i), begin,
                                 begin + each, threads);
    if (!ranges_.empty() && own.begin < own.end && own.end == first_of(group + 1))
      complete_ranges(step, group);
  }
  if (!ranges_.empty()) options_.parts.exchange->progress();
}

}  // namespace superstep::target::cpu
