// Back through time. The recurrent part goes step by step; the gradients by x, by the weights and by the
// biases are products over all steps at once.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/target/cpu/kernels/batch_reduce.h"
#include "superstep/target/cpu/kernels/column_sum.h"
#include "superstep/target/cpu/kernels/lstm.h"
#include "superstep/target/cpu/kernels/lstm_loops.h"
#include "superstep/target/cpu/kernels/lstm_pack.h"
#include "superstep/target/cpu/kernels/matmul.h"

namespace superstep::kernels {

namespace {

constexpr std::int64_t depth_block = 128;  // rows of R in a product: with 64 columns they fit the first cache

class LstmGradientKernel final : public Kernel {
 public:
  struct Plan {
    Lstm lstm;
    std::int64_t panel;           // columns of R in a product
    std::int64_t depths;          // products that are summed up
    std::int64_t recurrences;     // products that the gradient by R is made of: 1, or one a step
    BatchReduceProduct to_state;  // dgates times R: what the hidden state before gets
    KernelPointer dx, dw, dr, dr_first;
    std::size_t scratch_of_products;
    NarrowRows gate_rows, x_rows, y_rows, state_rows;  // of narrow products
  };

  LstmGradientKernel(KernelInfo info, Plan plan)
      : Kernel(std::move(info)),
        p_(std::move(plan)),
        loops_(lstm_loops()),
        column_sum_(column_sum(ElementType::f32)) {
    const std::int64_t row = l().narrow ? p_.panel : l().hidden, size = l().narrow ? 2 : 4;
    for (std::int64_t i = 0; i < p_.depths; ++i) {
      r_offsets_.push_back(static_cast<std::uint64_t>(i * depth() * row * size));
      gate_offsets_.push_back(static_cast<std::uint64_t>(i * depth() * size));
    }
  }
  void run(const Arguments& arguments) const override;

 private:
  struct Pointers {
    const float* x;
    const std::byte *w, *r;
    const float *h0, *c0, *y, *cells, *dy;
    float *gates, *dh, *dc;
    bf16* narrow_gates;  // of all steps; narrow products alone
  };

  const Lstm& l() const { return p_.lstm; }
  std::int64_t depth() const { return 4 * l().hidden / p_.depths; }
  std::int64_t step_at(std::int64_t order) const { return l().reverse ? l().steps - 1 - order : order; }

  void start(const Pointers& p, const float* dh_last, const float* dc_last) const;
  void run_step(const Pointers& p, std::int64_t order) const;
  void add_products(const Pointers& p, const Arguments& arguments) const;
  void add_narrow_products(const Pointers& p, const Arguments& arguments, std::byte* scratch) const;
  void add_bias_gradient(const float* gates, float* d_bias, float* scratch) const;

