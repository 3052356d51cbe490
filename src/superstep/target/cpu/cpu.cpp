// The CPU target: passes, the choice of the micro-batch, and the plan.
#include "superstep/target/cpu/cpu.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

#include "superstep/graph/verify.h"
#include "superstep/op/definition.h"
#include "superstep/target/cpu/decompose.h"
#include "superstep/target/cpu/executable.h"
#include "superstep/target/cpu/lowering.h"
#include "superstep/target/ports.h"

namespace superstep::target::cpu {
namespace {

constexpr std::int64_t first_try = 8, largest_choice = 64;

std::size_t second_level_cache_bytes() {
  const long size = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return size > 0 ? static_cast<std::size_t>(size) : std::size_t{1} << 20;
}

std::int64_t largest_divisor(std::int64_t batch, std::int64_t limit) {
  for (std::int64_t divisor = std::min(batch, limit); divisor > 1; --divisor)
    if (batch % divisor == 0) return divisor;
  return 1;
}

struct Compiled {
  Plan plan;
  std::vector<PortPlan> inputs, outputs;
};

Compiled compile_at(const GraphAtBatch& model, std::int64_t micro_batch, const BatchedPorts& ports,
                    std::int64_t batch) {
  const graph::Graph graph = prepare_graph(decompose(model(micro_batch)));
  std::vector<bool> batched_output;
  for (std::size_t i = 0; i < ports.outputs.size(); ++i)
    batched_output.push_back(micro_batch == batch || ports.output_is_batched[i]);
  Compiled result{Lowering(graph, batched_output).run(), {}, {}};
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

// The micro-batch whose activations stay near the core's second-level cache (in twice its size: not all that
// lives at once is touched at once), among the divisors of the batch that leave every thread something to do.
std::int64_t choose_micro_batch(std::int64_t batch, int threads, std::size_t bytes_a_sample) {
  const auto fitting =
      static_cast<std::int64_t>(2 * second_level_cache_bytes() / std::max<std::size_t>(1, bytes_a_sample));
  const std::int64_t share = std::max<std::int64_t>(1, batch / threads);
  return largest_divisor(batch, std::min({std::max<std::int64_t>(fitting, 4), largest_choice, share}));
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
  std::string_view name() const override { return "cpu"; }
  std::string_view summary() const override {
    return "this machine's processor: fused kernels, one replica a core, micro-batches that stay in cache";
  }

  std::unique_ptr<Executable> compile(const GraphAtBatch& model,
                                      const CompileOptions& options) const override {
    const auto begun = std::chrono::steady_clock::now();
    CompileOptions chosen = options;
    check(options);
    const GraphAtBatch once = built_once(model);
    const BatchedPorts ports = batched_ports(once, options.batch);
    std::optional<Compiled> compiled;
    if (chosen.micro_batch == 0 && !ports.splits) chosen.micro_batch = options.batch;
    if (chosen.micro_batch == 0) {
      const std::int64_t tried = largest_divisor(options.batch, first_try);
      compiled = compile_at(once, tried, ports, options.batch);
      chosen.micro_batch = choose_micro_batch(options.batch, options.threads,
                                              compiled->plan.arena_bytes / static_cast<std::size_t>(tried));
      if (chosen.micro_batch != tried) compiled.reset();
    }
    if (!compiled) compiled = compile_at(once, chosen.micro_batch, ports, options.batch);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    return std::make_unique<CpuExecutable>(std::move(compiled->plan), std::move(compiled->inputs),
                                           std::move(compiled->outputs), chosen, seconds);
  }

 private:
  static void check(const CompileOptions& options) {
    if (options.batch < 1 || options.threads < 1)
      throw Error(ErrorCode::invalid_argument, "batch and threads must be at least 1");
    if (options.micro_batch < 0 || (options.micro_batch > 0 && options.batch % options.micro_batch != 0))
      throw Error(ErrorCode::invalid_argument, "the batch is not a multiple of the micro-batch",
                  "--micro-batch", "choose a divisor of the batch");
  }
};

}  // namespace

const Target& cpu_target() {
  static const CpuTarget target;
  return target;
}

}  // namespace superstep::target::cpu
