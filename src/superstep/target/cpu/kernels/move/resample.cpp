#include "superstep/target/cpu/kernels/move/resample.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/move/resample.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"
#include "superstep/target/cpu/kernels/move/resample_loops.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr auto width = static_cast<std::int64_t>(lanes);

HWY_INLINE V sum_at(const WeightedLines& l, std::int64_t i, std::size_t n) {
  V sum = hn::Mul(constant(l.weights[0]), load_first(l.x[0] + i, n));
  for (std::int64_t k = 1; k < l.count; ++k)
    sum = hn::MulAdd(constant(l.weights[k]), load_first(l.x[k] + i, n), sum);
  return sum;
}

void two_lines(const WeightedLines& l) {
  const V a = constant(l.weights[0]), b = constant(l.weights[1]);
  const float *x = l.x[0], *z = l.x[1];
  std::int64_t i = 0;
  for (; i + width <= l.length; i += width)
    store(hn::MulAdd(a, load(x + i), hn::Mul(b, load(z + i))), l.y + i);
  if (i < l.length) {
    const auto n = static_cast<std::size_t>(l.length - i);
    store_first(hn::MulAdd(a, load_first(x + i, n), hn::Mul(b, load_first(z + i, n))), l.y + i, n);
  }
}

void weighted_sum(const WeightedLines& l) {
  if (l.count == 2) return two_lines(l);
  std::int64_t i = 0;
  for (; i + width <= l.length; i += width) store(sum_at(l, i, lanes), l.y + i);
  if (i < l.length) {
    const auto n = static_cast<std::size_t>(l.length - i);
    store_first(sum_at(l, i, n), l.y + i, n);
  }
}

WeightedSum* weighted_sum_loop() { return weighted_sum; }

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(weighted_sum_loop);

WeightedSum* weighted_sums() { return SUPERSTEP_VECTOR_FUNCTION(weighted_sum_loop)(); }

namespace {

constexpr std::int64_t most_taps = 64;

// A pass with its geometry: [outer][inputs][inner] -> [outer][outputs][inner].
struct PlannedPass {
  std::int64_t outer, inputs, outputs, inner;
  std::vector<std::vector<ResampleTap>> taps;
  std::int64_t elements() const { return outer * outputs * inner; }
};

class ResampleKernel final : public Kernel {
 public:
  ResampleKernel(KernelInfo info, std::vector<PlannedPass> passes, std::int64_t stage)
      : Kernel(std::move(info)), passes_(std::move(passes)), stage_(stage), sum_(weighted_sums()) {
    info_.parts = std::clamp<std::int64_t>(rows(), 1, most_parts);
  }