  Plan p_;
  LstmLoops loops_;
  ColumnSum* column_sum_;
  std::vector<std::uint64_t> r_offsets_, gate_offsets_;
};

void LstmGradientKernel::start(const Pointers& p, const float* dh_last, const float* dc_last) const {
  const auto bytes = static_cast<std::size_t>(l().batch * l().hidden) * sizeof(float);
  const auto begin = [&](float* to, const float* from) {
    if (from)
      std::memcpy(to, from, bytes);
    else
      std::memset(to, 0, bytes);
  };
  begin(p.dh, dh_last);
  begin(p.dc, dc_last);
}

void LstmGradientKernel::run_step(const Pointers& p, std::int64_t order) const {
  const std::int64_t step = step_at(order), hidden = l().hidden, batch = l().batch, states = batch * hidden;
  const float* c_before = order == 0 ? p.c0 : p.cells + step_at(order - 1) * states;
  float* gates = p.gates + step * 4 * states;
  for (std::int64_t unit = 0; unit < hidden; unit += lstm_panel)
    loops_.gradient({batch, gates + 4 * unit, 4 * hidden, c_before + unit, p.cells + step * states + unit,
                     p.dy ? p.dy + step * l().dy_step + unit : nullptr, p.dh + unit, p.dc + unit, hidden,
                     hidden, l().dy_sample, hidden, hidden});
  const void* right = gates;
  if (l().narrow) {
    bf16* rows = p.narrow_gates + step * 4 * states;
    p_.gate_rows.convert(p.gates, step, 1, rows);
    right = rows;
  }
  // Wide, a panel of R is some of its columns; narrow, a panel is packed by itself.
  const std::int64_t step_of_r = l().narrow ? 4 * hidden * 2 : 4;
  // There and back again, as forward.
  for (std::int64_t begin = 0; begin < hidden; begin += p_.panel) {
    const std::int64_t first = order % 2 == 0 ? begin : hidden - p_.panel - begin;
    p_.to_state(p.r + first * step_of_r, right, p.dh + first, static_cast<std::uint64_t>(p_.depths),
                r_offsets_.data(), gate_offsets_.data());
  }
}

// Sums over all rows in the packed order, then added where ONNX has them: to both halves.
void LstmGradientKernel::add_bias_gradient(const float* gates, float* d_bias, float* scratch) const {
  const std::int64_t hidden = l().hidden;
  std::fill_n(scratch, 4 * hidden, 0.0f);
  column_sum_(gates, 4 * hidden, l().steps * l().batch, 4 * hidden, scratch);
  for (std::int64_t panel = 0; panel < hidden / lstm_panel; ++panel)
    for (std::int64_t gate = 0; gate < 4; ++gate)
      for (std::int64_t u = 0; u < lstm_panel; ++u) {
        const float sum = scratch[(panel * 4 + gate) * lstm_panel + u];
        const std::int64_t at = gate * hidden + panel * lstm_panel + u;
        d_bias[at] += sum;
        d_bias[4 * hidden + at] += sum;
      }
}

void call(const Kernel& kernel, const void* a, const void* b, float* c, void* scratch) {
  const void* inputs[] = {a, b};
  void* outputs[] = {c};
  kernel.run({inputs, outputs, scratch});
}

void LstmGradientKernel::run(const Arguments& arguments) const {
  const auto in = [&](std::size_t i) { return static_cast<const float*>(arguments.inputs[i]); };
  const auto out = [&](std::size_t i) { return static_cast<float*>(arguments.outputs[i]); };
  std::size_t next = 8;
  const auto optional = [&](bool given) { return given ? in(next++) : nullptr; };
  const float *dy = optional(l().has_dy), *dh_last = optional(l().has_dh), *dc_last = optional(l().has_dc);
  auto* gates =
      static_cast<float*>(const_cast<void*>(arguments.inputs[6]));  // ours to overwrite: see the header
  const auto weights = [&](std::size_t i) { return static_cast<const std::byte*>(arguments.inputs[i]); };
  auto* scratch = static_cast<std::byte*>(arguments.scratch);
  const Pointers p{in(0), weights(1), weights(2), in(3),  in(4),  in(5),
                   in(7), dy,         gates,      out(3), out(4), reinterpret_cast<bf16*>(scratch)};
  start(p, dh_last, dc_last);
  for (std::int64_t order = l().steps; order-- > 0;) run_step(p, order);
  if (l().narrow)
    add_narrow_products(p, arguments, scratch + p_.gate_rows.bytes(l().steps));
  else
    add_products(p, arguments);
  add_bias_gradient(gates, out(2), static_cast<float*>(arguments.scratch));
}

void LstmGradientKernel::add_products(const Pointers& p, const Arguments& arguments) const {
  const auto out = [&](std::size_t i) { return static_cast<float*>(arguments.outputs[i]); };
  const std::int64_t states = l().batch * l().hidden;
  if (l().wants_dx) call(*p_.dx, p.gates, p.w, out(5), arguments.scratch);
  call(*p_.dw, p.gates, p.x, out(0), arguments.scratch);
  if (p_.dr) {
    const std::int64_t later = l().reverse ? 0 : 4 * states, before = l().reverse ? l().y_step : 0;
    for (std::int64_t i = 0; i < p_.recurrences; ++i)
      call(*p_.dr, p.gates + later + i * 4 * states, p.y + before + i * l().y_step, out(1),
           arguments.scratch);
  }
  if (p_.dr_first) call(*p_.dr_first, p.gates + step_at(0) * 4 * states, p.h0, out(1), arguments.scratch);
}

// The same from rounded rows, which have no gaps between them.
void LstmGradientKernel::add_narrow_products(const Pointers& p, const Arguments& arguments,
                                             std::byte* scratch) const {
  const auto out = [&](std::size_t i) { return static_cast<float*>(arguments.outputs[i]); };
  const std::int64_t states = l().batch * l().hidden, steps = l().steps;
  auto* rows = reinterpret_cast<bf16*>(scratch);  // of x, then of y, then of the initial state
  void* rest = scratch + std::max({p_.x_rows.bytes(steps), p_.y_rows.bytes(steps), p_.state_rows.bytes(1)});
  if (l().wants_dx) call(*p_.dx, p.narrow_gates, p.w, out(5), rest);
  p_.x_rows.convert(p.x, 0, steps, rows);
  call(*p_.dw, p.narrow_gates, rows, out(0), rest);
  if (p_.dr) {
    p_.y_rows.convert(p.y, l().reverse ? 1 : 0, steps - 1, rows);
    call(*p_.dr, p.narrow_gates + (l().reverse ? 0 : 4 * states), rows, out(1), rest);
  }
  if (!p_.dr_first) return;
  p_.state_rows.convert(p.h0, 0, 1, rows);
  call(*p_.dr_first, p.narrow_gates + step_at(0) * 4 * states, rows, out(1), rest);
}

// Rows (t, n) as one or two batch dimensions of a product is what Matmul cannot sum over: they must be
// equally spaced.
std::int64_t distance_of_rows(const Lstm& l, std::int64_t step, std::int64_t sample) {
  if (l.batch == 1) return step;
  return step == l.batch * sample || l.steps == 1 ? sample : 0;
}

// gates' [4 hidden, rows] times values [rows, columns], added into ONNX's order of gates: a product a gate
// and panel.
Matmul weight_gradient(const Lstm& l, std::int64_t rows, std::int64_t columns, std::int64_t distance) {
  Matmul product;
  product.batch = {4, l.hidden / lstm_panel};
  product.rows = lstm_panel;
  product.columns = columns;
  product.inner = rows;
  product.a.row = 1;
  product.a.column = 4 * l.hidden;
  product.a.batch = {lstm_panel, 4 * lstm_panel};
  product.b.row = distance;
  product.b.column = 1;
  product.c.row = columns;
  product.c.column = 1;
  product.c.batch = {l.hidden * columns, lstm_panel * columns};
  product.accumulate = true;
  if (l.narrow) product.a.type = product.b.type = ElementType::bf16;
  return product;
}

Matmul input_gradient(const Lstm& l, std::int64_t distance) {
  Matmul product;
  product.rows = l.steps * l.batch;
  product.columns = l.inputs;
  product.inner = 4 * l.hidden;
  product.a.row = 4 * l.hidden;
  product.a.column = 1;
  product.b.row = l.inputs;
  product.b.column = 1;
  product.c.row = distance;
  product.c.column = 1;
  if (l.narrow) product.a.type = product.b.type = ElementType::bf16;
  return product;
}

class GradientPlanner {
 public:
  explicit GradientPlanner(const Lstm& lstm) : l_(lstm) { plan_.lstm = lstm; }

