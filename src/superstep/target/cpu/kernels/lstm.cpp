#include "superstep/target/cpu/kernels/lstm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/target/cpu/kernels/batch_reduce.h"
#include "superstep/target/cpu/kernels/lstm_loops.h"
#include "superstep/target/cpu/kernels/lstm_pack.h"
#include "superstep/target/cpu/kernels/pair_panel.h"

namespace superstep::kernels {

namespace {

constexpr std::int64_t chunk_rows = 48;  // of x, in one product: few enough that their gates stay in cache

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
    NarrowRows x_rows, state_rows, y_rows;  // of narrow products
  };

  LstmKernel(KernelInfo info, const Plan& plan) : Kernel(std::move(info)), p_(plan), loops_(lstm_loops()) {}
  void run(const Arguments& arguments) const override;

 private:
  struct Pointers {
    const float* x;
    const std::byte *w, *r;
    const float *h0, *c0;
    float *y, *gates, *cells, *bias;
    bf16 *x_rows, *h_rows;  // of a chunk of steps, of the step before; narrow products alone
    bool keep;
  };

  const Lstm& l() const { return p_.lstm; }
  std::int64_t rows_of_gates() const { return 4 * l().hidden; }
  std::int64_t step_at(std::int64_t order) const { return l().reverse ? l().steps - 1 - order : order; }
  // Bytes of a panel of weights that sums `depth` elements.
  std::int64_t panel_bytes(std::int64_t depth) const {
    return 4 * lstm_panel * (l().narrow ? padded_depth(depth) * 2 : depth * 4);
  }

  void add_biases(const float* given, float* sum) const;
  void multiply_inputs(const Pointers& p, std::int64_t first_step, std::int64_t count, float* gates) const;
  void run_step(const Pointers& p, std::int64_t order, float* gates) const;

  Plan p_;
  LstmLoops loops_;
};

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

// The gates of `count` steps from `first_step` on, as far as x goes.
void LstmKernel::multiply_inputs(const Pointers& p, std::int64_t first_step, std::int64_t count,
                                 float* gates) const {
  const BatchReduceProduct& product = count == p_.chunk ? p_.from_x : p_.from_x_rest;
  const std::int64_t width = 4 * lstm_panel;
  const std::int64_t calls = p_.joined ? 1 : count;
  if (l().narrow) p_.x_rows.convert(p.x, first_step, count, p.x_rows);
  for (std::int64_t panel = 0; panel < l().hidden / lstm_panel; ++panel)
    for (std::int64_t call = 0; call < calls; ++call) {
      const void* x =
          l().narrow ? static_cast<const void*>(p.x_rows) : p.x + (first_step + call) * l().x_step;
      product(p.w + panel * panel_bytes(l().inputs), x,
              gates + call * l().batch * rows_of_gates() + panel * width);
    }
}

void LstmKernel::run_step(const Pointers& p, std::int64_t order, float* gates) const {
  const std::int64_t step = step_at(order), before = l().reverse ? step + 1 : step - 1;
  const bool first = order == 0;
  const std::int64_t hidden = l().hidden, width = 4 * lstm_panel, step_cells = l().batch * hidden;
  const void* h = l().narrow ? static_cast<const void*>(p.h_rows) : first ? p.h0 : p.y + before * l().y_step;
  float* c = p.keep ? p.cells + step * step_cells : p.cells;
  const float* c_before = first ? p.c0 : p.keep ? p.cells + before * step_cells : p.cells;
  if (l().narrow && first && !l().zero_state) p_.state_rows.convert(p.h0, 0, 1, p.h_rows);
  // There and back again: the panels that a step reads last are those that a cache still holds in the next.
  const std::int64_t panels = hidden / lstm_panel;
  for (std::int64_t i = 0; i < panels; ++i) {
    const std::int64_t panel = order % 2 == 0 ? i : panels - 1 - i, unit = panel * lstm_panel;
    float* part = gates + panel * width;
    if (!first || !l().zero_state)
      (first ? p_.from_state : p_.from_y)(p.r + panel * panel_bytes(hidden), h, part);
    loops_.cell({l().batch, part, rows_of_gates(), p.bias + panel * width, c_before + unit, c + unit,
                 p.y + step * l().y_step + unit, hidden, hidden, l().y_sample});
  }
  if (l().narrow) p_.y_rows.convert(p.y, step, 1, p.h_rows);
}

void LstmKernel::run(const Arguments& arguments) const {
  const auto in = [&](std::size_t i) { return static_cast<const float*>(arguments.inputs[i]); };
  const auto out = [&](std::size_t i) { return static_cast<float*>(arguments.outputs[i]); };
  const auto weights = [&](std::size_t i) { return static_cast<const std::byte*>(arguments.inputs[i]); };
  auto* narrow = static_cast<std::byte*>(arguments.scratch);
  auto* x_rows = reinterpret_cast<bf16*>(narrow);
  if (l().narrow) narrow += p_.x_rows.bytes(p_.chunk);
  auto* h_rows = reinterpret_cast<bf16*>(narrow);
  if (l().narrow) narrow += p_.y_rows.bytes(1);
  auto* scratch = reinterpret_cast<float*>(narrow);
  const std::int64_t step_gates = l().batch * rows_of_gates(), step_cells = l().batch * l().hidden;
  Pointers p{in(0),   weights(1), weights(2), in(4),  in(5),  out(0),
             nullptr, nullptr,    scratch,    x_rows, h_rows, l().keep};
  float* const space = scratch + rows_of_gates();
  p.gates = p.keep ? out(3) : space;
  p.cells = p.keep ? out(4) : space + p_.chunk * step_gates;
  add_biases(in(3), p.bias);
  for (std::int64_t order = 0; order < l().steps; order += p_.chunk) {
    const std::int64_t count = std::min(p_.chunk, l().steps - order);
    const std::int64_t first = l().reverse ? step_at(order + count - 1) : order;
    float* gates = p.keep ? p.gates + first * step_gates : p.gates;
    multiply_inputs(p, first, count, gates);
    for (std::int64_t i = 0; i < count; ++i)
      run_step(p, order + i, gates + (step_at(order + i) - first) * step_gates);
  }
  const std::int64_t last = step_at(l().steps - 1);
  for (std::int64_t n = 0; n < l().batch; ++n)
    std::memcpy(out(1) + n * l().hidden, p.y + last * l().y_step + n * l().y_sample,
                static_cast<std::size_t>(l().hidden) * sizeof(float));
  std::memcpy(out(2), p.keep ? p.cells + last * step_cells : p.cells,
              static_cast<std::size_t>(step_cells) * sizeof(float));
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
    plan.y_rows = NarrowRows(l.batch, l.hidden, l.y_step, l.y_sample);
  }
  plan.chunk = std::min(l.steps, std::max<std::int64_t>(1, chunk_rows / l.batch));
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
  const std::int64_t step = l.batch * 5 * l.hidden;
  info.scratch_bytes =
      static_cast<std::size_t>(4 * l.hidden + (l.keep ? 0 : plan->chunk * step + l.batch * l.hidden)) *
      sizeof(float);
  if (l.narrow) info.scratch_bytes += plan->x_rows.bytes(plan->chunk) + plan->y_rows.bytes(1);
  info.inputs = 6;
  info.outputs = l.keep ? 5 : 3;
  return std::make_unique<LstmKernel>(std::move(info), *plan);
}

}  // namespace superstep::kernels
