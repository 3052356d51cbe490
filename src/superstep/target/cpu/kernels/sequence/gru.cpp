#include "superstep/target/cpu/kernels/sequence/gru.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/target/cpu/kernels/core/shared_phases.h"
#include "superstep/target/cpu/kernels/move/copy.h"
#include "superstep/target/cpu/kernels/product/batch_reduce.h"
#include "superstep/target/cpu/kernels/sequence/gru_loops.h"

namespace superstep::kernels {

namespace {

constexpr std::int64_t chunk_rows = 64;  // of x, in one product: few enough that their gates stay in cache
constexpr std::int64_t panel_gates = 3 * gru_panel, panel_biases = 4 * gru_panel;

class GruKernel final : public Kernel {
 public:
  struct Plan {
    Gru gru;
    std::int64_t chunk;  // steps whose part W x is made at once
    // W x for a whole chunk, for what is left at the end, and R h from the initial state and from y.
    BatchReduceProduct from_x, from_x_rest, from_state, from_y;
  };

  GruKernel(KernelInfo info, const Plan& plan) : Kernel(std::move(info)), p_(plan), cell_(gru_loop()) {}

  void run(const Arguments& arguments) const override;
  void begin_shared(const Arguments& arguments, int members) const override;
  void run_shared(const Arguments& arguments, int member, void* own_scratch) const override;

  static std::size_t scratch_floats(const Plan& plan);

 private:
  struct Pointers {
    const float *x, *w, *r, *given_bias, *h0;
    float *y, *last, *bias, *from_x, *from_h;
    void* shared;
  };

  // The run is a sequence of phases of as many items as there are panels: for every chunk of steps the
  // product of x, and the steps.
  std::int64_t phases() const { return g().steps + (g().steps + p_.chunk - 1) / p_.chunk; }

  const Gru& g() const { return p_.gru; }
  std::int64_t panels() const { return g().hidden / gru_panel; }
  std::int64_t steps_of(std::int64_t chunk) const { return std::min(p_.chunk, g().steps - chunk * p_.chunk); }
  std::int64_t step_at(std::int64_t order) const { return g().reverse ? g().steps - 1 - order : order; }
  // Of a chunk, in memory.
  std::int64_t first_step(std::int64_t chunk) const {
    return g().reverse ? step_at(chunk * p_.chunk + steps_of(chunk) - 1) : chunk * p_.chunk;
  }

  Pointers pointers(const Arguments& arguments) const;
  void begin(const Pointers& p) const;
  void run_item(const Pointers& p, std::int64_t phase, std::int64_t panel) const;
  void run_step(const Pointers& p, std::int64_t order, const float* from_x, std::int64_t panel) const;

