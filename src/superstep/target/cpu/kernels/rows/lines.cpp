#include "superstep/target/cpu/kernels/rows/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "superstep/target/cpu/kernels/rows/lines_loops.h"

namespace superstep::kernels {

namespace {

using Axis = Lines::Axis;

constexpr std::int64_t undivided_elements = 8 * 1024;  // fewer are not worth another thread
constexpr std::int64_t lines_of_a_part = 8;  // that run side by side: each waits for its own last addition

// The largest strides of x first; the last axis is that of the bundles.
std::vector<Axis> ordered(std::vector<Axis> axes) {
  std::erase_if(axes, [](const Axis& axis) { return axis.extent == 1; });
  std::ranges::stable_sort(axes, [](const Axis& a, const Axis& b) { return std::abs(a.x) > std::abs(b.x); });
  if (axes.empty()) axes.emplace_back();
  return axes;
}

std::int64_t parts_of(std::int64_t lines) {
  const bool many = lines >= 2 * lines_of_a_part;
  return std::clamp<std::int64_t>(many ? lines / lines_of_a_part : lines, 1, most_parts);
}

template <class Specification>
class LinesKernel final : public Kernel {
 public:
  LinesKernel(KernelInfo info, Specification specification, std::int64_t result_size)
      : Kernel(std::move(info)),
        specification_(std::move(specification)),
        run_bundle_(run_lines(specification_)),
        x_size_(static_cast<std::int64_t>(size_in_bytes(lines().type))),
        y_size_(result_size) {
    specification_.lines.axes = ordered(lines().axes);
    double elements = static_cast<double>(lines().length);
    for (const Axis& axis : lines().axes) elements *= static_cast<double>(axis.extent);
    if (elements > undivided_elements) info_.parts = parts_of(lines().axes[0].extent);
  }

  void run(const Arguments& arguments) const override { walk(arguments, {0, lines().axes[0].extent}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    walk(arguments, part_range(lines().axes[0].extent, part, info_.parts));
  }

 private:
  const Lines& lines() const { return specification_.lines; }

  void walk(const Arguments& arguments, PartRange range) const {
    LineBundle bundle{arguments.inputs[0], arguments.outputs[0],
                      arguments.outputs.size() > 1 ? arguments.outputs[1] : nullptr, arguments.scratch,
                      lines().axes[0]};
    move(bundle, bundle.across, range.begin);
    bundle.across.extent = range.end - range.begin;
    walk_from(0, bundle);
  }

  void move(LineBundle& bundle, const Axis& axis, std::int64_t count) const {
    bundle.x = static_cast<const std::byte*>(bundle.x) + axis.x * count * x_size_;
    bundle.y = static_cast<std::byte*>(bundle.y) + axis.y * count * y_size_;
    if (bundle.z) bundle.z = static_cast<std::int64_t*>(bundle.z) + axis.z * count;
  }

  // `across` is the axis at this depth.
  void walk_from(std::size_t depth, LineBundle bundle) const {
    if (bundle.across.extent == 0) return;
    if (depth + 1 == lines().axes.size()) return run_bundle_(specification_, bundle);
    const Axis axis = bundle.across;
    for (std::int64_t i = 0; i < axis.extent; ++i, move(bundle, axis, 1)) {
      bundle.across = lines().axes[depth + 1];
      walk_from(depth + 1, bundle);
    }
  }

  Specification specification_;
  RunLines<Specification> run_bundle_;
  std::int64_t x_size_, y_size_;
};

std::string fault_of(const Lines& l) {
  for (const Axis& axis : l.axes)
    if (axis.extent < 0) return "an extent is negative";
  if (l.length < 0) return "an extent is negative";
  if (!run_lines(RunningSum{.lines = l})) return fmt::format("elements of {}", name_of(l.type));
  return {};
}

KernelInfo describe(const Lines& l, const char* name, double results, double result_bytes) {
  double lines = 1;
  for (const Axis& axis : l.axes) lines *= static_cast<double>(axis.extent);
  const double elements = lines * static_cast<double>(l.length);
  return {.name = fmt::format("{}, {:.0f} lines of {}", name, lines, l.length),
          .flops = elements,
          .bytes = elements * static_cast<double>(size_in_bytes(l.type)) + lines * results * result_bytes,
          .inputs = 1,
          .outputs = 1};
}

}  // namespace

Prepared prepare(const RunningSum& sum) {
  if (std::string fault = fault_of(sum.lines); !fault.empty()) return refuse("running sum", fault);
  const auto size = static_cast<std::int64_t>(size_in_bytes(sum.lines.type));
  return std::make_unique<LinesKernel<RunningSum>>(
      describe(sum.lines, "running sum", static_cast<double>(sum.lines.length), static_cast<double>(size)),
      sum, size);
}

Prepared prepare(const ExtremePlace& place) {
  if (std::string fault = fault_of(place.lines); !fault.empty()) return refuse("place of an extreme", fault);
  if (place.lines.length == 0) return refuse("place of an extreme", "lines are empty");
  if (place.lines.length > std::numeric_limits<std::int32_t>::max())
    return refuse("place of an extreme", "places do not fit 32 bits");
  return std::make_unique<LinesKernel<ExtremePlace>>(describe(place.lines, "place of an extreme", 1, 8),
                                                     place, 8);
}

Prepared prepare(const ExtremeElements& e) {
  if (std::string fault = fault_of(e.lines); !fault.empty()) return refuse("extreme elements", fault);
  if (e.count < 0 || e.count > e.lines.length) return refuse("extreme elements", "more than a line has");
  const std::size_t size = size_in_bytes(e.lines.type);
  KernelInfo info =
      describe(e.lines, "extreme elements", static_cast<double>(e.count), 8.0 + static_cast<double>(size));
  info.outputs = 2;
  info.scratch_bytes = static_cast<std::size_t>(e.lines.length) * 16;
  return std::make_unique<LinesKernel<ExtremeElements>>(std::move(info), e, static_cast<std::int64_t>(size));
}

}  // namespace superstep::kernels
