#include "superstep/target/cpu/kernels/sequence/lstm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "superstep/target/cpu/kernels/core/shared_phases.h"
#include "superstep/target/cpu/kernels/product/batch_reduce.h"
#include "superstep/target/cpu/kernels/product/pair_panel.h"
#include "superstep/target/cpu/kernels/sequence/lstm_loops.h"
#include "superstep/target/cpu/kernels/sequence/lstm_pack.h"

namespace superstep::kernels {

namespace {

constexpr std::int64_t chunk_rows = 64;  // of x, in one product: few enough that their gates stay in cache

// Another core may have the line: it is here when the product is done.
void fetch_to_write(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const std::byte*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

// Of an element of the state as products read it.
std::int64_t bytes_of_state(const Lstm& l) { return l.narrow ? 2 : 4; }

// Of a rounded state. Whole pages: no prefetcher that reads one goes on into the other.
std::size_t state_bytes(const Lstm& l) {
  const auto bytes = static_cast<std::size_t>(l.batch * l.hidden * bytes_of_state(l));
  return l.narrow ? (bytes + 4095) / 4096 * 4096 : 0;
}

std::expected<BatchReduceProduct, std::string> make_product(const ProductShape& shape) {
  auto product = BatchReduceProduct::prepare(shape, ProductMaker::libxsmm);
  if (!product) product = BatchReduceProduct::prepare(shape, ProductMaker::portable);
  return product;
}

class LstmKernel final : public Kernel {
 public:
  struct Plan {
    Lstm lstm;
    std::int64_t chunk;  // steps whose part W x is made at once
    bool joined;         // rows of x are equally spaced: a chunk is one product
    // W x for a whole chunk, for what is left at the end, and R h from initial states and from y.
    BatchReduceProduct from_x, from_x_rest, from_state, from_y;
    NarrowRows x_rows, state_rows;  // of narrow products
  };

  LstmKernel(KernelInfo info, const Plan& plan);
  void run(const Arguments& arguments) const override;
  void begin_shared(const Arguments& arguments, int members) const override;
  void run_shared(const Arguments& arguments, int member, void* own_scratch) const override;

 private:
  struct Pointers {
    explicit Pointers(const Plan& plan, const Arguments& arguments);
    const float* x;
    const std::byte *w, *r;
    const float *given_bias, *h0, *c0;
    float *y, *last_h, *last_c;
    float *gates, *cells, *bias;
    bf16* x_rows;       // of a chunk of steps; of narrow products
    std::byte* states;  // h of two steps by turns; of narrow products: others read it from y
    void* shared;
  };
  // The run is a sequence of phases, each of them of as many items as there are panels: for every chunk of
  // steps rounding of x (of narrow products), its product, and the steps.
  struct Phase {
    enum class Kind : std::uint8_t { round, inputs, step } kind;
    std::int64_t chunk, step;  // the step within the chunk
  };

  const Lstm& l() const { return p_.lstm; }
  std::int64_t rows_of_gates() const { return 4 * l().hidden; }
  std::int64_t panels() const { return l().hidden / lstm_panel; }
  std::int64_t phases_before_steps() const { return l().narrow ? 2 : 1; }
  std::int64_t phases() const;
  Phase phase_at(std::int64_t number) const;
  std::int64_t steps_of(std::int64_t chunk) const { return std::min(p_.chunk, l().steps - chunk * p_.chunk); }
  // Of a chunk, in memory.
  std::int64_t first_step(std::int64_t chunk) const {
    return l().reverse ? step_at(chunk * p_.chunk + steps_of(chunk) - 1) : chunk * p_.chunk;
  }
  float* gates_of(const Pointers& p, std::int64_t chunk) const {
    return l().keep ? p.gates + first_step(chunk) * l().batch * rows_of_gates() : p.gates;
  }
  std::int64_t step_at(std::int64_t order) const { return l().reverse ? l().steps - 1 - order : order; }
  // Bytes of a panel of weights that sums `depth` elements.
  std::int64_t panel_bytes(std::int64_t depth) const {
    return 4 * lstm_panel * (l().narrow ? padded_depth(depth) * 2 : depth * 4);
  }

  void begin(const Pointers& p) const;
  void add_biases(const float* given, float* sum) const;
  void run_item(const Pointers& p, std::int64_t phase, std::int64_t item) const;
  void round_inputs(const Pointers& p, std::int64_t chunk, std::int64_t item) const;
  void multiply_inputs(const Pointers& p, std::int64_t chunk, std::int64_t panel) const;
  void run_step(const Pointers& p, std::int64_t order, float* gates, std::int64_t panel) const;
  void keep_last(const Pointers& p, std::int64_t unit) const;

  Plan p_;
  LstmLoops loops_;
  void (*fused_)(const LstmStep&) = nullptr;  // product and cell in registers, of one sample
};

LstmKernel::LstmKernel(KernelInfo info, const Plan& plan)
    : Kernel(std::move(info)), p_(plan), loops_(lstm_loops()) {
  if (l().batch == 1) fused_ = l().narrow ? loops_.narrow_step : loops_.step;
}

LstmKernel::Pointers::Pointers(const Plan& plan, const Arguments& arguments) {
  const Lstm& l = plan.lstm;
  const auto in = [&](std::size_t i) { return static_cast<const float*>(arguments.inputs[i]); };
  const auto out = [&](std::size_t i) { return static_cast<float*>(arguments.outputs[i]); };
  const auto weights = [&](std::size_t i) { return static_cast<const std::byte*>(arguments.inputs[i]); };
  x = in(0), w = weights(1), r = weights(2), given_bias = in(3), h0 = in(4), c0 = in(5);
  y = out(0), last_h = out(1), last_c = out(2);
  // Cells that are not kept are made where the last ones belong.
  cells = l.keep ? out(4) : last_c;
  auto* scratch = static_cast<std::byte*>(arguments.scratch);
  const auto take = [&](std::size_t bytes) { return std::exchange(scratch, scratch + bytes); };
  shared = take(SharedPhases::bytes);
  x_rows = reinterpret_cast<bf16*>(take(l.narrow ? plan.x_rows.bytes(plan.chunk) : 0));
  states = take(2 * state_bytes(l));
  bias = reinterpret_cast<float*>(take(static_cast<std::size_t>(4 * l.hidden) * sizeof(float)));
  gates = l.keep ? out(3) : reinterpret_cast<float*>(scratch);
}

std::int64_t LstmKernel::phases() const {
  return l().steps + (l().steps + p_.chunk - 1) / p_.chunk * phases_before_steps();
}

LstmKernel::Phase LstmKernel::phase_at(std::int64_t number) const {
  const std::int64_t before = phases_before_steps(), period = p_.chunk + before, chunk = number / period;
  const std::int64_t step = number % period - before;
  if (step >= 0) return {Phase::Kind::step, chunk, step};
  return {step == -1 ? Phase::Kind::inputs : Phase::Kind::round, chunk, 0};
}

// Both biases together, in the order of the packed gates.
void LstmKernel::add_biases(const float* given, float* sum) const {
  const std::int64_t hidden = l().hidden;
  for (std::int64_t panel = 0; panel < hidden / lstm_panel; ++panel)
    for (std::int64_t gate = 0; gate < 4; ++gate)
      for (std::int64_t u = 0; u < lstm_panel; ++u) {
        const std::int64_t at = gate * hidden + panel * lstm_panel + u;
        *sum++ = given[at] + given[4 * hidden + at];
      }
}

void LstmKernel::begin(const Pointers& p) const {
  add_biases(p.given_bias, p.bias);
  if (l().narrow && !l().zero_state) p_.state_rows.convert(p.h0, 0, 1, reinterpret_cast<bf16*>(p.states));
}

// The rows of some of a chunk's steps, as many items as there are panels.
void LstmKernel::round_inputs(const Pointers& p, std::int64_t chunk, std::int64_t item) const {
  const PartRange steps = part_range(steps_of(chunk), item, panels());
  p_.x_rows.convert(p.x, first_step(chunk) + steps.begin, steps.end - steps.begin,
                    p.x_rows + steps.begin * l().batch * p_.x_rows.length());
}

// A panel of the gates of a chunk's steps, as far as x goes.
void LstmKernel::multiply_inputs(const Pointers& p, std::int64_t chunk, std::int64_t panel) const {
  const BatchReduceProduct& product = steps_of(chunk) == p_.chunk ? p_.from_x : p_.from_x_rest;
  const std::int64_t calls = p_.joined ? 1 : steps_of(chunk);
  for (std::int64_t call = 0; call < calls; ++call) {
    const void* x =
        l().narrow ? static_cast<const void*>(p.x_rows) : p.x + (first_step(chunk) + call) * l().x_step;
    product(p.w + panel * panel_bytes(l().inputs), x,
            gates_of(p, chunk) + call * l().batch * rows_of_gates() + panel * 4 * lstm_panel);
  }
}

// A panel of one step. Nothing of it is read by another panel before the next step: rounded states alternate
// between two places.
void LstmKernel::run_step(const Pointers& p, std::int64_t order, float* gates, std::int64_t panel) const {
  const std::int64_t step = step_at(order), before = l().reverse ? step + 1 : step - 1;
  const bool first = order == 0;
  const std::int64_t hidden = l().hidden, unit = panel * lstm_panel, step_cells = l().batch * hidden;
  std::byte* const after = p.states + static_cast<std::size_t>((order + 1) % 2) * state_bytes(l());
  const void* h = l().narrow ? p.states + static_cast<std::size_t>(order % 2) * state_bytes(l())
                  : first    ? static_cast<const void*>(p.h0)
                             : p.y + before * l().y_step;
  float* c = l().keep ? p.cells + step * step_cells : p.cells;
  const float* c_before = first ? p.c0 : l().keep ? p.cells + before * step_cells : p.cells;
  const std::byte* r = p.r + panel * panel_bytes(hidden);
  float* part = gates + panel * 4 * lstm_panel;
  const LstmCell cell{.samples = l().batch,
                      .gates = part,
                      .gate_stride = rows_of_gates(),
                      .bias = p.bias + panel * 4 * lstm_panel,
                      .c_before = c_before + unit,
                      .c = c + unit,
                      .h = p.y + step * l().y_step + unit,
                      .c_before_stride = hidden,
                      .c_stride = hidden,
                      .h_stride = l().y_sample,
                      .keep = l().keep,
                      .narrow_h = l().narrow ? reinterpret_cast<bf16*>(after) + unit : nullptr,
                      .narrow_h_stride = hidden};
  const bool multiplies = !first || !l().zero_state;
  if (multiplies && fused_) {
    // What another core has made, or has read, is asked for at once.
    fetch_to_write(l().narrow ? static_cast<const void*>(cell.narrow_h) : cell.h);
    for (std::int64_t u = 0; u < hidden; u += lstm_panel)
      __builtin_prefetch(static_cast<const std::byte*>(h) + u * bytes_of_state(l()));
    fused_({cell, r, h, hidden});
  } else {
    if (multiplies) (first ? p_.from_state : p_.from_y)(r, h, part);
    loops_.cell(cell);
  }
  if (order + 1 == l().steps) keep_last(p, unit);
}

void LstmKernel::keep_last(const Pointers& p, std::int64_t unit) const {
  const std::int64_t last = step_at(l().steps - 1), hidden = l().hidden;
  for (std::int64_t n = 0; n < l().batch; ++n) {
    const std::int64_t at = n * hidden + unit;
    std::memcpy(p.last_h + at, p.y + last * l().y_step + n * l().y_sample + unit, lstm_panel * sizeof(float));
    if (l().keep)
      std::memcpy(p.last_c + at, p.cells + last * l().batch * hidden + at, lstm_panel * sizeof(float));
  }
}

void LstmKernel::run_item(const Pointers& p, std::int64_t number, std::int64_t item) const {
  const Phase phase = phase_at(number);
  switch (phase.kind) {
    case Phase::Kind::round: return round_inputs(p, phase.chunk, item);
    case Phase::Kind::inputs: return multiply_inputs(p, phase.chunk, item);
    case Phase::Kind::step: break;
  }
  const std::int64_t order = phase.chunk * p_.chunk + phase.step;
  run_step(
      p, order,
      gates_of(p, phase.chunk) + (step_at(order) - first_step(phase.chunk)) * l().batch * rows_of_gates(),
      item);
}

void LstmKernel::run(const Arguments& arguments) const {
  const Pointers p(p_, arguments);
  begin(p);
  // There and back again: the panels that a step reads last are those that a cache still holds in the next.
  for (std::int64_t phase = 0; phase < phases(); ++phase)
    for (std::int64_t i = 0; i < panels(); ++i) run_item(p, phase, phase % 2 == 0 ? i : panels() - 1 - i);
}

void LstmKernel::begin_shared(const Arguments& arguments, int members) const {
  const Pointers p(p_, arguments);
  begin(p);
  SharedPhases::begin(p.shared, panels(), members);
}

void LstmKernel::run_shared(const Arguments& arguments, int member, void*) const {
  const Pointers p(p_, arguments);
  SharedPhases::at(p.shared).join(member, phases(),
                                  [&](std::int64_t phase, std::int64_t item) { run_item(p, phase, item); });
}

// The distance of neighbouring rows (t, n) when all are equally spaced, else 0.
std::int64_t row_distance(const Lstm& l, std::int64_t step, std::int64_t sample) {
  if (l.batch == 1) return step;
  return step == l.batch * sample || l.steps == 1 ? sample : 0;
}

std::expected<LstmKernel::Plan, std::string> plan_of(const Lstm& l) {
  LstmKernel::Plan plan{};
  plan.lstm = l;
  const std::int64_t distance = l.narrow ? padded_depth(l.inputs) : row_distance(l, l.x_step, l.x_sample);
  plan.joined = distance != 0;
  if (l.narrow) {
    plan.x_rows = NarrowRows(l.batch, l.inputs, l.x_step, l.x_sample);
    plan.state_rows = NarrowRows(l.batch, l.hidden, 0, l.hidden);
  }
  const std::int64_t most = std::max<std::int64_t>(1, chunk_rows / l.batch);
  const std::int64_t chunks = (l.steps + most - 1) / most;
  plan.chunk = (l.steps + chunks - 1) / chunks;
  const auto product = [&](std::int64_t columns, std::int64_t depth, std::int64_t stride, bool adds) {
    ProductShape shape;
    shape.m = shape.a_stride = 4 * lstm_panel;
    shape.n = columns;
    shape.k = l.narrow ? padded_depth(depth) : depth;
    shape.b_n_stride = columns == 1 ? std::max(stride, shape.k) : stride;
    shape.type = l.narrow ? ElementType::bf16 : ElementType::f32;
    shape.pairs = l.narrow;
    shape.c_stride = 4 * l.hidden;
    shape.accumulate = adds;
    return make_product(shape);
  };
  const std::int64_t rest = l.steps % plan.chunk == 0 ? plan.chunk : l.steps % plan.chunk;
  const std::int64_t x_stride = plan.joined ? distance : l.x_sample;
  const auto columns = [&](std::int64_t steps) { return plan.joined ? steps * l.batch : l.batch; };
  const auto from_x = product(columns(plan.chunk), l.inputs, x_stride, false);
  const auto from_x_rest = product(columns(rest), l.inputs, x_stride, false);
  const auto from_state = product(l.batch, l.hidden, l.hidden, true);
  const auto from_y = product(l.batch, l.hidden, l.narrow ? l.hidden : l.y_sample, true);
  for (const auto* made : {&from_x, &from_x_rest, &from_state, &from_y})
    if (!*made) return std::unexpected(made->error());
  plan.from_x = *from_x;
  plan.from_x_rest = *from_x_rest;
  plan.from_state = *from_state;
  plan.from_y = *from_y;
  return plan;
}

}  // namespace

int shares_of_step(const Lstm& l, std::int64_t panels) {
  const auto weights = static_cast<double>(4 * l.hidden * l.hidden);
  return members_of_phase(weights * (l.narrow ? 2 : 4), 2 * weights * static_cast<double>(l.batch), panels);
}

std::string fault_of(const Lstm& l) {
  if (l.steps < 1 || l.batch < 1 || l.inputs < 1) return "an extent is not positive";
  if (l.hidden < lstm_panel || l.hidden % lstm_panel != 0)
    return fmt::format("{} units are no multiple of {}", l.hidden, lstm_panel);
  if (l.narrow && !multiplies_pairs()) return "bf16 products need AVX-512 BF16";
  return {};
}

Prepared prepare_lstm(const Lstm& l) {
  if (std::string fault = fault_of(l); !fault.empty()) return refuse("lstm", fault);
  auto plan = plan_of(l);
  if (!plan) return refuse("lstm", plan.error());
  const auto rows = static_cast<double>(l.steps * l.batch);
  const auto gates = static_cast<double>(4 * l.hidden), width = static_cast<double>(l.inputs + l.hidden);
  KernelInfo info;
  info.name = fmt::format("lstm, {} steps of {} x ({} + {}), weights packed{}{}", l.steps, l.batch, l.inputs,
                          l.hidden, l.narrow ? " as bf16" : "", l.keep ? ", gates kept" : "");
  info.arithmetic = l.narrow ? ElementType::bf16 : ElementType::f32;
  info.flops = 2 * rows * gates * width;
  info.bytes = 4 * (rows * static_cast<double>(l.inputs + l.hidden) + gates * width +
                    (l.keep ? rows * static_cast<double>(5 * l.hidden) : 0));
  info.scratch_bytes =
      SharedPhases::bytes + 2 * state_bytes(l) +
      static_cast<std::size_t>(4 * l.hidden * (1 + (l.keep ? 0 : plan->chunk * l.batch))) * sizeof(float);
  if (l.narrow) info.scratch_bytes += plan->x_rows.bytes(plan->chunk);
  info.members = shares_of_step(l, l.hidden / lstm_panel);
  info.inputs = 6;
  info.outputs = l.keep ? 5 : 3;
  return std::make_unique<LstmKernel>(std::move(info), *plan);
}

}  // namespace superstep::kernels