  std::expected<LstmGradientKernel::Plan, std::string> run() {
    if (l_.narrow) round_rows();
    const std::int64_t x = l_.narrow ? plan_.x_rows.length() : distance_of_rows(l_, l_.x_step, l_.x_sample),
                       y = l_.narrow ? l_.hidden : distance_of_rows(l_, l_.y_step, l_.y_sample),
                       dx = distance_of_rows(l_, l_.dx_step, l_.dx_sample);
    if (x == 0 || (l_.wants_dx && dx == 0))
      return std::unexpected("rows of a sequence are not equally spaced");
    const std::int64_t rows = l_.steps * l_.batch;
    if (l_.wants_dx) add(plan_.dx, input_gradient(l_, dx));
    add(plan_.dw, weight_gradient(l_, rows, l_.inputs, x));
    // Where the rows of y are not equally spaced, the gradient by R is made step by step.
    plan_.recurrences = y != 0 ? 1 : l_.steps - 1;
    if (l_.steps > 1)
      add(plan_.dr, y != 0 ? weight_gradient(l_, rows - l_.batch, l_.hidden, y)
                           : weight_gradient(l_, l_.batch, l_.hidden, l_.y_sample));
    if (!l_.zero_state) add(plan_.dr_first, weight_gradient(l_, l_.batch, l_.hidden, l_.hidden));
    make_recurrent_product();
    if (!fault_.empty()) return std::unexpected(fault_);
    return std::move(plan_);
  }

