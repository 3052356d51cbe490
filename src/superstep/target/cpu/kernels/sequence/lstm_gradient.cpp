// Back through time. The recurrent part goes step by step; the gradients by x, by the weights and by the
// biases are products over all steps at once.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/target/cpu/kernels/core/shared_phases.h"
#include "superstep/target/cpu/kernels/product/batch_reduce.h"
#include "superstep/target/cpu/kernels/product/matmul.h"
#include "superstep/target/cpu/kernels/rows/column_sum.h"
#include "superstep/target/cpu/kernels/sequence/lstm.h"
#include "superstep/target/cpu/kernels/sequence/lstm_loops.h"
#include "superstep/target/cpu/kernels/sequence/lstm_pack.h"

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
    NarrowRows x_rows, y_rows, state_rows;  // of narrow products
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
  void begin_shared(const Arguments& arguments, int members) const override;
  void run_shared(const Arguments& arguments, int member, void* own_scratch) const override;

  // What lies at the front of the scratch, for all threads: the state of the phases, the gates' cotangents of
  // all steps and the rows of a sequence, rounded. What products need follows.
  static std::size_t shared_bytes(const Plan& plan) {
    return SharedPhases::bytes + gate_row_bytes(plan) + row_bytes(plan);
  }

 private:
  struct Pointers {
    Pointers(const Plan& plan, const Arguments& arguments, bool alone);
    bool alone;  // one thread does all items
    const float* x;
    const std::byte *w, *r;
    const float *h0, *c0, *y, *cells, *dy = nullptr, *dh_last = nullptr, *dc_last = nullptr;
    float *gates, *dw, *dr, *d_bias, *dh, *dc, *dx;
    void* shared;
    bf16 *narrow_gates, *rows;  // narrow products alone
  };
  // One of the products over all steps, and what it reads beside the gates.
  struct Product {
    const Kernel* kernel;
    std::int64_t first_gates;  // rows of gates that are left out
    const void* right;
    float* to;
  };
  // What follows the steps, a phase each.
  enum class After : std::uint8_t { bias, dx, round_x, dw, round_y, dr, round_state, dr_first, count };

  static std::size_t gate_row_bytes(const Plan& plan) {
    const Lstm& l = plan.lstm;
    return l.narrow ? static_cast<std::size_t>(l.steps * l.batch * 4 * l.hidden) * sizeof(bf16)
                    : 0;  // whole lines
  }
  static std::size_t row_bytes(const Plan& plan) {
    const std::int64_t steps = plan.lstm.steps;
    return plan.lstm.narrow
               ? std::max({plan.x_rows.bytes(steps), plan.y_rows.bytes(steps), plan.state_rows.bytes(1)})
               : 0;
  }

  const Lstm& l() const { return p_.lstm; }
  std::int64_t depth() const { return 4 * l().hidden / p_.depths; }
  std::int64_t step_at(std::int64_t order) const { return l().reverse ? l().steps - 1 - order : order; }
  // The run is a sequence of phases, each of as many items as R has panels: one a step and one more to the
  // initial states, then what is made of all steps at once.
  std::int64_t items() const { return l().hidden / p_.panel; }
  std::int64_t phases() const { return l().steps + 1 + static_cast<std::int64_t>(After::count); }

  void run_item(const Pointers& p, std::int64_t phase, std::int64_t item, void* scratch) const;
  void start(const Pointers& p, std::int64_t first_unit) const;
  void pass_cells(const Pointers& p, std::int64_t order, std::int64_t first_unit) const;
  void pass_product(const Pointers& p, std::int64_t order, std::int64_t first_unit) const;
  void run_after(const Pointers& p, After after, std::int64_t item, void* scratch) const;
  void round(const NarrowRows& rows, const float* from, std::int64_t first_step, std::int64_t steps, bf16* to,
             std::int64_t item) const;
  void run_product(const Pointers& p, const Product& product, std::int64_t item, void* scratch) const;
  void add_recurrent_products(const Pointers& p, std::int64_t item, void* scratch) const;
  void add_bias_gradient(const Pointers& p, std::int64_t first_unit, float* scratch) const;

  Plan p_;
  LstmLoops loops_;
  ColumnSum* column_sum_;
  std::vector<std::uint64_t> r_offsets_, gate_offsets_;
};

