// The CPU target: passes, the choice of the micro-batch, and the plan.
#include "superstep/target/cpu/cpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "superstep/base/text.h"
#include "superstep/graph/verify.h"
#include "superstep/op/core/definition.h"
#include "superstep/target/cpu/kernels/core/pair_rate.h"
#include "superstep/target/cpu/lower/lowering.h"
#include "superstep/target/cpu/passes.h"
#include "superstep/target/cpu/passes/bf16_choice.h"
#include "superstep/target/cpu/passes/byte_choice.h"
#include "superstep/target/cpu/plan/memory_limit.h"
#include "superstep/target/cpu/plan/micro_batch.h"
#include "superstep/target/cpu/run/executable.h"
#include "superstep/target/ports.h"
#include "superstep/transform/pipeline.h"
#include "superstep/transform/training/over_parts.h"

namespace superstep::target::cpu {
namespace {

constexpr std::int64_t first_try = 8;

struct Compiled {
  Plan plan;
  std::vector<PortPlan> inputs, outputs;
};

bool is_scalar(const Executable::Port& port) {
  return port.type.shape.rank() == 0 && is_floating(port.type.element);
}

// What a plan is for: one micro-batch may be the whole run, and a run one part of a larger batch.
struct CompiledFor {
  bool whole_batch = false, a_part = false;
  bool in_step = false;                        // plan.h
  std::span<const std::string> left_out = {};  // passes
};

// A whole batch in one micro-batch gives its outputs as they are, but for scalars of a part of a larger one.
Compiled compile_at(const GraphAtBatch& model, std::int64_t micro_batch, const BatchedPorts& ports,
                    std::int64_t batch, CompiledFor use, const Recomputation& recomputation = {}) {
  std::vector<bool> batched_output;
  for (std::size_t i = 0; i < ports.outputs.size(); ++i)
    batched_output.push_back(ports.output_is_batched[i] ||
                             (micro_batch == batch && !(use.a_part && is_scalar(ports.outputs[i]))));
  const std::vector<transform::Pass> passes =
      graph_passes({.parts_in_step = use.in_step ? batch / micro_batch : 1,
                    .recomputation = recomputation,
                    .batched_output = batched_output,
                    .whole_batch = use.whole_batch});
  const graph::Graph graph =
      transform::run_passes(model(micro_batch), transform::without(passes, use.left_out));
  Compiled result{Lowering(graph, batched_output, use.whole_batch).run(), {}, {}};
  result.plan.in_step = use.in_step;
  const auto row_bytes = [&](const Executable::Port& port, bool batched) -> std::size_t {
    if (!batched) return 0;
    return static_cast<std::size_t>(port.type.shape.element_count()) * size_in_bytes(port.type.element) /
           static_cast<std::size_t>(batch / micro_batch);
  };
  for (std::size_t i = 0; i < ports.inputs.size(); ++i)
    result.inputs.push_back({ports.inputs[i], row_bytes(ports.inputs[i], ports.input_is_batched[i])});
  for (std::size_t i = 0; i < ports.outputs.size(); ++i)
    result.outputs.push_back({ports.outputs[i], row_bytes(ports.outputs[i], ports.output_is_batched[i])});
  return result;
}

// Bytes of shared memory that the body reads: states and what was packed of them, each from where it begins
// to where the next one does.
std::size_t shared_bytes_read(const Plan& plan) {
  std::map<std::size_t, bool> read;  // by offset
  const auto add = [&](const std::vector<Operand>& operands, bool is_read) {
    for (const Operand& operand : operands)
      if (operand.space == Space::shared) read[operand.offset] |= is_read;
  };
  for (const StateSlot& state : plan.states) read[state.offset];
  for (const auto& constant : plan.initial) read[constant.first];
  for (const Step& step : plan.prepare) add(step.inputs, false), add(step.outputs, false);
  for (const Step& step : plan.body) add(step.inputs, true);
  std::size_t bytes = 0;
  for (auto at = read.begin(); at != read.end(); ++at) {
    const auto next = std::next(at);
    if (at->second) bytes += (next == read.end() ? plan.shared_bytes : next->first) - at->first;
  }
  return bytes;
}

// How many times as fast as f32 a type is multiplied: two of bf16, or four bytes, take a lane's place.
double rate_of(ElementType arithmetic) {
  if (arithmetic == ElementType::bf16) return 2;
  return arithmetic == ElementType::i8 || arithmetic == ElementType::u8 ? 4 : 1;
}

// What a plan that was made for `micro_batch` computes and touches. In training weights are read by the
// forward and by the backward pass, and the sums of their gradients, which are as large, are read and
// written.
Footprint footprint_of(const Plan& plan, std::int64_t micro_batch) {
  Footprint footprint{
      .bytes_a_sample = (plan.arena_bytes + plan.output_bytes) / static_cast<std::size_t>(micro_batch),
      .trains = plan.trains};
  for (const Step& step : plan.body)
    footprint.flops_a_sample += step.info.flops / rate_of(step.info.arithmetic);
  footprint.flops_a_sample /= static_cast<double>(micro_batch);
  const std::size_t read = plan.trains ? 0 : shared_bytes_read(plan);
  footprint.weight_bytes = plan.trains ? 2 * plan.accumulator_bytes : read;
  footprint.weight_traffic = plan.trains ? 4 * plan.accumulator_bytes : read;
  return footprint;
}

// One micro-batch is all that a run computes: nothing is summed before the update.
bool is_whole(const CompileOptions& options) {
  return options.micro_batch == options.batch && options.parts.count == 1 && !options.parts.exchange;
}

CompiledFor used_for(const CompileOptions& options, std::span<const std::string> left_out) {
  return {
      .whole_batch = is_whole(options), .a_part = options.parts.exchange != nullptr, .left_out = left_out};
}

// Whether samples of a graph of `batch` can be divided over so many parts that run in step.
bool divides_in_step(const GraphAtBatch& model, std::int64_t batch, std::int64_t parts,
                     std::span<const std::string> left_out) {
  const std::vector<transform::Pass> passes = transform::without(decomposition_passes(), left_out);
  return transform::over_parts(transform::run_passes(model(batch), passes), parts).has_value();
}

std::int64_t wanted_in_step(const GraphAtBatch& model, const CompileOptions& options) {
  const graph::Graph graph = model(options.batch);
  std::size_t bytes = 0;
  for (const graph::Node& node : graph.nodes())
    if (is_optimizer(node))
      bytes += static_cast<std::size_t>(graph.type(node.inputs[1]).shape.element_count()) * sizeof(float);
  return choose_in_step(options.batch, options.threads, sums_in_groups(bytes));
}

// Micro-batches that cannot run one by one may still run in step: of which size; none where they cannot. The
// graph of one sample may say less of where its samples lie than one of several (an axis of 1 is any axis),
// so that larger parts are tried after the one that is wanted.
std::optional<std::int64_t> micro_batch_in_step(const GraphAtBatch& model, const BatchedPorts& ports,
                                                const CompileOptions& options,
                                                std::span<const std::string> left_out) {
  const bool alone = options.parts.count == 1 && !options.parts.exchange;
  if (ports.splits || !alone || options.batch == 1 || options.micro_batch == options.batch ||
      options.memory_limit > 0 || !divides_in_step(model, options.batch, 2, left_out))
    return std::nullopt;
  if (options.micro_batch > 0) return options.micro_batch;
  for (std::int64_t size = wanted_in_step(model, options); size < options.batch; ++size)
    if (options.batch % size == 0 && divides_in_step(model, size, options.batch / size, left_out))
      return size;
  return std::nullopt;
}

// Each batch is built once, however often it is asked for: drawing the weights of a large model takes longer
// than planning it.
GraphAtBatch built_once(const GraphAtBatch& model) {
  return [&model, built = std::make_shared<std::map<std::int64_t, graph::Graph>>()](std::int64_t batch) {
    auto found = built->find(batch);
    if (found == built->end()) found = built->emplace(batch, model(batch)).first;
    return found->second;
  };
}

class CpuTarget : public Target {
 public:
  explicit CpuTarget(std::vector<std::string> left_out = {}) : left_out_(std::move(left_out)) {
    std::vector<transform::Pass> all = model_passes();
    for (transform::Pass& pass : graph_passes()) all.push_back(std::move(pass));
    transform::check_left_out(all, left_out_);
  }
  std::string_view name() const override { return "cpu"; }
  std::string_view summary() const override {
    return "this machine's processor: fused kernels, one replica a core, micro-batches that stay in cache";
  }
  PassTable passes() const override {
    return {.of_models = model_passes, .of_graphs = [](const target::PassUse& use) {
              return graph_passes(
                  {.parts_in_step = use.parts_in_step, .recomputation = {.share = use.recompute_share}});
            }};
  }

