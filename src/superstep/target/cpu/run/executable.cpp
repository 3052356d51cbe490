#include "superstep/target/cpu/run/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/target/cpu/plan/division.h"
#include "superstep/target/cpu/plan/memory_limit.h"
#include "superstep/target/cpu/run/executable_run.h"
#include "superstep/target/cpu/run/flush_denormals.h"
#include "superstep/target/cpu/run/outputs_apart.h"
#include "superstep/target/cpu/run/run_info.h"
#include "superstep/target/ports.h"

namespace superstep::target::cpu {
namespace {

// Values of the sums of gradients that a thread averages at a time: some for every thread, none of them tiny.
constexpr std::size_t smallest_piece = 1024, largest_piece = 16384;

std::size_t piece_for(std::size_t values, std::size_t threads) {
  return std::clamp(values / (4 * threads) / smallest_piece * smallest_piece, smallest_piece, largest_piece);
}

// Steps of the body before the first that writes a state: a large parameter is updated in the body, as soon
// as its gradient is made.
std::size_t count_before_new_state(const Plan& plan) {
  const auto lies_in_state = [&](const Operand& operand) {
    return operand.space == Space::shared && std::ranges::any_of(plan.states, [&](const StateSlot& state) {
             const std::size_t bytes = static_cast<std::size_t>(state.type.shape.element_count()) *
                                       size_in_bytes(state.type.element);
             return operand.offset >= state.offset && operand.offset < state.offset + bytes;
           });
  };
  const auto first = std::ranges::find_if(
      plan.body, [&](const Step& step) { return std::ranges::any_of(step.outputs, lies_in_state); });
  return static_cast<std::size_t>(first - plan.body.begin());
}

}  // namespace

CpuExecutable::CpuExecutable(Plan plan, std::vector<PortPlan> inputs, std::vector<PortPlan> outputs,
                             const CompileOptions& options, double compile_seconds)
    : plan_(std::move(plan)),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      options_(options),
      compile_seconds_(compile_seconds),
      micro_batches_(options.batch / options.micro_batch),
      groups_(gradient_groups(plan_, options)),
      steps_before_new_state_(count_before_new_state(plan_)),
      pool_(options.threads),
      shared_(plan_.shared_bytes),
      update_(plan_.update_bytes),
      initial_(plan_, options.threads),
      arenas_(arena_count(plan_, options), plan_.arena_bytes, static_cast<std::size_t>(options.threads)) {
  for (const PortPlan& input : inputs_) input_ports_.push_back(input.port);
  for (const PortPlan& output : outputs_) output_ports_.push_back(output.port);
  const double begun = StepRecorder::now();
  initial_.fill(pool_, shared_);
  compile_seconds_ += StepRecorder::now() - begun;
  for (int i = 0; i < options.threads; ++i)
    workers_.push_back({Memory(plan_.scratch_bytes), {}, {}, StepRecorder(step_count(), i)});
  divided_ = choose_divided();
  in_step_ = plan_.in_step || std::ranges::count(divided_, true) > 0;
  if (plan_.accumulator_bytes == 0) return;
  if (options_.parts.exchange)
    open_exchange();
  else
    sums_.emplace(plan_, groups(), gradient_buffers(plan_, options_));
  const std::size_t piece =
      piece_for(plan_.accumulator_bytes / sizeof(float), static_cast<std::size_t>(options.threads));
  for (const ByteRange& range : plan_.added_to)
    for (std::size_t done = 0, count = range.count / sizeof(float); done < count; done += piece)
      summed_.push_back({range.begin / sizeof(float) + done, std::min(piece, count - done)});
}

// The first group sums where the exchange wants the values: what is sent need not be copied.
void CpuExecutable::open_exchange() {
  Exchange& exchange = *options_.parts.exchange;
  ranges_ = gradient_ranges(plan_, exchange.range_values());
  groups_done_ = std::vector<std::atomic<std::size_t>>(ranges_.size());
  std::vector<ValueRange> ranges;
  for (const GradientRange& range : ranges_) ranges.push_back(range.values);
  sums_.emplace(plan_, groups(), groups(),
                exchange.open(plan_.accumulator_bytes / sizeof(float), std::move(ranges)));
}

CpuExecutable::~CpuExecutable() = default;

// What only this reads passes through a little memory, so that weights and what is packed of them are never
// there twice: that memory is mostly in the cache, and a system takes longer to clear pages for weights than
// it takes to read them.
void CpuExecutable::prepare(const Run& run) {
  const Memory passing(initial_.passing_bytes());
  Place place{0, arenas_.at(0), nullptr, true};
  place.passing = &passing;
  for (std::size_t i = 0; i < plan_.prepare.size(); ++i) {
    initial_.fill_passing(i, pool_, passing);
    run_steps({std::span(plan_.prepare).subspan(i, 1), i, false}, run, place, workers_[0]);
  }
  prepared_ = true;
}

// What is packed depends on states and constants alone.
void CpuExecutable::make_ready() {
  if (!prepared_ && !plan_.trains) prepare({});
}

void CpuExecutable::run(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  check_ports("input", input_ports_, inputs);
  check_ports("output", output_ports_, outputs);
  if (overlap(inputs, outputs))
    return run_apart(inputs, outputs, [&](std::span<Tensor> made) { run_checked({inputs, made}); });
  run_checked({inputs, outputs});
}

void CpuExecutable::run_checked(const Run& run) {
  const FlushDenormals flush(plan_.trains);
  const double begun = StepRecorder::now();
  for (Worker& worker : workers_) worker.recorder.begin_run(begun);
  if (!prepared_) prepare(run);
  begin_exchange();
  if (sums_) sums_->begin_run();
  // One group: its steps are divided over the threads. Several: a group a thread, and where that leaves
  // threads without one, steps of all groups are divided.
  if (in_step_)
    run_in_step(run);
  else if (groups() == 1)
    run_group(run, 0, 0, true);
  else
    pool_.parallel_for(static_cast<std::int64_t>(groups()), [&](std::int64_t group, int worker) {
      const FlushDenormals flush_there(plan_.trains && worker != 0);
      run_group(run, static_cast<std::size_t>(group), static_cast<std::size_t>(worker), false);
    });
  ++runs_;
  finish_run(run);
  last_run_seconds_ = StepRecorder::now() - begun;
}

// What follows the micro-batches: means of what they summed, and new state.
void CpuExecutable::finish_run(const Run& run) {
  if (plan_.accumulator_bytes > 0) {
    const double begin = StepRecorder::now();
    if (ranges_.empty())
      average_accumulators();
    else
      options_.parts.exchange->finish();
    write_averages(run);
    if (options_.measure_steps)
      workers_[0].recorder.add(sum_step(), -1, begin, StepRecorder::now(), pool_.threads());
  }
  if (!plan_.trains) return;
  run_steps({plan_.update, sum_step() + 1, false}, run,
            {0, update_.data(), sums_ ? sums_->total() : nullptr, true}, workers_[0]);
  for (const SampleCounter& counter : plan_.counters) {
    std::int64_t value = 0;
    std::memcpy(&value, shared_.data() + counter.offset, sizeof value);
    value += counter.increment * micro_batches_ * options_.parts.count;
    std::memcpy(shared_.data() + counter.offset, &value, sizeof value);
  }
  prepared_ = false;
}

std::size_t CpuExecutable::first_of(std::size_t group) const {
  return group * static_cast<std::size_t>(micro_batches_) / groups();
}

void CpuExecutable::run_group(const Run& run, std::size_t group, std::size_t worker, bool all_threads) {
  std::byte* const accumulator = sums_ ? sums_->begin(group) : nullptr;
  const ArenaLeases::Lease arena = arenas_.lend(worker);
  const std::size_t begin = first_of(group), end = first_of(group + 1);
  for (std::size_t micro_batch = begin; micro_batch < end; ++micro_batch)
    run_steps({plan_.body, plan_.prepare.size(), true}, run,
              {static_cast<std::int64_t>(micro_batch), arena.memory(), accumulator, all_threads, group,
               micro_batch + 1 == end},
              workers_[worker]);
  if (sums_) sums_->complete(group);
}

int CpuExecutable::run_kernel(const kernels::Kernel& kernel, Worker& worker, bool all_threads) {
  const int threads = all_threads ? threads_that_pay(kernel.info(), pool_.threads()) : 1;
  if (threads == 1) {
    kernel.run({worker.inputs, worker.outputs, worker.scratch.data()});
    return 1;
  }
  if (kernel.info().members > 1) return share_kernel(kernel, worker);
  pool_.parallel_for(
      kernel.info().parts,
      [&](std::int64_t part, int thread) {
        const FlushDenormals flush(plan_.trains && thread != 0);  // thread 0 is the caller
        kernel.run_part(
            {worker.inputs, worker.outputs, workers_[static_cast<std::size_t>(thread)].scratch.data()}, part);
      },
      threads);
  return threads;
}

// Which thread takes which member's place is left to the pool: mostly each its own, whose share of the
// weights is in its core's cache.
int CpuExecutable::share_kernel(const kernels::Kernel& kernel, Worker& worker) {
  const int members = std::min(pool_.threads(), kernel.info().members);
  const kernels::Arguments arguments{worker.inputs, worker.outputs, worker.scratch.data()};
  kernel.begin_shared(arguments, members);
  pool_.parallel_for(members, [&](std::int64_t member, int thread) {
    const FlushDenormals flush(plan_.trains && thread != 0);
    kernel.run_shared(arguments, static_cast<int>(member),
                      workers_[static_cast<std::size_t>(thread)].scratch.data());
  });
  return members;
}

RunInfo CpuExecutable::info_of(const Place& place) const {
  return {.first_row = static_cast<std::uint64_t>(place.micro_batch * options_.micro_batch +
                                                  options_.parts.index * options_.batch),
          .exchange = options_.parts.exchange};
}

std::byte* CpuExecutable::address(const Operand& operand, const Run& run, const Place& place,
                                  RunInfo& info) const {
  const auto row = static_cast<std::size_t>(place.micro_batch);
  switch (operand.space) {
    case Space::arena: return place.arena + operand.offset;
    case Space::update: return update_.data() + operand.offset;
    case Space::shared: {
      std::byte* const passing = place.passing ? initial_.place_of(operand.offset, *place.passing) : nullptr;
      return passing ? passing : shared_.data() + operand.offset;
    }
    case Space::accumulator: return place.accumulator + operand.offset;
    case Space::input:  // read only: the const of the user's tensor is kept by every kernel
      return const_cast<std::byte*>(run.inputs[operand.port].bytes()) +
             row * inputs_[operand.port].row_bytes + operand.offset;
    case Space::output:
      return run.outputs[operand.port].bytes() + row * outputs_[operand.port].row_bytes + operand.offset;
    case Space::run: return reinterpret_cast<std::byte*>(&info);
  }
  return nullptr;
}

void CpuExecutable::run_steps(const Section& section, const Run& run, const Place& place, Worker& worker) {
  RunInfo info = info_of(place);
  const bool measured = options_.measure_steps;
  const std::int64_t recorded = section.in_micro_batch ? place.micro_batch : -1;
  const bool exchanges = place.ends_group && !ranges_.empty();
  // Other parts would wait for ever for a part that stops.
  const bool alone = section.in_micro_batch && !options_.parts.exchange;
  for (std::size_t i = 0; i < section.steps.size(); ++i) {
    // Asked in every step: who asks is given the time to end.
    if (alone && interrupted() && section.first_step - plan_.prepare.size() + i < steps_before_new_state_)
      throw Error(ErrorCode::interrupted, "in the middle of a step");
    const Step& step = section.steps[i];
    worker.inputs.clear();
    worker.outputs.clear();
    for (const Operand& operand : step.inputs) worker.inputs.push_back(address(operand, run, place, info));
    for (const Operand& operand : step.outputs) worker.outputs.push_back(address(operand, run, place, info));
    const double start = measured ? StepRecorder::now() : 0;
    const int threads = at_node(step, [&] { return run_kernel(*step.kernel, worker, place.all_threads); });
    if (measured) worker.recorder.add(section.first_step + i, recorded, start, StepRecorder::now(), threads);
    if (!exchanges) continue;
    complete_ranges(section.first_step - plan_.prepare.size() + i, place.group);
    if (&worker == &workers_[0]) options_.parts.exchange->progress();
  }
}

void CpuExecutable::begin_exchange() {
  if (ranges_.empty()) return;
  for (auto& groups_done : groups_done_) groups_done.store(0, std::memory_order_relaxed);
  next_range_.assign(groups(), 0);
  options_.parts.exchange->begin();
}

void CpuExecutable::complete_ranges(std::size_t step, std::size_t group) {
  std::size_t& next = next_range_[group];
  for (; next < ranges_.size() && ranges_[next].last_step == step; ++next) {
    if (groups_done_[next].fetch_add(1, std::memory_order_acq_rel) + 1 < groups()) continue;
    sums_->finish(ranges_[next].values, scale_of_means());
    options_.parts.exchange->ready(next);
  }
}

// The mean over micro-batches, in the memory of the update.
void CpuExecutable::average_accumulators() {
  if (micro_batches_ == 1) return;
  pool_.parallel_for(static_cast<std::int64_t>(summed_.size()), [&](std::int64_t item, int worker) {
    const FlushDenormals flush(plan_.trains && worker != 0);
    sums_->finish(summed_[static_cast<std::size_t>(item)], scale_of_means());
  });
}

void CpuExecutable::write_averages(const Run& run) const {
  for (const AveragedOutput& output : plan_.averaged) {
    Tensor& target = run.outputs[output.port];
    const auto* values = reinterpret_cast<const float*>(sums_->total() + output.offset);
    for (std::size_t i = 0; i < output.count; ++i)
      target.set(static_cast<std::int64_t>(i), static_cast<double>(values[i]));
  }
}

std::vector<std::string> CpuExecutable::state_names() const {
  std::vector<std::string> names;
  for (const StateSlot& state : plan_.states) names.push_back(state.name);
  return names;
}

const StateSlot& CpuExecutable::slot(std::string_view name) const {
  for (const StateSlot& state : plan_.states)
    if (state.name == name) return state;
  throw Error(ErrorCode::invalid_argument, "there is no such state", std::string(name),
              unknown_name_hint(name, state_names()));
}

Tensor CpuExecutable::state(std::string_view name) const {
  const StateSlot& state = slot(name);
  Tensor tensor(state.type.element, state.type.shape);
  if (const Tensor* passing = initial_.passing(state.offset))
    passing->copy_to(tensor.bytes());
  else
    std::memcpy(tensor.bytes(), shared_.data() + state.offset, tensor.byte_count());
  return tensor;
}

void CpuExecutable::set_state(std::string_view name, const Tensor& value) {
  const StateSlot& state = slot(name);
  if (value.type() != state.type.element || value.shape() != state.type.shape)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("is {}, not {}", to_string(state.type),
                            to_string(graph::ValueType{value.type(), value.shape()})),
                "state " + std::string(name));
  initial_.keep(state.offset, shared_);
  value.copy_to(shared_.data() + state.offset);
  prepared_ = false;
}

