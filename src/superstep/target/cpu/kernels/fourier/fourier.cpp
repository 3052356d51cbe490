#include "superstep/target/cpu/kernels/fourier/fourier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "superstep/target/cpu/kernels/fourier/fourier_lines.h"
#include "superstep/target/cpu/kernels/fourier/fourier_loops.h"

namespace superstep::kernels {

namespace {

constexpr const char* name = "Fourier transform";

// One axis, from x to y.
struct AxisTransform {
  FourierPlan plan;
  FourierBundles bundles;
  ComplexForm x_form, y_form;
  std::int64_t x_element, y_element;  // strides along the axis
  std::int64_t given, results;        // elements of x and y along it
  bool half, inverse;
  float scale;
  std::vector<float> chirp_and_scale;  // of Bluestein's last product

  // Rows that the stages read and write where they lie in the tensors.
  bool reads_in_place() const {
    const bool whole = given == plan.n && !half && plan.chirp.padded == 0 && plan.n > 1;
    const bool form = x_form == ComplexForm::separate || (x_form == ComplexForm::real && !inverse);
    return whole && form && (bundles.side.x == 1 || bundles.side.count == 1) && bundles.width > 1;
  }
  bool writes_in_place() const {
    const bool whole = results == plan.n && plan.chirp.padded == 0 && plan.n > 1;
    return whole && y_form == ComplexForm::separate && (bundles.side.y == 1 || bundles.side.count == 1) &&
           bundles.width > 1;
  }
  // Floats: what is gathered, then two sets of rows that take turns.
  std::int64_t gathered() const { return 2 * plan.n * bundles.width; }
  std::int64_t turn() const { return 2 * plan.rows() * bundles.width; }
  std::int64_t scratch() const { return gathered() + 2 * turn(); }
};

struct ComplexPointers {
  float *re, *im;  // im null: not there, or behind re
};

FourierLines lines_of(const ComplexPointers& p, ComplexForm form, std::int64_t element, std::int64_t line) {
  if (form == ComplexForm::interleaved) return {p.re, p.re + 1, element, line, true};
  return {p.re, form == ComplexForm::real ? nullptr : p.im, element, line, false};
}

// A bundle of lines on its way.
class Bundle {
 public:
  Bundle(const AxisTransform& t, const FourierLoops& loops, float* scratch, std::int64_t lines)
      : t_(t), loops_(loops), lines_(lines) {
    gathered_ = {scratch, scratch + lines, 2 * lines};
    for (std::int64_t i = 0; i < 2; ++i) {
      float* const rows = scratch + t.gathered() + i * t.turn();
      turns_[i] = {rows, rows + t.plan.rows() * lines, lines};
    }
  }

  void run(const ComplexPointers& x, const ComplexPointers& y) {
    const FourierLines to = lines_of(y, t_.y_form, t_.y_element, t_.bundles.side.y);
    const FourierRows from = read(lines_of(x, t_.x_form, t_.x_element, t_.bundles.side.x));
    const bool in_place = t_.writes_in_place();
    const FourierRows result = in_place ? FourierRows{to.re, to.im, t_.y_element} : gathered_;
    transform(sides(from), sides(result));
    if (!in_place) loops_.scatter({to, result, t_.results, lines_});
  }

 private:
  // The inverse is the transform of the numbers with their parts exchanged.
  FourierRows sides(FourierRows rows) const {
    if (t_.inverse) std::swap(rows.re, rows.im);
    return rows;
  }

  FourierRows read(const FourierLines& x) {
    if (t_.reads_in_place()) return {x.re, x.im, t_.x_element};
    loops_.gather({x, gathered_, t_.given, lines_});
    for (std::int64_t row = 0; row < t_.given && !x.im; ++row)
      std::fill_n(gathered_.im + row * gathered_.step, lines_, 0.0f);
    for (std::int64_t row = t_.given; row < t_.plan.n; ++row) fill_row(row);
    return gathered_;
  }

