#include "superstep/target/cpu/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "superstep/base/text.h"
#include "superstep/target/cpu/run_info.h"
#include "superstep/target/ports.h"

namespace superstep::target::cpu {
namespace {

constexpr std::size_t alignment = 64;

// Micro-batches are summed in groups, each group in order and then the groups in order, so that the bits
// do not depend on the number of threads; more groups share the work more evenly when a core is busy.
constexpr std::size_t most_groups = 8;
constexpr std::size_t largest_grouped_bytes = std::size_t{4} << 20;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Memory::Memory(std::size_t bytes) : size_(bytes) {
  void* whole = std::calloc(1, bytes + 2 * alignment);
  if (!whole)
    throw Error(ErrorCode::out_of_memory, "the plan needs " + format_bytes(static_cast<double>(bytes)));
  const auto address = (reinterpret_cast<std::uintptr_t>(whole) + alignment - 1) / alignment * alignment;
  data_ = {reinterpret_cast<std::byte*>(address), [whole](std::byte*) { std::free(whole); }};
}

struct CpuExecutable::Worker {
  Memory arena, scratch;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::vector<double> seconds;  // by step of the body
};

struct CpuExecutable::Run {
  std::span<const Tensor> inputs;
  std::span<Tensor> outputs;
};

CpuExecutable::CpuExecutable(Plan plan, std::vector<PortPlan> inputs, std::vector<PortPlan> outputs,
                             const CompileOptions& options, double compile_seconds)
    : plan_(std::move(plan)),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      options_(options),
      compile_seconds_(compile_seconds),
      micro_batches_(options.batch / options.micro_batch),
      pool_(options.threads),
      shared_(plan_.shared_bytes),
      update_(plan_.update_bytes) {
  for (const PortPlan& input : inputs_) input_ports_.push_back(input.port);
  for (const PortPlan& output : outputs_) output_ports_.push_back(output.port);
  for (const auto& [offset, data] : plan_.initial)
    std::memcpy(shared_.data() + offset, data.bytes(), data.byte_count());
  plan_.initial.clear();
  for (int i = 0; i < options.threads; ++i)
    workers_.push_back({Memory(plan_.arena_bytes),
                        Memory(plan_.scratch_bytes),
                        {},
                        {},
                        std::vector<double>(plan_.body.size(), 0.0)});
  if (plan_.accumulator_bytes > 0)
    for (std::size_t i = 0; i < groups(); ++i) accumulators_.emplace_back(plan_.accumulator_bytes);
}

CpuExecutable::~CpuExecutable() = default;

std::size_t CpuExecutable::groups() const {
  const auto count = static_cast<std::size_t>(micro_batches_);
  if (plan_.accumulator_bytes == 0) return count;
  const std::size_t most = plan_.accumulator_bytes <= largest_grouped_bytes
                               ? most_groups
                               : static_cast<std::size_t>(options_.threads);
  return std::min(count, most);
}

void CpuExecutable::run(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  check_ports("input", input_ports_, inputs);
  check_ports("output", output_ports_, outputs);
  const Run run{inputs, outputs};
  if (!prepared_) {
    run_steps(plan_.prepare, run, 0, workers_[0].arena.data(), nullptr, workers_[0], nullptr);
    prepared_ = true;
  }
  pool_.parallel_for(static_cast<std::int64_t>(groups()), [&](std::int64_t group, int worker) {
    run_group(run, static_cast<std::size_t>(group), workers_[static_cast<std::size_t>(worker)]);
  });
  ++runs_;
  if (plan_.accumulator_bytes > 0) {
    average_accumulators();
    write_averages(run);
  }
  if (plan_.update.empty()) return;
  run_steps(plan_.update, run, 0, update_.data(), accumulators_.empty() ? nullptr : accumulators_[0].data(),
            workers_[0], nullptr);
  for (const SampleCounter& counter : plan_.counters) {
    std::int64_t value = 0;
    std::memcpy(&value, shared_.data() + counter.offset, sizeof value);
    value += counter.increment * micro_batches_;
    std::memcpy(shared_.data() + counter.offset, &value, sizeof value);
  }
  prepared_ = false;
}

void CpuExecutable::run_group(const Run& run, std::size_t group, Worker& worker) {
  std::byte* accumulator = nullptr;
  if (!accumulators_.empty()) {
    accumulator = accumulators_[group].data();
    std::memset(accumulator, 0, plan_.accumulator_bytes);
  }
  const auto count = static_cast<std::size_t>(micro_batches_);
  const std::size_t begin = group * count / groups(), end = (group + 1) * count / groups();
  for (std::size_t micro_batch = begin; micro_batch < end; ++micro_batch)
    run_steps(plan_.body, run, static_cast<std::int64_t>(micro_batch), worker.arena.data(), accumulator,
              worker, options_.measure_steps ? &worker.seconds : nullptr);
}

void CpuExecutable::run_steps(const std::vector<Step>& steps, const Run& run, std::int64_t micro_batch,
                              std::byte* arena, std::byte* accumulator, Worker& worker,
                              std::vector<double>* seconds) {
  RunInfo info{.first_row = static_cast<std::uint64_t>(micro_batch * options_.micro_batch)};
  const auto row = static_cast<std::size_t>(micro_batch);
  const auto address = [&](const Operand& operand) -> std::byte* {
    switch (operand.space) {
      case Space::arena: return arena + operand.offset;
      case Space::update: return update_.data() + operand.offset;
      case Space::shared: return shared_.data() + operand.offset;
      case Space::accumulator: return accumulator + operand.offset;
      case Space::input:  // read only: the const of the user's tensor is kept by every kernel
        return const_cast<std::byte*>(run.inputs[operand.port].bytes()) +
               row * inputs_[operand.port].row_bytes + operand.offset;
      case Space::output:
        return run.outputs[operand.port].bytes() + row * outputs_[operand.port].row_bytes + operand.offset;
      case Space::run: return reinterpret_cast<std::byte*>(&info);
    }
    return nullptr;
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    worker.inputs.clear();
    worker.outputs.clear();
    for (const Operand& operand : step.inputs) worker.inputs.push_back(address(operand));
    for (const Operand& operand : step.outputs) worker.outputs.push_back(address(operand));
    const double start = seconds ? now() : 0;
    step.kernel->run({worker.inputs, worker.outputs, worker.scratch.data()});
    if (seconds) (*seconds)[i] += now() - start;
  }
}

// The mean over micro-batches, into the first group's accumulator: groups are added in order.
void CpuExecutable::average_accumulators() {
  const std::size_t count = plan_.accumulator_bytes / sizeof(float);
  const float scale = 1.0f / static_cast<float>(micro_batches_);
  constexpr std::size_t piece = 16384;
  pool_.parallel_for(static_cast<std::int64_t>((count + piece - 1) / piece), [&](std::int64_t item, int) {
    const std::size_t begin = static_cast<std::size_t>(item) * piece, end = std::min(count, begin + piece);
    auto* total = reinterpret_cast<float*>(accumulators_[0].data());
    for (std::size_t group = 1; group < accumulators_.size(); ++group) {
      const auto* term = reinterpret_cast<const float*>(accumulators_[group].data());
      for (std::size_t i = begin; i < end; ++i) total[i] += term[i];
    }
    for (std::size_t i = begin; i < end; ++i) total[i] *= scale;
  });
}

void CpuExecutable::write_averages(const Run& run) const {
  for (const AveragedOutput& output : plan_.averaged) {
    Tensor& target = run.outputs[output.port];
    const auto* values = reinterpret_cast<const float*>(accumulators_[0].data() + output.offset);
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
  std::memcpy(shared_.data() + state.offset, value.bytes(), value.byte_count());
  prepared_ = false;
}

PlanSummary CpuExecutable::summary() const {
  PlanSummary summary{.batch = options_.batch,
                      .micro_batch = options_.micro_batch,
                      .threads = options_.threads,
                      .flops = 0,
                      .activation_bytes = plan_.arena_bytes + plan_.scratch_bytes,
                      .state_bytes = 0,
                      .constant_bytes = 0,
                      .gradient_bytes = plan_.accumulator_bytes * accumulators_.size(),
                      .compile_seconds = compile_seconds_,
                      .steps = {}};
  for (const StateSlot& state : plan_.states)
    summary.state_bytes +=
        static_cast<std::size_t>(state.type.shape.element_count()) * size_in_bytes(state.type.element);
  summary.constant_bytes = plan_.shared_bytes - std::min(plan_.shared_bytes, summary.state_bytes);
  for (std::size_t i = 0; i < plan_.body.size(); ++i) {
    PlanStep step = plan_.body[i].info;
    for (const Worker& worker : workers_) step.seconds += worker.seconds[i];
    if (runs_ > 0) step.seconds /= static_cast<double>(runs_ * micro_batches_);
    summary.flops += step.flops * static_cast<double>(micro_batches_);
    summary.steps.push_back(std::move(step));
  }
  return summary;
}

}  // namespace superstep::target::cpu
