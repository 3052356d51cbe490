// Micro-batches in step: all of them go from one join to the next, a group a thread, and wait there for each
// other. So what a step takes of the whole batch (the moments of a normalisation) is that of the whole batch,
// and yet every thread stays in the memory of its own micro-batches.
#include "superstep/target/cpu/executable_run.h"
#include "superstep/target/cpu/flush_denormals.h"

namespace superstep::target::cpu {

void CpuExecutable::run_in_step(const Run& run) {
  group_sums_.assign(groups(), nullptr);
  const std::span<const Step> body = plan_.body;
  for (std::size_t begin = 0, end = 0; begin < body.size(); begin = end) {
    while (end < body.size() && !body[end].join) ++end;
    const Section section{body.subspan(begin, end - begin), plan_.prepare.size() + begin, true};
    if (end > begin)
      pool_.parallel_for(static_cast<std::int64_t>(groups()), [&](std::int64_t group, int worker) {
        const FlushDenormals flush(plan_.trains && worker != 0);
        run_until_join(run, section, static_cast<std::size_t>(group),
                       workers_[static_cast<std::size_t>(worker)]);
      });
    for (; end < body.size() && body[end].join; ++end) run_join(run, end);
  }
}

void CpuExecutable::run_until_join(const Run& run, const Section& section, std::size_t group,
                                   Worker& worker) {
  if (sums_ && !group_sums_[group]) group_sums_[group] = sums_->begin(group);
  for (std::size_t micro_batch = first_of(group); micro_batch < first_of(group + 1); ++micro_batch)
    run_steps(section, run, place_in_step(micro_batch, group), worker);
}

CpuExecutable::Place CpuExecutable::place_in_step(std::size_t micro_batch, std::size_t group) {
  return {static_cast<std::int64_t>(micro_batch), arenas_.at(micro_batch), group_sums_[group], false};
}

void CpuExecutable::run_join(const Run& run, std::size_t step) {
  const Step& planned = plan_.body[step];
  const double start = options_.measure_steps ? StepRecorder::now() : 0;
  const auto count = static_cast<std::size_t>(micro_batches_);
  joined_.inputs.clear();
  joined_.outputs.clear();
  joined_.parts.clear();
  RunInfo info;  // of no micro-batch alone
  for (std::size_t group = 0; group < groups(); ++group)
    for (std::size_t micro_batch = first_of(group); micro_batch < first_of(group + 1); ++micro_batch) {
      const Place place = place_in_step(micro_batch, group);
      for (const Operand& operand : planned.inputs)
        joined_.inputs.push_back(address(operand, run, place, info));
      for (const Operand& operand : planned.outputs)
        joined_.outputs.push_back(address(operand, run, place, info));
    }
  const std::span<const void* const> inputs = joined_.inputs;
  const std::span<void* const> outputs = joined_.outputs;
  for (std::size_t i = 0; i < count; ++i)
    joined_.parts.push_back({inputs.subspan(i * planned.inputs.size(), planned.inputs.size()),
                             outputs.subspan(i * planned.outputs.size(), planned.outputs.size())});
  planned.join->join(joined_.parts);
  if (options_.measure_steps)
    workers_[0].recorder.add(plan_.prepare.size() + step, -1, start, StepRecorder::now());
}

}  // namespace superstep::target::cpu