LstmGradientKernel::Pointers::Pointers(const Plan& plan, const Arguments& arguments, bool is_alone) {
  alone = is_alone;
  const Lstm& l = plan.lstm;
  const auto in = [&](std::size_t i) { return static_cast<const float*>(arguments.inputs[i]); };
  const auto out = [&](std::size_t i) { return static_cast<float*>(arguments.outputs[i]); };
  const auto weights = [&](std::size_t i) { return static_cast<const std::byte*>(arguments.inputs[i]); };
  x = in(0), w = weights(1), r = weights(2), h0 = in(3), c0 = in(4), y = in(5), cells = in(7);
  gates = static_cast<float*>(const_cast<void*>(arguments.inputs[6]));  // ours to overwrite: see the header
  std::size_t next = 8;
  if (l.has_dy) dy = in(next++);
  if (l.has_dh) dh_last = in(next++);
  if (l.has_dc) dc_last = in(next++);
  dw = out(0), dr = out(1), d_bias = out(2), dh = out(3), dc = out(4);
  dx = l.wants_dx ? out(5) : nullptr;
  auto* scratch = static_cast<std::byte*>(arguments.scratch);
  shared = scratch;
  narrow_gates = reinterpret_cast<bf16*>(scratch + SharedPhases::bytes);
  rows = reinterpret_cast<bf16*>(scratch + SharedPhases::bytes + gate_row_bytes(plan));
}

// Cotangents of the last states, some units of them.
void LstmGradientKernel::start(const Pointers& p, std::int64_t first_unit) const {
  const auto bytes = static_cast<std::size_t>(p_.panel) * sizeof(float);
  const auto begin = [&](float* to, const float* from) {
    for (std::int64_t at = first_unit; at < l().batch * l().hidden; at += l().hidden)
      if (from)
        std::memcpy(to + at, from + at, bytes);
      else
        std::memset(to + at, 0, bytes);
  };
  begin(p.dh, p.dh_last);
  begin(p.dc, p.dc_last);
}

void LstmGradientKernel::pass_cells(const Pointers& p, std::int64_t order, std::int64_t first_unit) const {
  const std::int64_t step = step_at(order), hidden = l().hidden, states = l().batch * hidden;
  const float* c_before = order == 0 ? p.c0 : p.cells + step_at(order - 1) * states;
  for (std::int64_t unit = first_unit; unit < first_unit + p_.panel; unit += lstm_panel)
    loops_.gradient({.samples = l().batch,
                     .gates = p.gates + step * 4 * states + 4 * unit,
                     .gate_stride = 4 * hidden,
                     .c_before = c_before + unit,
                     .c = p.cells + step * states + unit,
                     .dy = p.dy ? p.dy + step * l().dy_step + unit : nullptr,
                     .dh = p.dh + unit,
                     .dc = p.dc + unit,
                     .c_before_stride = hidden,
                     .c_stride = hidden,
                     .dy_stride = l().dy_sample,
                     .dh_stride = hidden,
                     .dc_stride = hidden,
                     .narrow_gates = l().narrow ? p.narrow_gates + step * 4 * states + 4 * unit : nullptr});
}

// What the hidden state before gets from the gates of a step.
void LstmGradientKernel::pass_product(const Pointers& p, std::int64_t order, std::int64_t first_unit) const {
  const std::int64_t offset = step_at(order) * 4 * l().batch * l().hidden;
  const void* right = l().narrow ? static_cast<const void*>(p.narrow_gates + offset)
                                 : static_cast<const void*>(p.gates + offset);
  // Wide, a panel of R is some of its columns; narrow, a panel is packed by itself.
  const std::int64_t step_of_r = l().narrow ? 4 * l().hidden * 2 : 4;
  p_.to_state(p.r + first_unit * step_of_r, right, p.dh + first_unit, static_cast<std::uint64_t>(p_.depths),
              r_offsets_.data(), gate_offsets_.data());
}

// The cells of a unit wait for the product of the step after that gives this unit's state, and for no other:
// both are one phase.
void LstmGradientKernel::run_item(const Pointers& p, std::int64_t phase, std::int64_t item,
                                  void* scratch) const {
  const std::int64_t unit = item * p_.panel, order = l().steps - 1 - phase;
  if (order < -1) return run_after(p, static_cast<After>(phase - l().steps - 1), item, scratch);
  if (phase == 0)
    start(p, unit);
  else
    pass_product(p, order + 1, unit);
  if (order >= 0) pass_cells(p, order, unit);
}

void LstmGradientKernel::run_after(const Pointers& p, After after, std::int64_t item, void* scratch) const {
  const std::int64_t steps = l().steps, states = l().batch * l().hidden;
  const void* const rows = p.rows;
  const auto right = [&](const float* wide) { return l().narrow ? rows : static_cast<const void*>(wide); };
  switch (after) {
    case After::bias: return add_bias_gradient(p, item * p_.panel, static_cast<float*>(scratch));
    case After::dx: return run_product(p, {p_.dx.get(), 0, p.w, p.dx}, item, scratch);
    case After::round_x: return round(p_.x_rows, p.x, 0, steps, p.rows, item);
    case After::dw: return run_product(p, {p_.dw.get(), 0, right(p.x), p.dw}, item, scratch);
    case After::round_y:
      return p_.dr ? round(p_.y_rows, p.y, l().reverse ? 1 : 0, steps - 1, p.rows, item) : void();
    case After::dr: return p_.dr ? add_recurrent_products(p, item, scratch) : void();
    case After::round_state: return p_.dr_first ? round(p_.state_rows, p.h0, 0, 1, p.rows, item) : void();
    case After::dr_first:
      return run_product(p, {p_.dr_first.get(), step_at(0) * 4 * states, right(p.h0), p.dr}, item, scratch);
    case After::count: return;
  }
}

