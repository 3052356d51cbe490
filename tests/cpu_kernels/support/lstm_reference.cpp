#include "tests/cpu_kernels/support/lstm_reference.h"

#include <cmath>

namespace superstep::kernels {

namespace {

std::size_t size_of(std::int64_t count) { return static_cast<std::size_t>(count); }
double& at(Numbers& v, std::int64_t i) { return v[static_cast<std::size_t>(i)]; }
double at(const Numbers& v, std::int64_t i) { return v[static_cast<std::size_t>(i)]; }
double sigmoid(double v) { return 1 / (1 + std::exp(-v)); }

std::int64_t step_at(const Lstm& l, std::int64_t order) { return l.reverse ? l.steps - 1 - order : order; }

// Where the states that a step starts from lie: those of the step before, or the initial ones.
struct Before {
  const Numbers *h, *c;
  std::int64_t offset;  // of the sample
};
Before before(const Lstm& l, const LstmInputs& in, const LstmOutputs& out, std::int64_t order,
              std::int64_t n) {
  if (order == 0) return {&in.h0, &in.c0, n * l.hidden};
  return {&out.y, &out.cells, (step_at(l, order - 1) * l.batch + n) * l.hidden};
}

}  // namespace

LstmOutputs reference_lstm(const Lstm& l, const LstmInputs& in) {
  const std::int64_t rows = l.steps * l.batch, h = l.hidden;
  LstmOutputs out{
      Numbers(size_of(rows * h)), Numbers(size_of(rows * h)), Numbers(size_of(rows * 4 * h)), {}, {}};
  for (std::int64_t order = 0; order < l.steps; ++order)
    for (std::int64_t n = 0; n < l.batch; ++n) {
      const std::int64_t row = step_at(l, order) * l.batch + n;
      const Before from = before(l, in, out, order, n);
      for (std::int64_t g = 0; g < 4 * h; ++g) {
        double sum = at(in.bias, g) + at(in.bias, 4 * h + g);
        for (std::int64_t i = 0; i < l.inputs; ++i)
          sum += at(in.w, g * l.inputs + i) * at(in.x, row * l.inputs + i);
        for (std::int64_t i = 0; i < h; ++i) sum += at(in.r, g * h + i) * at(*from.h, from.offset + i);
        at(out.gates, row * 4 * h + g) = g < 3 * h ? sigmoid(sum) : std::tanh(sum);
      }
      const auto gate = [&](std::int64_t g, std::int64_t u) { return at(out.gates, (row * 4 + g) * h + u); };
      for (std::int64_t u = 0; u < h; ++u) {
        const double c = gate(2, u) * at(*from.c, from.offset + u) + gate(0, u) * gate(3, u);
        at(out.cells, row * h + u) = c;
        at(out.y, row * h + u) = gate(1, u) * std::tanh(c);
      }
    }
  const auto last = step_at(l, l.steps - 1) * l.batch * h;
  out.last_h.assign(out.y.begin() + last, out.y.begin() + last + l.batch * h);
  out.last_c.assign(out.cells.begin() + last, out.cells.begin() + last + l.batch * h);
  return out;
}

LstmGradients reference_lstm_gradient(const Lstm& l, const LstmInputs& in, const LstmOutputs& out,
                                      const LstmCotangents& given) {
  const std::int64_t h = l.hidden;
  LstmGradients d{Numbers(in.x.size()),
                  Numbers(in.w.size()),
                  Numbers(in.r.size()),
                  Numbers(in.bias.size()),
                  given.dh,
                  given.dc};
  d.dh0.resize(in.h0.size());
  d.dc0.resize(in.c0.size());
  Numbers gates(size_of(4 * h));
  for (std::int64_t order = l.steps; order-- > 0;)
    for (std::int64_t n = 0; n < l.batch; ++n) {
      const std::int64_t row = step_at(l, order) * l.batch + n;
      const Before from = before(l, in, out, order, n);
      for (std::int64_t u = 0; u < h; ++u) {
        const auto gate = [&](std::int64_t g) { return at(out.gates, (row * 4 + g) * h + u); };
        const double i = gate(0), o = gate(1), f = gate(2), g = gate(3),
                     t = std::tanh(at(out.cells, row * h + u));
        const double dh = at(d.dh0, n * h + u) + (given.dy.empty() ? 0 : at(given.dy, row * h + u));
        const double dc = at(d.dc0, n * h + u) + dh * o * (1 - t * t);
        at(gates, u) = dc * g * i * (1 - i);
        at(gates, h + u) = dh * t * o * (1 - o);
        at(gates, 2 * h + u) = dc * at(*from.c, from.offset + u) * f * (1 - f);
        at(gates, 3 * h + u) = dc * i * (1 - g * g);
        at(d.dc0, n * h + u) = dc * f;
      }
      for (std::int64_t u = 0; u < h; ++u) at(d.dh0, n * h + u) = 0;
      for (std::int64_t g = 0; g < 4 * h; ++g) {
        const double gradient = at(gates, g);
        at(d.dbias, g) += gradient;
        at(d.dbias, 4 * h + g) += gradient;
        for (std::int64_t i = 0; i < l.inputs; ++i) {
          at(d.dw, g * l.inputs + i) += gradient * at(in.x, row * l.inputs + i);
          at(d.dx, row * l.inputs + i) += gradient * at(in.w, g * l.inputs + i);
        }
        for (std::int64_t u = 0; u < h; ++u) {
          at(d.dr, g * h + u) += gradient * at(*from.h, from.offset + u);
          at(d.dh0, n * h + u) += gradient * at(in.r, g * h + u);
        }
      }
    }
  return d;
}

}  // namespace superstep::kernels