  // Beyond what x has: the conjugate of its mirror image, or zero.
  void fill_row(std::int64_t row) const {
    float *re = gathered_.re + row * gathered_.step, *im = gathered_.im + row * gathered_.step;
    const std::int64_t mirrored = t_.plan.n - row;
    if (!t_.half || mirrored >= t_.given) {
      std::fill_n(re, lines_, 0.0f);
      std::fill_n(im, lines_, 0.0f);
      return;
    }
    std::copy_n(gathered_.re + mirrored * gathered_.step, lines_, re);
    for (std::int64_t i = 0; i < lines_; ++i) im[i] = -gathered_.im[mirrored * gathered_.step + i];
  }

  void transform(const FourierRows& from, const FourierRows& to) {
    if (t_.plan.chirp.padded > 0) return convolve(from, to);
    if (t_.plan.n == 1) {
      const float numbers[] = {t_.scale, 0};
      return loops_.multiply({from, to, numbers, 1, lines_});
    }
    stages(from, to, t_.scale);
  }

  // The first stage reads everything before the last one writes: from and to may be the same.
  void stages(FourierRows from, const FourierRows& to, float scale) {
    for (const FourierStage& stage : t_.plan.stages) {
      const FourierRows next = stage.blocks == 1 ? to : turns_[turn_];
      loops_.pass({&stage, from, next, lines_, scale});
      turn_ = 1 - turn_;
      from = next;
    }
  }

  // Bluestein: times the chirp, convolved with its conjugate, times the chirp.
  void convolve(const FourierRows& from, const FourierRows& to) {
    const Chirp& chirp = t_.plan.chirp;
    const std::int64_t n = t_.plan.n;
    const FourierRows first = turns_[0], second = turns_[1];
    loops_.multiply({from, first, chirp.chirp.data(), n, lines_});
    std::fill_n(first.re + n * lines_, (chirp.padded - n) * lines_, 0.0f);
    std::fill_n(first.im + n * lines_, (chirp.padded - n) * lines_, 0.0f);
    const FourierRows there = convolution_step(first, second, 1.0f);
    loops_.multiply({there, there, chirp.spectrum.data(), chirp.padded, lines_});
    const FourierRows exchanged{there.im, there.re, there.step};
    const FourierRows other = there.re == first.re ? second : first;
    const FourierRows back = convolution_step(exchanged, other, 1.0f);
    loops_.multiply({{back.im, back.re, back.step}, to, t_.chirp_and_scale.data(), n, lines_});
  }

  // All stages, turn by turn between `a` and `b`; gives where the result is. An odd number of them ends in b.
  FourierRows convolution_step(FourierRows a, FourierRows b, float scale) {
    for (const FourierStage& stage : t_.plan.stages) {
      loops_.pass({&stage, a, b, lines_, scale});
      std::swap(a, b);
    }
    return a;
  }

  const AxisTransform& t_;
  const FourierLoops& loops_;
  std::int64_t lines_;
  FourierRows gathered_{}, turns_[2];
  std::size_t turn_ = 0;
};

// Blocks of x that are transformed along all axes, one after the other: from x to y, then within y.
class FourierKernel final : public Kernel {
 public:
  FourierKernel(KernelInfo info, const Fourier& f, std::vector<FourierDimension> blocks,
                std::vector<AxisTransform> axes)
      : Kernel(std::move(info)),
        blocks_(std::move(blocks)),
        axes_(std::move(axes)),
        loops_(fourier_loops()),
        x_slots_(f.x_form == ComplexForm::separate ? 2 : 1),
        y_slots_(f.y_form == ComplexForm::separate ? 2 : 1) {
    info_.parts = std::clamp<std::int64_t>(items(), 1, most_parts);
    for (const AxisTransform& axis : axes_)
      info_.scratch_bytes =
          std::max(info_.scratch_bytes, static_cast<std::size_t>(axis.scratch()) * sizeof(float));
  }