// The rows of some of the steps, as many items as there are.
void LstmGradientKernel::round(const NarrowRows& rows, const float* from, std::int64_t first_step,
                               std::int64_t steps, bf16* to, std::int64_t item) const {
  if (!l().narrow) return;
  const PartRange part = part_range(steps, item, items());
  rows.convert(from, first_step + part.begin, part.end - part.begin,
               to + part.begin * l().batch * rows.length());
}

// Its parts that are an item's. In one piece it packs less.
void LstmGradientKernel::run_product(const Pointers& p, const Product& product, std::int64_t item,
                                     void* scratch) const {
  if (!product.kernel) return;
  const void* gates = l().narrow ? static_cast<const void*>(p.narrow_gates + product.first_gates)
                                 : p.gates + product.first_gates;
  const void* inputs[] = {gates, product.right};
  void* outputs[] = {product.to};
  if (p.alone) return item == 0 ? product.kernel->run({inputs, outputs, scratch}) : void();
  const PartRange parts = part_range(product.kernel->info().parts, item, items());
  for (std::int64_t part = parts.begin; part < parts.end; ++part)
    product.kernel->run_part({inputs, outputs, scratch}, part);
}

void LstmGradientKernel::add_recurrent_products(const Pointers& p, std::int64_t item, void* scratch) const {
  const std::int64_t states = l().batch * l().hidden;
  const std::int64_t later = l().reverse ? 0 : 4 * states, before = l().reverse ? l().y_step : 0;
  if (l().narrow) return run_product(p, {p_.dr.get(), later, p.rows, p.dr}, item, scratch);
  for (std::int64_t i = 0; i < p_.recurrences; ++i)
    run_product(p, {p_.dr.get(), later + i * 4 * states, p.y + before + i * l().y_step, p.dr}, item, scratch);
}

// Sums over all rows in the packed order, then added where ONNX has them: to both halves.
void LstmGradientKernel::add_bias_gradient(const Pointers& p, std::int64_t first_unit, float* scratch) const {
  const std::int64_t hidden = l().hidden, columns = 4 * p_.panel;
  std::fill_n(scratch, columns, 0.0f);
  column_sum_(p.gates + 4 * first_unit, 4 * hidden, l().steps * l().batch, columns, scratch);
  for (std::int64_t unit = 0; unit < p_.panel; ++unit)
    for (std::int64_t gate = 0; gate < 4; ++gate) {
      const float sum = scratch[4 * (unit - unit % lstm_panel) + gate * lstm_panel + unit % lstm_panel];
      const std::int64_t at = gate * hidden + first_unit + unit;
      p.d_bias[at] += sum;
      p.d_bias[4 * hidden + at] += sum;
    }
}

void LstmGradientKernel::run(const Arguments& arguments) const {
  const Pointers p(p_, arguments, true);
  void* rest = static_cast<std::byte*>(arguments.scratch) + shared_bytes(p_);
  // There and back again, as forward.
  for (std::int64_t phase = 0; phase < phases(); ++phase)
    for (std::int64_t i = 0; i < items(); ++i) run_item(p, phase, phase % 2 == 0 ? i : items() - 1 - i, rest);
}

void LstmGradientKernel::begin_shared(const Arguments& arguments, int members) const {
  SharedPhases::begin(arguments.scratch, items(), members);
}

void LstmGradientKernel::run_shared(const Arguments& arguments, int member, void* own_scratch) const {
  const Pointers p(p_, arguments, false);
  void* rest = static_cast<std::byte*>(own_scratch) + shared_bytes(p_);
  SharedPhases::at(p.shared).join(
      member, phases(), [&](std::int64_t phase, std::int64_t item) { run_item(p, phase, item, rest); });
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
  const std::size_t bias = static_cast<std::size_t>(4 * plan->panel) * sizeof(float);
  info.scratch_bytes = LstmGradientKernel::shared_bytes(*plan) + std::max(plan->scratch_of_products, bias);
  info.members = shares_of_step(l, l.hidden / plan->panel);
  info.inputs = 8 + static_cast<std::size_t>(l.has_dy) + static_cast<std::size_t>(l.has_dh) +
                static_cast<std::size_t>(l.has_dc);
  info.outputs = l.wants_dx ? 6 : 5;
  return std::make_unique<LstmGradientKernel>(std::move(info), std::move(*plan));
}

}  // namespace superstep::kernels
