// Targets: where a graph runs for real. A folder a target; target/targets.cpp is the table.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/graph/graph.h"
#include "superstep/target/passes.h"
#include "superstep/transform/precision/precision.h"
#include "superstep/transform/precision/quantize.h"

namespace superstep::target {

// A model or training step at any batch: the graph whose inputs have `batch` samples along axis 0. A
// target asks for the micro-batch it wants to compile.
using GraphAtBatch = std::function<graph::Graph(std::int64_t batch)>;

struct ValueRange {
  std::size_t begin = 0, count = 0;  // of f32 values

  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

// How several runs, each on its own part of a larger batch, exchange what has to be averaged over all parts
// before the update: f32 gradients and averaged outputs (the loss). What carries it is the caller's affair
// (run/ranks). But for ready() everything is called by the thread that calls Executable::run.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // How many values a range should have: a target joins neighbours up to this and divides what is longer.
  virtual std::size_t range_values() const = 0;
  // Once, when a target has compiled: so many values lie in the memory that is returned (zeroed, on a 64-byte
  // boundary, the exchange's own), and these ranges of it are exchanged, numbered in the order in which a run
  // completes them. All parts give the same ranges.
  virtual std::span<float> open(std::size_t values, std::vector<ValueRange> ranges) = 0;

  // In every run: begin(); ready(r) for every range when its means over this part are in place, by any thread
  // and in any order; progress() now and then, which must return soon; finish(), which returns when every
  // range has its means over all parts. From ready() to finish() a target leaves the range alone.
  virtual void begin() = 0;
  virtual void ready(std::size_t range) = 0;
  virtual void progress() = 0;
  virtual void finish() = 0;

  // In the middle of a run: each value becomes its mean over this part and its neighbours
  // (op/rows/parts_mean.h). Every part calls it the same number of times, with as many values.
  virtual void average_over_span(std::span<float> values) = 0;
};

// A run that is one of several, each on its own part of a larger batch.
struct Parts {
  int count = 1, index = 0;      // this part is rows index * batch ... of a batch of count * batch samples
  Exchange* exchange = nullptr;  // must outlive the executable; null: there is one part
};

// How a machine of several chips shares a run's batch. Every replica has the whole model, cut into stages,
// one a chip; its micro-batches follow each other through them. Targets of one chip refuse (unsupported).
struct Chips {
  std::vector<int> pipeline;  // relative layers of each stage; empty: `stages` balanced ones
  int stages = 1;             // of a pipeline that the target balances itself
  int accumulate = 1;         // micro-batches of a replica's run
  int replicas = 1;
  bool divide_states = false;  // each replica keeps a part of the parameters and moments, where they divide
  bool several() const { return stages > 1 || pipeline.size() > 1 || accumulate > 1 || replicas > 1; }
};

struct CompileOptions {
  std::int64_t batch = 1;        // samples a run() takes
  std::int64_t micro_batch = 0;  // samples that go through the graph at a time; 0: the target chooses
  int threads = 1;
  std::size_t memory_limit = 0;  // bytes that the plan may take in all; 0: no limit
  bool measure_steps = false;    // time every step of the plan (slower; for explain and profiles)
  Parts parts = {};              // a target that cannot take part refuses (unsupported)
  Chips chips = {};
};

// When a step runs: once after a state has changed, for every micro-batch, or once a run at its end.
enum class PlanPart : std::uint8_t { prepare, body, update };

// The kernel of a step that no kernel takes: the operator's definition, one element at a time.
inline constexpr std::string_view reference_kernel = "reference evaluation";

// One step of a compiled plan, as `--explain` prints it.
struct PlanStep {
  std::string node;                   // the graph's node, or nodes joined by '+'
  std::string op;                     // its operator
  std::string kernel;                 // what runs it
  std::vector<std::string> refusals;  // "faster kernel: why not", in the order they were asked
  double flops = 0, bytes = 0;        // a micro-batch
  double seconds = 0;                 // an execution, mean; 0 when not measured
  PlanPart part = PlanPart::body;
  ElementType arithmetic = ElementType::f32;  // what is multiplied: f32, bf16, i8
  std::int64_t executions = 0;                // in the last run, by all threads; counted where it is measured
  int threads = 1;                            // that share an execution; where it was not run, as planned
  std::int64_t parts = 1;                     // pieces of an execution that threads can share
  bool evenly = false;                        // they share it in as many pieces as they are instead
  bool joins = false;                         // once for all micro-batches, which wait for each other there
};

// One execution of a step.
struct StepEvent {
  std::size_t step = 0;           // of Timeline::steps
  int thread = 0;                 // the one that waited for it
  int threads = 1;                // how many shared it
  std::int64_t micro_batch = -1;  // -1: outside of them
  double begin = 0, seconds = 0;  // since the run began
};

// The last run() in time.
struct Timeline {
  std::vector<PlanStep> steps;  // of all parts, in the order in which one micro-batch meets them
  std::vector<StepEvent> events;
  double seconds = 0;  // the whole run
};

struct PlanSummary {
  std::int64_t batch = 0, micro_batch = 0;
  int threads = 0;
  double flops = 0;  // of one run() of `batch` samples
  // Of all micro-batches that are worked on at the same time, with the threads' scratch; and how many those
  // are.
  std::size_t activation_bytes = 0, at_a_time = 1;
  std::size_t state_bytes = 0, constant_bytes = 0, gradient_bytes = 0;
  double compile_seconds = 0;
  std::size_t plan_bytes = 0;  // all that the plan takes, every thread's share included; 0: not known
  // Micro-batches are worked on in so many groups, a thread each; in step, all go through the steps together
  // and wait for each other where they share one. 0: the target does not say.
  std::size_t groups = 0;
  bool in_step = false;
  int devices = 0;                        // that share a run, of targets behind a plug-in; 0: others
  std::string choice;                     // how the micro-batch came about, for people; may be empty
  std::vector<PlanStep> steps;            // of a micro-batch
  std::vector<PlanStep> prepare, update;  // before and after the micro-batches