Tensor CpuExecutable::state_in_place(std::string_view name) const {
  const StateSlot& state = slot(name);
  initial_.keep(state.offset, shared_);
  return Tensor::over(state.type.element, state.type.shape,
                      std::shared_ptr<std::byte>(shared_.shared(), shared_.data() + state.offset));
}

void CpuExecutable::release_working_memory() {
  arenas_.release();
  for (Worker& worker : workers_) worker.scratch.release();
  if (sums_) sums_->release();
  update_.release();
}

PlanSummary CpuExecutable::summary() const {
  PlanSummary summary{
      .batch = options_.batch,
      .micro_batch = options_.micro_batch,
      .threads = options_.threads,
      .flops = 0,
      .activation_bytes = arenas_.count() * plan_.arena_bytes +
                          static_cast<std::size_t>(options_.threads) * plan_.scratch_bytes,
      .at_a_time = arenas_.count(),
      .state_bytes = 0,
      .constant_bytes = 0,
      .gradient_bytes = sums_ ? plan_.accumulator_bytes * gradient_buffers(plan_, options_) : 0,
      .compile_seconds = compile_seconds_,
      .plan_bytes = plan_bytes(plan_, options_),
      .groups = groups(),
      .in_step = in_step_,
      .choice = plan_.choice,
      .steps = {},
      .prepare = {},
      .update = {}};
  for (const StateSlot& state : plan_.states)
    summary.state_bytes +=
        static_cast<std::size_t>(state.type.shape.element_count()) * size_in_bytes(state.type.element);
  summary.constant_bytes = plan_.shared_bytes - std::min(plan_.shared_bytes, summary.state_bytes);
  for (std::size_t i = 0; i < step_count(); ++i) {
    if (i == sum_step() && micro_batches_ == 1) continue;
    PlanStep step = measured_step(i);
    if (step.part == PlanPart::body) summary.flops += step.flops * static_cast<double>(micro_batches_);
    auto& part = step.part == PlanPart::body      ? summary.steps
                 : step.part == PlanPart::prepare ? summary.prepare
                                                  : summary.update;
    part.push_back(std::move(step));
  }
  return summary;
}