  std::vector<SlowOnBytes> slow_on_bytes(const graph::Graph& model,
                                         const transform::QuantizeOptions& options) const override {
    return choose_products_on_bytes(model, options).slow;
  }

  std::set<std::string, std::less<>> faster_in_bf16(
      const graph::Graph& model, const transform::QuantizeOptions& options) const override {
    if (!options.beside_bf16 || !kernels::multiplies_pairs_fast()) return {};
    return choose_products_on_bytes(model, options).in_bf16;
  }

  std::set<std::string, std::less<>> slow_in_bf16(const graph::Graph& model,
                                                  const transform::AutocastOptions& options) const override {
    return choose_products_in_f32(model, options);
  }

  graph::Graph suited(graph::Graph model) const override {
    return transform::run_passes(std::move(model), transform::without(model_passes(), left_out_));
  }

  std::unique_ptr<Executable> compile(const GraphAtBatch& model,
                                      const CompileOptions& options) const override {
    const auto begun = std::chrono::steady_clock::now();
    CompileOptions chosen = options;
    check(options);
    refuse_chips(options, name());
    const GraphAtBatch once = built_once(model);
    const BatchedPorts ports = batched_ports(once, options.batch, options.micro_batch);
    std::optional<Compiled> compiled;
    std::string choice = options.micro_batch > 0
                             ? "as asked for"
                             : "by the cost model: operations, and bytes beyond the second-level cache";
    const std::optional<std::int64_t> in_step = micro_batch_in_step(once, ports, options, left_out_);
    if (in_step) chosen.micro_batch = *in_step;
    if (chosen.micro_batch == 0 && !ports.splits) chosen.micro_batch = options.batch;
    if (chosen.micro_batch == 0) {
      const std::int64_t tried = largest_divisor(options.batch, first_try);
      compiled = compile_at(once, tried, ports, options.batch,
                            {.a_part = options.parts.exchange != nullptr, .left_out = left_out_});
      chosen.micro_batch =
          choose_micro_batch(options.batch, options.threads, footprint_of(compiled->plan, tried));
      if (chosen.micro_batch != tried || (is_whole(chosen) && compiled->plan.trains)) compiled.reset();
    }
    CompiledFor use = used_for(chosen, left_out_);
    use.in_step = in_step.has_value() && chosen.micro_batch != options.batch;
    if (use.in_step && options.micro_batch == 0) choice = "parts that take their statistics together";
    if (!compiled) compiled = compile_at(once, chosen.micro_batch, ports, options.batch, use);
    if (options.memory_limit > 0) choice = stay_below_limit(once, ports, chosen, *compiled);
    compiled->plan.choice = choice;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    return std::make_unique<CpuExecutable>(std::move(compiled->plan), std::move(compiled->inputs),
                                           std::move(compiled->outputs), chosen, seconds);
  }