  Plan p_;
  GruLoop* cell_;
};

std::size_t GruKernel::scratch_floats(const Plan& plan) {
  const Gru& g = plan.gru;
  return static_cast<std::size_t>(g.hidden * (4 + 3 * plan.chunk * g.batch + 3 * g.batch));
}

GruKernel::Pointers GruKernel::pointers(const Arguments& arguments) const {
  const auto in = [&](std::size_t i) { return static_cast<const float*>(arguments.inputs[i]); };
  const auto out = [&](std::size_t i) { return static_cast<float*>(arguments.outputs[i]); };
  auto* scratch = static_cast<std::byte*>(arguments.scratch);
  auto* bias = reinterpret_cast<float*>(scratch + SharedPhases::bytes);
  float* from_x = bias + 4 * g().hidden;
  float* from_h = from_x + 3 * g().hidden * p_.chunk * g().batch;
  return {in(0), in(1), in(2), in(3), in(4), out(0), out(1), bias, from_x, from_h, scratch};
}

// Biases by panel, those of z and r of both products together.
void GruKernel::begin(const Pointers& p) const {
  const std::int64_t hidden = g().hidden;
  for (std::int64_t unit = 0; unit < hidden; ++unit) {
    float* to = p.bias + unit / gru_panel * panel_biases + unit % gru_panel;
    const float *of_x = p.given_bias + unit, *of_h = of_x + 3 * hidden;
    to[0] = of_x[0] + of_h[0];
    to[gru_panel] = of_x[hidden] + of_h[hidden];
    to[2 * gru_panel] = of_x[2 * hidden];
    to[3 * gru_panel] = of_h[2 * hidden];
  }
}

// A panel of one step. Nothing of it is read by another panel before the next step.
void GruKernel::run_step(const Pointers& p, std::int64_t order, const float* from_x,
                         std::int64_t panel) const {
  const std::int64_t step = step_at(order), before = g().reverse ? step + 1 : step - 1;
  const std::int64_t hidden = g().hidden, unit = panel * gru_panel;
  const bool first = order == 0, multiplies = !first || !g().zero_state;
  const float* state = first ? p.h0 : p.y + before * g().y_step;
  float* sums = p.from_h + panel * g().batch * panel_gates;
  if (multiplies) (first ? p_.from_state : p_.from_y)(p.r + panel * hidden * panel_gates, state, sums);
  float* y = p.y + step * g().y_step + unit;
  cell_({.samples = g().batch,
         .from_x = from_x + panel * panel_gates,
         .from_h = multiplies ? sums : nullptr,
         .x_stride = 3 * hidden,
         .h_stride = panel_gates,
         .bias = p.bias + panel * panel_biases,
         .before = state + unit,
         .after = y,
         .before_stride = first ? hidden : g().y_sample,
         .after_stride = g().y_sample});
  if (order + 1 < g().steps) return;
  for (std::int64_t n = 0; n < g().batch; ++n)
    std::memcpy(p.last + n * hidden + unit, y + n * g().y_sample, gru_panel * sizeof(float));
}

void GruKernel::run_item(const Pointers& p, std::int64_t phase, std::int64_t panel) const {
  const std::int64_t chunk = phase / (p_.chunk + 1), step = phase % (p_.chunk + 1) - 1;
  if (step < 0) {
    const BatchReduceProduct& product = steps_of(chunk) == p_.chunk ? p_.from_x : p_.from_x_rest;
    return product(p.w + panel * g().inputs * panel_gates, p.x + first_step(chunk) * g().batch * g().x_row,
                   p.from_x + panel * panel_gates);
  }
  const std::int64_t order = chunk * p_.chunk + step, place = step_at(order) - first_step(chunk);
  run_step(p, order, p.from_x + place * g().batch * 3 * g().hidden, panel);
}

void GruKernel::run(const Arguments& arguments) const {
  const Pointers p = pointers(arguments);
  begin(p);
  // There and back again: the panels that a step reads last are those that a cache still holds in the next.
  for (std::int64_t phase = 0; phase < phases(); ++phase)
    for (std::int64_t i = 0; i < panels(); ++i) run_item(p, phase, phase % 2 == 0 ? i : panels() - 1 - i);
}

void GruKernel::begin_shared(const Arguments& arguments, int members) const {
  const Pointers p = pointers(arguments);
  begin(p);
  SharedPhases::begin(p.shared, panels(), members);
}

void GruKernel::run_shared(const Arguments& arguments, int member, void*) const {
  const Pointers p = pointers(arguments);
  SharedPhases::at(p.shared).join(member, phases(),
                                  [&](std::int64_t phase, std::int64_t item) { run_item(p, phase, item); });
}

std::expected<GruKernel::Plan, std::string> plan_of(const Gru& g) {
  GruKernel::Plan plan{};
  plan.gru = g;
  const std::int64_t most = std::max<std::int64_t>(1, chunk_rows / g.batch);
  const std::int64_t chunks = (g.steps + most - 1) / most;
  plan.chunk = (g.steps + chunks - 1) / chunks;
  std::string fault;
  const auto product = [&](std::int64_t columns, std::int64_t depth, std::int64_t row, std::int64_t to) {
    ProductShape shape;
    shape.m = shape.a_stride = panel_gates;
    shape.n = columns;
    shape.k = depth;
    shape.b_n_stride = columns == 1 ? std::max(row, depth) : row;
    shape.c_stride = to;
    auto made = BatchReduceProduct::prepare(shape, ProductMaker::libxsmm);
    if (!made) made = BatchReduceProduct::prepare(shape, ProductMaker::portable);
    if (made) return *made;
    fault = made.error();
    return BatchReduceProduct();
  };
  const std::int64_t rest = g.steps % plan.chunk == 0 ? plan.chunk : g.steps % plan.chunk;
  plan.from_x = product(plan.chunk * g.batch, g.inputs, g.x_row, 3 * g.hidden);
  plan.from_x_rest = product(rest * g.batch, g.inputs, g.x_row, 3 * g.hidden);
  plan.from_state = product(g.batch, g.hidden, g.hidden, panel_gates);
  plan.from_y = product(g.batch, g.hidden, g.y_sample, panel_gates);
  if (!fault.empty()) return std::unexpected(fault);
  return plan;
}

}  // namespace

std::string fault_of(const Gru& g) {
  if (g.steps < 1 || g.batch < 1 || g.inputs < 1) return "an extent is not positive";
  if (g.hidden < gru_panel || g.hidden % gru_panel != 0)
    return fmt::format("{} units are no multiple of {}", g.hidden, gru_panel);
  return {};
}

Prepared prepare_gru(const Gru& g) {
  if (std::string fault = fault_of(g); !fault.empty()) return refuse("gru", fault);
  const auto plan = plan_of(g);
  if (!plan) return refuse("gru", plan.error());
  const auto rows = static_cast<double>(g.steps * g.batch);
  const auto gates = static_cast<double>(3 * g.hidden), width = static_cast<double>(g.inputs + g.hidden);
  KernelInfo info;
  info.name =
      fmt::format("gru, {} steps of {} x ({} + {}), weights packed", g.steps, g.batch, g.inputs, g.hidden);
  info.flops = 2 * rows * gates * width;
  info.bytes = 4 * (rows * width + gates * width);
  info.scratch_bytes = SharedPhases::bytes + GruKernel::scratch_floats(*plan) * sizeof(float);
  const double weights = gates * static_cast<double>(g.hidden);
  info.members =
      members_of_phase(4 * weights, 2 * weights * static_cast<double>(g.batch), g.hidden / gru_panel);
  info.inputs = 5;
  info.outputs = 2;
  return std::make_unique<GruKernel>(std::move(info), *plan);
}

Prepared prepare_gru_pack(std::int64_t directions, std::int64_t hidden, std::int64_t columns) {
  const std::int64_t all = 3 * hidden * columns;
  return prepare(StridedCopy{.extents = {directions, hidden / gru_panel, columns, 3, gru_panel},
                             .x_strides = {all, gru_panel * columns, 1, hidden * columns, columns},
                             .y_strides = {all, panel_gates * columns, panel_gates, gru_panel, 1}});
}

}  // namespace superstep::kernels
