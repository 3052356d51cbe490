#include "superstep/machine/ipu/vertex_cycles.h"

#include <algorithm>

#include "superstep/base/integers.h"

namespace superstep::machine::ipu {

std::int64_t elementwise_cycles(const Hardware& hardware, std::int64_t n, std::int64_t vector,
                                std::int64_t cycles_per_vector, std::int64_t fixed, std::int64_t loop) {
  const std::int64_t vectors = ceil_div(ceil_div(n, hardware.workers), vector);
  return 11 + hardware.workers * (fixed + vectors * (cycles_per_vector + loop));
}

std::int64_t fill_cycles(const Hardware& hardware, std::int64_t n, ElementType element) {
  const std::int64_t vector = 8 / bytes_of(element);  // one 64-bit store a cycle
  return 11 + hardware.workers * (16 + ceil_div(ceil_div(n, hardware.workers), vector) + 7);
}

std::int64_t cast_cycles(const Hardware& hardware, std::int64_t n, ElementType from, ElementType to) {
  const std::int64_t vector = 4;
  const std::int64_t loads = ceil_div(vector * bytes_of(from), 8),
                     stores = ceil_div(vector * bytes_of(to), 8);
  const std::int64_t vectors = ceil_div(ceil_div(n, hardware.workers), vector);
  return 11 + hardware.workers * (22 + vectors * std::max(loads, stores));
}

std::int64_t reduce_cycles(const Hardware& hardware, std::int64_t outputs, std::int64_t depth,
                           ElementType partials) {
  const std::int64_t W = hardware.workers, width = 16 / bytes_of(partials);
  constexpr std::int64_t enter = 24, loads = 2, vector = 6;
  // Fewer outputs than a vector: partials of one output lie in a row, and its lanes are added up in the end.
  if (outputs < width) depth = ceil_div(outputs * depth, width);
  const std::int64_t vectors = ceil_div(outputs, width);
  if (vectors >= W) return W * (enter + ceil_div(vectors, W) * (vector + loads * depth));
  // Workers share the depth of an output, and one of them adds up what the others have.
  const std::int64_t share = W / vectors;
  const std::int64_t own = W * (enter + vector + loads * ceil_div(depth, share));
  return share > 1 && depth > share ? own + W * (enter + vector + loads * share)
                                    : W * (enter + vector + loads * depth);
}

std::int64_t reduce_strided_cycles(const Hardware& hardware, std::int64_t outputs, std::int64_t depth,
                                   ElementType partials) {
  const std::int64_t vectors = ceil_div(ceil_div(outputs, 16 / bytes_of(partials)), hardware.workers);
  return hardware.workers * (24 + vectors * (6 + depth));
}

std::int64_t arg_cycles(const Hardware& hardware, std::int64_t outputs, std::int64_t depth) {
  constexpr std::int64_t call = 9, enter = 26, element = 3;
  const std::int64_t W = hardware.workers;
  const std::int64_t shared = outputs * (call + W * (enter + element * ceil_div(depth, W)));
  const std::int64_t own = call + W * ceil_div(outputs, W) * (enter + element * depth);
  return std::min(shared, own);
}

std::int64_t gather_worker_cycles(std::int64_t offsets, std::int64_t row_elements, std::int64_t vector) {
  return 16 + offsets * (19 + 3 * ceil_div(row_elements, vector));
}

bool AmpForm::fast() const {
  return element == ElementType::f16 && (partials == ElementType::f32 || units == 16);
}

namespace {

std::int64_t fast_worker(std::int64_t n, bool zeroing) {
  if (n == 0) return 20 + (zeroing ? 2 : 4);
  if (n == 1) return 31 + (zeroing ? 2 : 4) - 10;
  if (n == 2) return 40 + (zeroing ? 2 : 4) - 10;
  return (zeroing ? 38 : 40) + 4 * (n - 3) - 10;
}

// Cycles to zero one position's partials: 4 for f32, 2 for f16, 8 for f32 with 16 units; half with 4 units.
std::int64_t zero_position(const AmpForm& form) {
  std::int64_t cycles = form.partials == ElementType::f32 ? (form.units == 16 ? 8 : 4) : 2;
  return form.units == 4 ? cycles / 2 : cycles;
}

std::int64_t slow_worker(const AmpForm& form, std::int64_t n, bool zeroing) {
  if (n == 0) return 24;
  const bool half = form.element == ElementType::f16;
  const std::int64_t zero = zeroing ? 2 + zero_position(form) * n : 0;
  const std::int64_t scale = form.units == 4 ? 2 : 1;
  if (n == 1) return (half ? 39 : 47) + zero;
  if (n == 2) return (half ? 40 : 46) + zero;
  return (half ? 41 : 46) + zero + (half ? 4 : 8) / scale * (n - 3);
}

}  // namespace

std::int64_t amp_1x1_worker_cycles(const AmpForm& form, std::int64_t n, bool zeroing) {
  return form.fast() ? fast_worker(n, zeroing) : slow_worker(form, n, zeroing);
}

std::int64_t amp_1x1_cycles(const Hardware& hardware, const AmpForm& form, const AmpWork& work,
                            std::int64_t positions) {
  const std::int64_t W = hardware.workers;
  const std::int64_t slowest = ceil_div(positions, W), fastest = positions / W;
  const auto inner = [&](bool zeroing) {
    const std::int64_t slow = amp_1x1_worker_cycles(form, slowest, zeroing);
    const std::int64_t fast = fastest ? amp_1x1_worker_cycles(form, fastest, zeroing) : 0;
    return std::max(W * slow, W * fast + 14);
  };
  const std::int64_t weight_bytes = work.in_channels_per_group * bytes_of(form.element);
  const std::int64_t load = ceil_div(form.units * weight_bytes, hardware.coefficient_load_rate);
  const std::int64_t passes = ceil_div(work.out_channels_per_group, form.units);
  const auto groups = [&](std::int64_t fixed, std::int64_t inner_cycles) {
    return fixed + work.out_groups * (19 + passes * (fixed == 16 ? 6 : 7) + passes * (load + inner_cycles));
  };
  const std::int64_t unpack = form.fast() ? W * (10 + 2 * (work.in_groups * work.conv_groups - 1)) : 0;
  return 50 + unpack +
         work.conv_groups * (12 + (work.in_groups - 1) * groups(16, inner(false)) + groups(11, inner(true)));
}

namespace {

std::int64_t row_cycles(bool half, std::int64_t n) {
  if (n == 0) return 17;
  if (n == 1) return half ? 29 : 33;
  if (n == 2) return half ? 33 : 44;
  return half ? 34 + 4 * (n - 3) : 45 + 8 * (n - 3);
}

// Rows are cut where the work divides evenly, so the slowest worker has its share of all positions in as many
// pieces as rows it touches.
std::int64_t nx1_worker(const AmpForm& form, const AmpWindow& window, std::int64_t positions) {
  const bool half = form.element == ElementType::f16;
  std::int64_t cycles = 17 + (form.partials == ElementType::f16 ? 1 : 0) - 6;
  std::int64_t left = positions;
  for (; left > window.row_positions; left -= window.row_positions)
    cycles += row_cycles(half, window.row_positions);
  return cycles + row_cycles(half, left);
}

}  // namespace

std::int64_t amp_nx1_cycles(const Hardware& hardware, const AmpForm& form, const AmpWork& work,
                            const AmpWindow& window) {
  const std::int64_t W = hardware.workers;
  const std::int64_t rate = window.kernel_height == 4
                                ? std::min<std::int64_t>(8, hardware.coefficient_load_rate)
                                : hardware.coefficient_load_rate;
  const std::int64_t weight_bytes =
      work.in_channels_per_group * window.kernel_height * bytes_of(form.element);
  const std::int64_t load = ceil_div(form.units * weight_bytes, rate);
  const std::int64_t height = window.kernel_height;
  const std::int64_t set_up = height == 4 ? 60 : height == 2 ? 46 : height == 1 ? 15 : 20 * height;
  const std::int64_t positions = window.rows * window.row_positions;
  const std::int64_t slowest = W * nx1_worker(form, window, ceil_div(positions, W));
  const std::int64_t fastest = positions < W ? 0 : W * nx1_worker(form, window, positions / W);
  const std::int64_t passes = ceil_div(work.out_channels_per_group, form.units);
  const std::int64_t one = passes * (load + set_up + 3 + std::max(slowest, fastest + 9));
  const std::int64_t outer = ceil_div(window.kernel_outer, height);
  const std::int64_t inner = outer * (14 + window.kernel_inner * (12 + one));
  const bool half_partials = form.partials == ElementType::f16;
  const std::int64_t vector = half_partials ? hardware.vector_f16 : hardware.vector_f32;
  const std::int64_t outputs = ceil_div(window.rows * window.row_positions * work.out_channels_per_group, W);
  const std::int64_t zeroing =
      W * (ceil_div(outputs, vector) + 14 - (half_partials ? 10 : 9)) * work.out_groups * work.conv_groups;
  const std::int64_t Gc = work.conv_groups, Go = work.out_groups, Gi = work.in_groups;
  // 103 in sdk-release-2.0 of PopLibs, 109 in 3.4.
  return 103 + 6 * W + W * (half_partials ? 10 : 9) + Gc * (17 * Go + 6 * (Go - 1) + 1) + 6 * (Gc - 1) + 1 +
         Gc * (16 + Gi * (14 + Go * (14 + inner))) + zeroing;
}

std::int64_t horizontal_dot_cycles(ElementType element, ElementType partials, std::int64_t size) {
  if (element != ElementType::f16) return size % 2 == 0 ? 7 + size : 7 + 2 * size;
  if (partials == ElementType::f32) return size % 4 == 0 ? 7 + size / 4 : 7 + size;
  return size % 4 == 0 ? 11 + size / 4 : 12 + size;
}

std::int64_t horizontal_mac_cycles(const Hardware& hardware, ElementType element, ElementType partials,
                                   const MacWork& work) {
  const std::int64_t W = hardware.workers;
  const std::int64_t n = ceil_div(work.rows * work.row_positions, W);
  const std::int64_t parts =
      std::max<std::int64_t>(1, ceil_div(n, std::max<std::int64_t>(1, work.row_positions)));
  const bool half_partials = partials == ElementType::f16;
  const std::int64_t channels = half_partials ? ceil_div(work.out_channels, 2) : work.out_channels;
  const std::int64_t dot = horizontal_dot_cycles(element, partials, work.in_channels);
  const std::int64_t partition = 19 * parts + n * (7 + channels * dot);
  const std::int64_t worker = 16 + work.kernel_positions * (16 + partition);
  return (element == ElementType::f16 ? 63 : 58) + W * (half_partials ? 10 : 9) +
         work.conv_groups * (23 + work.in_groups * (15 + work.out_groups * (10 + W * worker)));
}

std::int64_t vertical_mac_cycles(const Hardware& hardware, std::int64_t conv_groups, std::int64_t in_groups,
                                 std::int64_t outputs, std::int64_t kernel_rows,
                                 std::int64_t kernel_columns) {
  const std::int64_t W = hardware.workers;
  const std::int64_t share = ceil_div(outputs, W);
  const std::int64_t worker = 6 + share * kernel_rows * (20 + 2 * (kernel_columns - 1));
  const std::int64_t sum = (9 + 2 * (W - 1)) * share / 4;
  // The estimator of PopLibs (MIT licence): entry, then each group's zeroing, loops and sum over the workers.
  return 100 + conv_groups * (4 + outputs + 32 + in_groups * (24 + W * worker) + 10 + sum);
}

namespace {

// Of a row of n output positions: the first of a window's sub-kernels zeroes the partial sums on the way.
std::int64_t slic_row(const SlicWork& work, std::int64_t n, bool zeroing, bool at_least) {
  const std::int64_t in_float = work.partials == ElementType::f32 ? 1 : 0;
  if (work.stride > 1) return (n < 3 ? 10 + (n == 1 ? 3 : 5) : 15 + 2 * (n - 3)) - in_float;
  constexpr std::int64_t looped = 5;  // from so many on the steady loop runs
  if (n >= looped) return 10 + n - in_float;
  const std::int64_t cycles = zeroing || n == 1 ? 13 + (n > 1 ? n : 0) : 17 + n;
  return (at_least ? std::min(cycles, 10 + looped) : cycles) - in_float;
}

// The slowest worker: its share of all positions, in pieces of a row. 17 to enter, 10 or 11 a piece.
std::int64_t slic_worker(const SlicWork& work, std::int64_t positions, bool zeroing, bool at_least) {
  const std::int64_t passes = work.units >= 16 ? 1 : 2;  // over the inputs
  const std::int64_t piece = 10 + (zeroing ? 1 : 0) + (work.partials == ElementType::f32 ? 3 : 0);
  std::int64_t cycles = 17;
  for (std::int64_t left = positions; left > 0; left -= work.row_positions)
    cycles += piece + passes * slic_row(work, std::min(left, work.row_positions), zeroing, at_least);
  return cycles;
}

std::int64_t slic(const Hardware& hardware, const SlicWork& work, bool at_least) {
  const std::int64_t W = hardware.workers, G = work.conv_groups;
  const std::int64_t sub_kernels = work.kernel_rows * ceil_div(work.kernel_columns, std::int64_t{4});
  const std::int64_t positions = ceil_div(work.rows * work.row_positions, W);
  const auto inner = [&](bool zeroing) { return W * slic_worker(work, positions, zeroing, at_least); };
  // Weights of several groups are put in order by the workers.
  const std::int64_t load = 16 + (work.channels == 4 ? 18 : 21 + W * (work.channels == 1 ? 10 : 12));
  return 28 + 15 * G + 6 * (G - 1) + 1 + (load + 19) * sub_kernels + 6 * (sub_kernels - 1) + 1 +
         G * (inner(true) + (sub_kernels - 1) * inner(false));
}

}  // namespace

std::int64_t slic_cycles(const Hardware& hardware, const SlicWork& work) {
  return slic(hardware, work, false);
}

std::int64_t least_slic_cycles(const Hardware& hardware, const SlicWork& work) {
  return slic(hardware, work, true);
}

std::int64_t outer_product_cycles(const Hardware& hardware, std::int64_t positions, std::int64_t channels,
                                  ElementType element) {
  const std::int64_t vectors = ceil_div(channels, hardware.vector_width(element));
  return 11 + hardware.workers * (30 + ceil_div(positions, hardware.workers) * (10 + 2 * vectors));
}

std::int64_t cholesky_worker_cycles(std::int64_t n) {
  return 1 + 11 * n + 18 * n * (n + 1) / 2 + 5 * n * (n + 1) * (n - 1) / 6;
}

std::int64_t triangular_inverse_worker_cycles(std::int64_t n) {
  return 28 + 63 * n + 17 * n * (n - 1) / 2 + 6 * n * (n + 1) * (n - 1) / 6;
}

}  // namespace superstep::machine::ipu