std::size_t CpuExecutable::step_count() const {
  return plan_.prepare.size() + plan_.body.size() + 1 + plan_.update.size();
}

int CpuExecutable::planned_threads(std::size_t step) const {
  const auto of = [&](const Step& planned) {
    return threads_that_pay(planned.kernel->info(), pool_.threads());
  };
  if (step < plan_.prepare.size()) return of(plan_.prepare[step]);
  if (step > sum_step()) return of(plan_.update[step - sum_step() - 1]);
  const std::size_t i = step - plan_.prepare.size();
  if (in_step_) return divided_[i] ? threads_of_divided(i) : 1;
  return groups() == 1 ? of(plan_.body[i]) : 1;
}

PlanStep CpuExecutable::described_step(std::size_t step) const {
  const auto of = [&](const Step& planned, PlanPart part) {
    const kernels::KernelInfo& kernel = planned.kernel->info();
    PlanStep info = planned.info;
    info.part = part;
    info.threads = planned_threads(step);
    info.parts = std::max<std::int64_t>(kernel.parts, kernel.members);
    info.evenly = kernel.members > 1;
    info.joins = planned.join != nullptr;
    return info;
  };
  if (step < plan_.prepare.size()) return of(plan_.prepare[step], PlanPart::prepare);
  if (step < sum_step()) return of(plan_.body[step - plan_.prepare.size()], PlanPart::body);
  if (step > sum_step()) return of(plan_.update[step - sum_step() - 1], PlanPart::update);
  const auto values = static_cast<double>(plan_.accumulator_bytes / sizeof(float));
  const auto summed = static_cast<double>(sums_ ? groups() : 0);
  return {.node = "gradients",
          .op = "sum over micro-batches",
          .kernel = fmt::format("sum of {} groups, in order", summed),
          .refusals = {},
          .flops = values * summed,
          .bytes = 4 * values * (summed + 1),
          .part = PlanPart::update,
          .threads = pool_.threads(),
          .parts = std::max<std::int64_t>(1, static_cast<std::int64_t>(summed_.size()))};
}

PlanStep CpuExecutable::measured_step(std::size_t step) const {
  PlanStep info = described_step(step);
  std::int64_t count = 0;
  for (const Worker& worker : workers_) {
    info.seconds += worker.recorder.total(step);
    count += worker.recorder.count(step);
    for (const StepEvent& event : worker.recorder.events()) {
      if (event.step != step) continue;
      ++info.executions;
      info.threads = event.threads;
    }
  }
  if (count > 0) info.seconds /= static_cast<double>(count);
  return info;
}

Timeline CpuExecutable::timeline() const {
  Timeline timeline;
  if (!options_.measure_steps || runs_ == 0) return timeline;
  for (std::size_t step = 0; step < step_count(); ++step) timeline.steps.push_back(described_step(step));
  for (const Worker& worker : workers_)
    timeline.events.insert(timeline.events.end(), worker.recorder.events().begin(),
                           worker.recorder.events().end());
  timeline.seconds = last_run_seconds_;
  return timeline;
}

}  // namespace superstep::target::cpu