  void run(const Arguments& arguments) const override { run_items(arguments, {0, items()}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_items(arguments, part_range(items(), part, info_.parts));
  }

 private:
  // Bundles of the one axis there is, or blocks.
  std::int64_t items() const { return axes_.size() == 1 ? axes_[0].bundles.count() : count_of(blocks_); }

  void run_items(const Arguments& arguments, PartRange range) const {
    if (axes_.size() == 1) return run_bundles(arguments, 0, {}, range);
    for (std::int64_t block = range.begin; block < range.end; ++block)
      for (std::size_t axis = 0; axis < axes_.size(); ++axis)
        run_bundles(arguments, axis, offset_of(blocks_, block), {0, axes_[axis].bundles.count()});
  }

  void run_bundles(const Arguments& arguments, std::size_t axis, FourierOffset block, PartRange range) const {
    const AxisTransform& t = axes_[axis];
    const FourierBundles& bundles = t.bundles;
    for (std::int64_t number = range.begin; number < range.end; ++number) {
      const FourierOffset other = offset_of(bundles.others, number / bundles.in_a_row());
      const std::int64_t first = number % bundles.in_a_row() * bundles.width;
      const std::int64_t lines = std::min(bundles.width, bundles.side.count - first);
      const ComplexPointers y = at(arguments.outputs, y_slots_, block.y + other.y + first * bundles.side.y);
      const ComplexPointers x =
          axis > 0 ? at(arguments.outputs, y_slots_, block.y + other.x + first * bundles.side.x)
                   : at(arguments.inputs, x_slots_, block.x + other.x + first * bundles.side.x);
      Bundle(t, loops_, static_cast<float*>(arguments.scratch), lines).run(x, y);
    }
  }

  // Inputs are read alone, through pointers that serve both.
  template <class Slots>
  static ComplexPointers at(const Slots& slots, std::size_t count, std::int64_t offset) {
    const auto pointer = [&](std::size_t slot) {
      return static_cast<float*>(const_cast<void*>(static_cast<const void*>(slots[slot]))) + offset;
    };
    return {pointer(0), count > 1 ? pointer(1) : nullptr};
  }

  std::vector<FourierDimension> blocks_;
  std::vector<AxisTransform> axes_;
  const FourierLoops& loops_;
  std::size_t x_slots_, y_slots_;
};

// ---- preparation ------------------------------------------------------------------------------------------

std::string fault_of(const Fourier& f) {
  const std::size_t rank = f.extents.size();
  if (f.x_strides.size() != rank || f.y_strides.size() != rank) return "an axis has no stride";
  if (f.axes.empty()) return "there is no axis to transform";
  for (std::size_t i = 0; i < f.axes.size(); ++i) {
    if (f.axes[i] < 0 || f.axes[i] >= static_cast<int>(rank)) return "there is no such axis";
    if (std::ranges::count(f.axes, f.axes[i]) != 1) return "an axis is transformed twice";
  }
  if (std::ranges::any_of(f.extents, [](std::int64_t extent) { return extent < 1; }))
    return "an extent is not positive";
  const bool cut = f.length != 0 || f.results != 0 || f.half || f.y_form == ComplexForm::real;
  if (cut && f.axes.size() > 1) return "several axes are transformed as they are";
  if (f.y_form == ComplexForm::real && f.results != 0 && f.results != f.length && f.length != 0)
    return "real results are wanted in part";
  return {};
}

// The innermost axis first: what it writes is still in the cache for the next one.
std::vector<int> in_order(const Fourier& f) {
  std::vector<int> axes = f.axes;
  std::ranges::stable_sort(axes, std::less<>(),
                           [&](int axis) { return f.x_strides[static_cast<std::size_t>(axis)]; });
  return axes;
}

bool is_transformed(const Fourier& f, std::size_t axis) {
  return std::ranges::find(f.axes, static_cast<int>(axis)) != f.axes.end();
}

// Dimensions outside of all axes; the others are within a block. A single axis has no blocks.
std::vector<bool> outside(const Fourier& f) {
  std::int64_t largest = 0;
  for (int axis : f.axes) largest = std::max(largest, f.x_strides[static_cast<std::size_t>(axis)]);
  std::vector<bool> result(f.extents.size(), false);
  for (std::size_t axis = 0; axis < result.size(); ++axis)
    result[axis] = f.axes.size() > 1 && !is_transformed(f, axis) && f.x_strides[axis] > largest;
  return result;
}

std::vector<float> scaled(const std::vector<float>& numbers, float scale) {
  std::vector<float> result = numbers;
  for (float& number : result) number *= scale;
  return result;
}

// `number`: first of x to y, then within y.
AxisTransform axis_transform(const Fourier& f, const std::vector<bool>& outer, int axis, std::size_t number,
                             std::int64_t lanes) {
  const auto at = static_cast<std::size_t>(axis);
  const std::vector<std::int64_t>& source = number == 0 ? f.x_strides : f.y_strides;
  const ComplexForm form = number == 0 ? f.x_form : f.y_form;
  std::vector<FourierDimension> lines;
  for (std::size_t i = 0; i < f.extents.size(); ++i)
    if (i != at && !outer[i]) lines.push_back({f.extents[i], source[i], f.y_strides[i]});
  const std::int64_t n = f.length != 0 ? f.length : f.extents[at];
  AxisTransform t{FourierPlan(n),
                  bundles_of(std::move(lines), form == ComplexForm::interleaved ? 2 : 1, lanes, n),
                  form,
                  f.y_form,
                  source[at],
                  f.y_strides[at],
                  std::min(f.half ? n / 2 + 1 : n, f.extents[at]),
                  f.results != 0 ? f.results : n,
                  f.half,
                  f.inverse,
                  number + 1 == f.axes.size() ? f.scale : 1.0f,
                  {}};
  t.chirp_and_scale = scaled(t.plan.chirp.chirp, t.scale);
  return t;
}

double elements_of(const Fourier& f) {
  double count = 1;
  for (std::int64_t extent : f.extents) count *= static_cast<double>(extent);
  return count;
}

const char* name_of(const FourierPlan& plan) { return plan.chirp.padded > 0 ? " by convolution" : ""; }

KernelInfo describe(const Fourier& f, const std::vector<AxisTransform>& axes) {
  std::string lengths;
  for (const AxisTransform& t : axes)
    lengths = fmt::format("{}{}{}{}", t.plan.n, name_of(t.plan), lengths.empty() ? "" : " x ", lengths);
  const double elements = elements_of(f);
  const AxisTransform& last = axes.back();
  const double results = elements / static_cast<double>(f.extents[static_cast<std::size_t>(f.axes[0])]) *
                         static_cast<double>(last.results);
  KernelInfo info;
  info.name = fmt::format("{}{}, {}, {} lines at a time", f.inverse ? "inverse " : "", name, lengths,
                          axes[0].bundles.width);
  info.flops = fourier_flops(f);
  info.bytes = 4 * elements * (f.x_form == ComplexForm::real ? 1 : 2) +
               4 * (f.axes.size() > 1 ? elements : results) * (f.y_form == ComplexForm::real ? 1 : 2);
  info.inputs = f.x_form == ComplexForm::separate ? 2 : 1;
  info.outputs = f.y_form == ComplexForm::separate ? 2 : 1;
  return info;
}

}  // namespace

double fourier_flops(const Fourier& f) {
  double flops = 0;
  for (int axis : f.axes) {
    const auto extent = static_cast<double>(f.extents[static_cast<std::size_t>(axis)]);
    const double n = f.length != 0 ? static_cast<double>(f.length) : extent;
    flops += elements_of(f) / extent * 5 * n * std::log2(std::max(2.0, n));
  }
  return flops;
}

Prepared prepare(const Fourier& f) {
  if (std::string fault = fault_of(f); !fault.empty()) return refuse(name, fault);
  const std::vector<bool> outer = outside(f);
  std::vector<FourierDimension> blocks;
  for (std::size_t i = 0; i < outer.size(); ++i)
    if (outer[i]) blocks.push_back({f.extents[i], f.x_strides[i], f.y_strides[i]});
  std::vector<AxisTransform> axes;
  for (int axis : in_order(f))
    axes.push_back(axis_transform(f, outer, axis, axes.size(), fourier_loops().lanes));
  KernelInfo info = describe(f, axes);
  return std::make_unique<FourierKernel>(std::move(info), f, joined_dimensions(std::move(blocks)),
                                         std::move(axes));
}

}  // namespace superstep::kernels