  // What the plan takes, or where that is not known the sum of its parts.
  std::size_t bytes_in_all() const {
    return plan_bytes > 0 ? plan_bytes : activation_bytes + state_bytes + constant_bytes + gradient_bytes;
  }
};

// A compiled graph with its state. Not thread-safe: one run at a time.
//
// When the batch is larger than the micro-batch, run() feeds slices of the inputs along axis 0 and joins
// the outputs: outputs with a batch axis are concatenated, scalars averaged. In a training step the values
// that cross from phase `backward` to `update` are averaged over the micro-batches before the update runs
// once. Inputs without a batch axis (a learning rate) go to every micro-batch as they are.
class Executable {
 public:
  virtual ~Executable() = default;

  struct Port {
    std::string name;
    graph::ValueType type;  // at the full batch
  };
  virtual std::span<const Port> inputs() const = 0;
  virtual std::span<const Port> outputs() const = 0;

  // `inputs` and `outputs` in the order of the ports; outputs are allocated by the caller with the ports'
  // types. An output may lie over inputs, not over another output. Throws Error (invalid_argument) naming a
  // port of another type or shape.
  virtual void run(std::span<const Tensor> inputs, std::span<Tensor> outputs) = 0;

  // State by name, in the graph's own (ONNX) element order.
  virtual std::vector<std::string> state_names() const = 0;
  virtual Tensor state(std::string_view name) const = 0;
  virtual void set_state(std::string_view name, const Tensor& value) = 0;
  // The state where it lies, for who reads it before the next run() or set_state(), which may change it: no
  // copy where the target keeps states in this process.
  virtual Tensor state_in_place(std::string_view name) const { return state(name); }

  // Does at once what else the next run() would do before it computes, where nothing is trained: weights are
  // read and packed.
  virtual void make_ready() {}

  // Gives back the memory that holds nothing between runs (activations, sums of gradients); the next run()
  // takes it again.
  virtual void release_working_memory() {}

  virtual PlanSummary summary() const = 0;

  // Of a target that models a machine's time: the runs so far, and the seconds that all of them take there.
  // None where this host's clock says how long a run takes.
  struct ModelledTime {
    std::uint64_t runs = 0;
    double seconds = 0;
  };
  virtual std::optional<ModelledTime> modelled_time() const { return {}; }

  // Empty where the plan was compiled without measure_steps, or the target does not measure steps.
  virtual Timeline timeline() const { return {}; }
};

// A product that would take longer on bytes, conversions included, than in f32.
struct SlowOnBytes {
  std::string result;    // its value's name, for transform::QuantizeOptions::kept
  double share = 1;      // of its time off bytes, estimated
  bool in_bf16 = false;  // rather than in f32 (QuantizeOptions::beside_bf16)
};

class Target {
 public:
  virtual ~Target() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;
  // What graphs go through in suited() and compile(), for who looks at them on the way.
  virtual PassTable passes() const { return {}; }
  // A model as this target computes it fastest, for what is done before it is compiled (derivatives,
  // precision): the same inputs, states and outputs, and the same results but for rounding.
  virtual graph::Graph suited(graph::Graph model) const { return model; }
  // Throws Error: unsupported (naming node and operator), invalid_argument, out_of_memory.
  virtual std::unique_ptr<Executable> compile(const GraphAtBatch& model,
                                              const CompileOptions& options) const = 0;
  // Of the products of `model`, an f32 inference graph, that transform::quantize would take. None where the
  // target does not know.
  virtual std::vector<SlowOnBytes> slow_on_bytes(const graph::Graph& /*model*/,
                                                 const transform::QuantizeOptions& /*options*/) const {
    return {};
  }
  // What of such a model that stays off bytes is faster in bf16 beside the products on bytes: results of
  // products, by name. None where options.beside_bf16 does not allow it.
  virtual std::set<std::string, std::less<>> faster_in_bf16(
      const graph::Graph& /*model*/, const transform::QuantizeOptions& /*options*/) const {
    return {};
  }
  // Of the products of `model`, an f32 inference graph, that transform::autocast would take to bf16, the
  // results of those that would take longer so than in f32, with their gradients where it is to be trained.
  virtual std::set<std::string, std::less<>> slow_in_bf16(
      const graph::Graph& /*model*/, const transform::AutocastOptions& /*options*/) const {
    return {};
  }
};

std::span<const Target* const> targets();
const Target& find_target(std::string_view name);      // throws Error (invalid_argument), nearest name
const Target* look_for_target(std::string_view name);  // null when there is none
std::vector<std::string> target_names();               // and those of kinds of devices

}  // namespace superstep::target