  void run(const Arguments& arguments) const override { run_rows(arguments, {0, rows()}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_rows(arguments, part_range(rows(), part, info_.parts));
  }

 private:
  // Rows of the result can be made apart where two passes go along rows and within them, in either order. A
  // single row, and rows of one element, can be taken for either: then it is the second.
  bool rows_within() const {  // rows first
    return passes_.size() == 2 && !rows_last() && passes_[0].outer == 1 &&
           passes_[1].outer == passes_[0].outputs;
  }
  bool rows_last() const {
    return passes_.size() == 2 && passes_[1].outer == 1 && passes_[0].outer == passes_[1].inputs;
  }
  std::int64_t rows() const {
    if (rows_last()) return passes_[1].outputs;
    return passes_.size() == 1 || rows_within() ? passes_[0].outer * passes_[0].outputs : 1;
  }

  // The lines of a pass that a range of rows takes.
  PartRange lines_for(std::size_t i, PartRange rows) const {
    const PlannedPass& pass = passes_[i];
    const std::int64_t lines = pass.outer * pass.outputs;
    if (rows.begin >= rows.end) return {0, 0};
    if (passes_.size() == 1) return rows;
    if (rows_within()) return i == 0 ? rows : PartRange{rows.begin * pass.outputs, rows.end * pass.outputs};
    if (!rows_last()) return {0, lines};
    if (i == 1) return rows;
    PartRange read{passes_[1].inputs, 0};
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      for (const ResampleTap& tap : passes_[1].taps[static_cast<std::size_t>(row)])
        read = {std::min(read.begin, tap.position), std::max(read.end, tap.position + 1)};
    return {read.begin * pass.outputs, read.end * pass.outputs};
  }

  void run_rows(const Arguments& arguments, PartRange rows) const {
    const auto* from = static_cast<const float*>(arguments.inputs[0]);
    auto* scratch = static_cast<float*>(arguments.scratch);
    for (std::size_t i = 0; i < passes_.size(); ++i) {
      const bool last = i + 1 == passes_.size();
      float* to = last ? static_cast<float*>(arguments.outputs[0])
                       : scratch + static_cast<std::int64_t>(i % 2) * stage_;
      run_pass(passes_[i], from, to, lines_for(i, rows));
      from = to;
    }
  }

  // A line is [inner] elements of the result.
  void run_pass(const PlannedPass& pass, const float* x, float* y, PartRange range) const {
    const float* lines[most_taps];
    float weights[most_taps];
    for (std::int64_t line = range.begin; line < range.end; ++line) {
      const auto& taps = pass.taps[static_cast<std::size_t>(line % pass.outputs)];
      const float* source = x + line / pass.outputs * pass.inputs * pass.inner;
      for (std::size_t k = 0; k < taps.size(); ++k) {
        lines[k] = source + taps[k].position * pass.inner;
        weights[k] = taps[k].weight;
      }
      float* target = y + line * pass.inner;
      if (taps.empty())
        std::fill_n(target, pass.inner, 0.0f);
      else
        sum_({lines, weights, static_cast<std::int64_t>(taps.size()), pass.inner, target});
    }
  }

  std::vector<PlannedPass> passes_;
  std::int64_t stage_;  // elements of a stage between passes
  WeightedSum* sum_;
};

std::string fault_of(const ResamplePass& pass, const std::vector<std::int64_t>& extents) {
  if (pass.axis < 0 || pass.axis >= static_cast<int>(extents.size())) return "there is no such axis";
  for (const auto& taps : pass.taps) {
    if (static_cast<std::int64_t>(taps.size()) > most_taps)
      return "more than 64 elements are joined into one";
    for (const ResampleTap& tap : taps)
      if (tap.position < 0 || tap.position >= extents[static_cast<std::size_t>(pass.axis)])
        return "a position lies outside";
  }
  return {};
}

}  // namespace

Prepared prepare(const Resample& resample) {
  std::vector<std::int64_t> extents = resample.extents;
  std::vector<PlannedPass> passes;
  std::int64_t stage = 0;
  KernelInfo info;
  for (const ResamplePass& pass : resample.passes) {
    if (std::string fault = fault_of(pass, extents); !fault.empty()) return refuse("resampling", fault);
    const auto axis = static_cast<std::size_t>(pass.axis);
    const auto product = [](auto begin, auto end) {
      return std::accumulate(begin, end, std::int64_t{1}, std::multiplies<>());
    };
    const std::int64_t outer = product(extents.begin(), extents.begin() + pass.axis);
    const std::int64_t inner = product(extents.begin() + pass.axis + 1, extents.end());
    const auto outputs = static_cast<std::int64_t>(pass.taps.size());
    passes.push_back({outer, extents[axis], outputs, inner, pass.taps});
    info.bytes += 4 * static_cast<double>(outer * inner * (extents[axis] + outputs));
    for (const auto& taps : pass.taps)
      info.flops += 2 * static_cast<double>(taps.size() * static_cast<std::size_t>(outer * inner));
    extents[axis] = outputs;
    if (passes.size() < resample.passes.size()) stage = std::max(stage, passes.back().elements());
  }
  if (passes.empty()) return refuse("resampling", "there is nothing to resample");
  if (passes.size() > 2) return prepare_by_rows(resample);
  info.name = fmt::format("resampling along {} {}", passes.size(), passes.size() == 1 ? "axis" : "axes");
  info.scratch_bytes = static_cast<std::size_t>(2 * stage) * sizeof(float);
  info.inputs = info.outputs = 1;
  return std::make_unique<ResampleKernel>(std::move(info), std::move(passes), stage);
}

}  // namespace superstep::kernels
#endif