 private:
  // Takes another plan where this one is too large; says what was done.
  std::string stay_below_limit(const GraphAtBatch& model, const BatchedPorts& ports, CompileOptions& options,
                               Compiled& compiled) const {
    const bool may_split = ports.splits && options.batch > 1;
    const auto bytes_of = [&](std::int64_t micro_batch, const Recomputation& recomputation) {
      CompileOptions tried = options;
      tried.micro_batch = micro_batch;
      if (micro_batch != options.micro_batch || recomputation.share > 0)
        compiled =
            compile_at(model, micro_batch, ports, options.batch, used_for(tried, left_out_), recomputation);
      return plan_bytes(compiled.plan, tried);
    };
    const LimitedChoice choice =
        choose_below(options.memory_limit, options.batch, options.micro_batch, may_split, bytes_of);
    options.micro_batch = choice.micro_batch;
    std::string text = fmt::format("the largest that stays below the limit of {}",
                                   format_bytes(static_cast<double>(options.memory_limit)));
    if (choice.recomputation.share > 0)
      text += fmt::format(", values of up to {:.0f} % of the operations computed again in the backward pass",
                          100 * choice.recomputation.share);
    return text;
  }

  static void check(const CompileOptions& options) {
    if (options.batch < 1 || options.threads < 1)
      throw Error(ErrorCode::invalid_argument, "batch and threads must be at least 1");
    if (options.micro_batch < 0 || (options.micro_batch > 0 && options.batch % options.micro_batch != 0))
      throw Error(ErrorCode::invalid_argument, "the batch is not a multiple of the micro-batch",
                  "--micro-batch", "choose a divisor of the batch");
  }

  std::vector<std::string> left_out_;  // passes
};

}  // namespace

std::unique_ptr<const Target> cpu_target_without(std::vector<std::string> passes) {
  return std::make_unique<CpuTarget>(std::move(passes));
}

}  // namespace superstep::target::cpu

namespace superstep::target {

const Target& cpu_target() {
  static const cpu::CpuTarget target;
  return target;
}

}  // namespace superstep::target