 private:
  void add(KernelPointer& place, const Matmul& product) {
    Prepared kernel = matmul().prepare(product);
    if (!kernel) {
      fault_ = kernel.error().reason;
      return;
    }
    plan_.scratch_of_products = std::max(plan_.scratch_of_products, (*kernel)->info().scratch_bytes);
    place = std::move(*kernel);
  }

  void round_rows() {
    plan_.gate_rows = NarrowRows(l_.batch, 4 * l_.hidden, l_.batch * 4 * l_.hidden, 4 * l_.hidden);
    plan_.x_rows = NarrowRows(l_.batch, l_.inputs, l_.x_step, l_.x_sample);
    plan_.y_rows = NarrowRows(l_.batch, l_.hidden, l_.y_step, l_.y_sample);
    plan_.state_rows = NarrowRows(l_.batch, l_.hidden, 0, l_.hidden);
  }

  void make_recurrent_product() {
    plan_.panel = lstm_gradient_panel(l_.hidden);
    const std::int64_t all = 4 * l_.hidden;
    plan_.depths = all % depth_block == 0 ? all / depth_block : 1;
    ProductShape shape;
    shape.m = plan_.panel;
    shape.n = l_.batch;
    shape.k = all / plan_.depths;
    shape.a_stride = l_.narrow ? plan_.panel : l_.hidden;
    shape.b_n_stride = all;
    shape.c_stride = l_.hidden;
    shape.type = l_.narrow ? ElementType::bf16 : ElementType::f32;
    shape.pairs = l_.narrow;
    auto product = BatchReduceProduct::prepare(shape, ProductMaker::libxsmm);
    if (!product) product = BatchReduceProduct::prepare(shape, ProductMaker::portable);
    if (product)
      plan_.to_state = *product;
    else
      fault_ = product.error();
  }

  Lstm l_;
  LstmGradientKernel::Plan plan_{};
  std::string fault_;
};

}  // namespace

Prepared prepare_lstm_gradient(const Lstm& l) {
  if (std::string fault = fault_of(l); !fault.empty()) return refuse("lstm gradient", fault);
  auto plan = GradientPlanner(l).run();
  if (!plan) return refuse("lstm gradient", plan.error());
  const auto rows = static_cast<double>(l.steps * l.batch), gates = static_cast<double>(4 * l.hidden);
  const auto inputs = static_cast<double>(l.inputs), hidden = static_cast<double>(l.hidden);
  KernelInfo info;
  info.name = fmt::format("lstm gradient, {} steps of {} x ({} + {}), weights packed{}", l.steps, l.batch,
                          l.inputs, l.hidden, l.narrow ? " as bf16" : "");
  info.arithmetic = l.narrow ? ElementType::bf16 : ElementType::f32;
  info.flops = 2 * rows * gates * (2 * hidden + (l.wants_dx ? 2 : 1) * inputs);
  info.bytes = 4 * (rows * (2 * gates + 3 * hidden + 2 * inputs) + 2 * gates * (inputs + hidden));
  std::size_t products = plan->scratch_of_products;
  if (l.narrow)
    products +=
        plan->gate_rows.bytes(l.steps) +
        std::max({plan->x_rows.bytes(l.steps), plan->y_rows.bytes(l.steps), plan->state_rows.bytes(1)});
  info.scratch_bytes = std::max(products, static_cast<std::size_t>(4 * l.hidden) * sizeof(float));
  info.inputs = 8 + static_cast<std::size_t>(l.has_dy) + static_cast<std::size_t>(l.has_dh) +
                static_cast<std::size_t>(l.has_dc);
  info.outputs = l.wants_dx ? 6 : 5;
  return std::make_unique<LstmGradientKernel>(std::move(info), std::move(*plan));
}

}  // namespace superstep::kernels
