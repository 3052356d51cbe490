// Strained crystals with their patterns, and how good a predicted crystal is: by its pattern alone, and
// beside the true one, of which a pattern does not tell global phase, place and twin.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "superstep/baseline/ptychography/phase_alignment.h"
#include "superstep/baseline/ptychography/phase_retrieval.h"
#include "superstep/physics/fft.h"
#include "superstep/physics/stream_blocks.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/table.h"
#include "superstep/workload/xray/autophasenn/autophasenn.h"

namespace superstep::workload {
namespace {

constexpr std::int64_t moderate_side = 32;  // voxels of a pattern: larger ones take the retrieval minutes

std::int64_t pattern_side(const Fields& fields) { return fields.at("diff").shape()[1]; }

Shape grid_shape(std::int64_t side) { return {side, side, side}; }

// value(z, y, x) in the middle half of a grid along every axis, zero around it.
template <class Value>
CrystalGrid placed(std::int64_t half, Value value) {
  const std::int64_t side = 2 * half, first = half / 2;
  CrystalGrid grid(static_cast<std::size_t>(side * side * side));
  for (std::int64_t z = 0; z < half; ++z)
    for (std::int64_t y = 0; y < half; ++y)
      for (std::int64_t x = 0; x < half; ++x)
        grid[static_cast<std::size_t>(((first + z) * side + first + y) * side + first + x)] = value(z, y, x);
  return grid;
}

std::span<const float> measured_pattern(const Fields& fields, std::int64_t index) {
  const std::int64_t side = pattern_side(fields), voxels = side * side * side;
  return fields.at("diff").as<float>().subspan(static_cast<std::size_t>(index * voxels),
                                               static_cast<std::size_t>(voxels));
}

// The magnitude of the far field, divided by its largest, frequency zero in the middle.
std::vector<float> pattern_of(CrystalGrid grid, std::int64_t side) {
  const Shape shape = grid_shape(side);
  data::thread_fft<float>(shape).forward(grid);
  float largest = 0;
  for (const auto& value : grid) largest = std::max(largest, std::abs(value));
  const std::vector<std::size_t> targets = data::fft_shift_targets(shape);
  std::vector<float> pattern(grid.size());
  for (std::size_t i = 0; i < grid.size(); ++i)
    pattern[targets[i]] = largest > 0 ? std::abs(grid[i]) / largest : 0.0f;
  return pattern;
}

double mean_distance_of(std::span<const float> found, std::span<const float> measured) {
  double sum = 0;
  for (std::size_t i = 0; i < found.size(); ++i) sum += std::abs(double{found[i]} - measured[i]);
  return sum / static_cast<double>(found.size());
}

double chi2_of(std::span<const float> found, std::span<const float> measured) {
  double both = 0, own = 0, other = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    both += double{found[i]} * measured[i];
    own += double{found[i]} * found[i];
    other += double{measured[i]} * measured[i];
  }
  return own > 0 ? 1 - both * both / (own * other) : 1;
}

// The mean over the crystals of what `crystal(index)` misses of its pattern.
template <class Crystal>
double mean_error(const TableSamples& samples, std::span<const std::int64_t> indices, Crystal crystal) {
  const std::int64_t side = pattern_side(samples.fields);
  std::vector<double> errors(indices.size());
  samples.pool.parallel_for(static_cast<std::int64_t>(indices.size()), [&](std::int64_t item, int) {
    data::throw_if_interrupted();
    const std::int64_t index = indices[static_cast<std::size_t>(item)];
    errors[static_cast<std::size_t>(item)] =
        mean_distance_of(pattern_of(crystal(index), side), measured_pattern(samples.fields, index));
  });
  double sum = 0;
  for (const double error : errors) sum += error;
  return sum / static_cast<double>(std::max<std::size_t>(1, errors.size()));
}

// A ball with a soft edge of one voxel.
CrystalGrid ball(double radius, std::int64_t half) {
  const double middle = static_cast<double>(half) / 2;
  return placed(half, [&](std::int64_t z, std::int64_t y, std::int64_t x) {
    const double dz = static_cast<double>(z) - middle, dy = static_cast<double>(y) - middle,
                 dx = static_cast<double>(x) - middle;
    const double depth = radius - std::sqrt(dz * dz + dy * dy + dx * dx);
    return std::complex<float>(static_cast<float>(std::clamp(depth + 0.5, 0.0, 1.0)));
  });
}

CrystalGrid ball_like(const Fields& fields, std::int64_t index) {
  double volume = 0;
  for (const auto& value : true_crystal(fields, index)) volume += std::abs(value);
  return ball(std::cbrt(volume * 3 / (4 * std::numbers::pi)), pattern_side(fields) / 2);
}

// The best of several random starts, as `superstep baseline autophasenn` does it.
CrystalGrid retrieved(const Fields& fields, std::int64_t index) {
  const std::int64_t side = pattern_side(fields);
  const std::vector<float> magnitude = measured_magnitude(fields, index);
  baseline::Retrieval best;
  for (int start = 0; start < retrieval_starts; ++start) {
    data::throw_if_interrupted();
    RandomStream random(1, static_cast<std::uint64_t>(index), static_cast<std::uint32_t>(start));
    baseline::Retrieval found = baseline::retrieve_phase(magnitude, grid_shape(side), {}, random);
    if (start == 0 || found.chi2 < best.chi2) best = std::move(found);
  }
  return best.object;
}

References ball_and_retrieval(const TableSamples& samples) {
  const Fields& fields = samples.fields;
  const double floor =
      mean_error(samples, samples.indices, [&](std::int64_t index) { return ball_like(fields, index); });
  const double limit =
      mean_error(samples, samples.indices, [&](std::int64_t index) { return true_crystal(fields, index); });
  // A retrieval takes seconds, of a large pattern a minute.
  const auto some = some_of(samples.indices, pattern_side(fields) <= moderate_side ? 12 : 4);
  const double conventional =
      mean_error(samples, some, [&](std::int64_t index) { return retrieved(fields, index); });
  const std::string which = of_some(some.size(), samples.indices.size(), "crystals");
  return {.floor = Reference{"a ball of the true volume without strain", floor},
          .conventional = Reference{fmt::format("HIO and ER with shrink-wrap, best of {} starts{}",
                                                retrieval_starts, which),
                                    conventional},
          .limit = Reference{"the true crystal: the noise of the counts", limit},
          // Noise is no network's fault: of what lies above it, two thirds are to go.
          .target = limit + (floor - limit) / 3};
}

std::vector<Metric> quality_of_crystals(const Fields& fields, std::span<const std::int64_t> indices,
                                        std::span<const Tensor> outputs) {
  CrystalQuality mean;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const CrystalQuality one = crystal_quality(fields, indices[i], predicted_crystal(outputs, i));
    mean.diffraction_l1 += one.diffraction_l1;
    mean.chi2 += one.chi2;
    mean.iou += one.iou;
    mean.phase_error += one.phase_error;
    mean.ssim += one.ssim;
  }
  const auto count = static_cast<double>(std::max<std::size_t>(1, indices.size()));
  return {quality_metric("diffraction_l1", mean.diffraction_l1 / count),
          quality_metric("chi2", mean.chi2 / count), quality_metric("iou", mean.iou / count),
          quality_metric("phase_error", mean.phase_error / count, "rad"),
          quality_metric("ssim", mean.ssim / count)};
}

// A rotation by quarters or a mirror of the cube: axis a of the new pattern is axis `axes[a]` of the old one,
// where `flipped[a]` from its other end. Frequency zero stays at n / 2: the opposite of index i is (n - i)
// mod n.
struct CubeSymmetry {
  std::array<std::size_t, 3> axes{0, 1, 2};
  std::array<bool, 3> flipped{};
};

CubeSymmetry drawn_symmetry(RandomStream& random) {
  CubeSymmetry drawn;
  for (std::size_t a = 0; a < 2; ++a) std::swap(drawn.axes[a], drawn.axes[a + random.below(3 - a)]);
  for (bool& flipped : drawn.flipped) flipped = random.below(2) == 1;
  return drawn;
}

// The crystal that is turned has the pattern that is turned, whatever its strain; what is mirrored through
// the middle is that of the opposite strain. All are as likely as the crystal itself.
void turn_pattern(const Fields&, std::int64_t, RandomStream& random, std::span<Tensor> batch,
                  std::size_t row) {
  const auto n = static_cast<std::size_t>(batch[0].shape()[2]);
  const auto pattern = batch[0].as<float>().subspan(row * n * n * n, n * n * n);
  const std::vector<float> before(pattern.begin(), pattern.end());
  const CubeSymmetry symmetry = drawn_symmetry(random);
  const std::size_t strides[] = {n * n, n, 1};
  std::array<std::vector<std::size_t>, 3> from;  // where an index of each new axis lies in the old pattern
  for (std::size_t a = 0; a < 3; ++a)
    for (std::size_t i = 0; i < n; ++i)
      from[a].push_back(strides[symmetry.axes[a]] * (symmetry.flipped[a] ? (n - i) % n : i));
  std::size_t at = 0;
  for (std::size_t z = 0; z < n; ++z)
    for (std::size_t y = 0; y < n; ++y)
      for (std::size_t x = 0; x < n; ++x) pattern[at++] = before[from[0][z] + from[1][y] + from[2][x]];
}

}  // namespace

std::vector<float> measured_magnitude(const Fields& fields, std::int64_t index) {
  const auto measured = measured_pattern(fields, index);
  std::vector<float> magnitude;
  for (const std::size_t target : data::fft_shift_targets(grid_shape(pattern_side(fields))))
    magnitude.push_back(measured[target]);
  return magnitude;
}

CrystalGrid predicted_crystal(std::span<const Tensor> outputs, std::size_t at) {
  const std::int64_t half = outputs[0].shape()[2], voxels = half * half * half;
  const auto row = [&](const Tensor& output) {
    return output.as<float>().subspan(at * static_cast<std::size_t>(voxels),
                                      static_cast<std::size_t>(voxels));
  };
  const auto amplitude = row(outputs[0]), phase = row(outputs[1]);
  return placed(half, [&](std::int64_t z, std::int64_t y, std::int64_t x) {
    const auto i = static_cast<std::size_t>((z * half + y) * half + x);
    const float inside = amplitude[i] > static_cast<float>(least_amplitude) ? amplitude[i] : 0.0f;
    return std::polar(inside, phase[i]);
  });
}

CrystalGrid true_crystal(const Fields& fields, std::int64_t index) {
  const std::int64_t half = pattern_side(fields) / 2;
  const auto amplitude = fields.at("amp").as<float>(), phase = fields.at("phase").as<float>();
  return placed(half, [&](std::int64_t z, std::int64_t y, std::int64_t x) {
    const auto i = static_cast<std::size_t>(((index * half + z) * half + y) * half + x);
    return std::polar(std::abs(amplitude[i]), phase[i]);
  });
}

CrystalQuality crystal_quality(const Fields& fields, std::int64_t index, const CrystalGrid& crystal) {
  const std::int64_t side = pattern_side(fields);
  const auto measured = measured_pattern(fields, index);
  const CrystalGrid truth = true_crystal(fields, index);
  CrystalQuality quality;
  quality.pattern = pattern_of(crystal, side);
  quality.diffraction_l1 = mean_distance_of(quality.pattern, measured);
  quality.chi2 = chi2_of(quality.pattern, measured);
  quality.aligned = baseline::align(crystal, truth, grid_shape(side)).object;
  const auto compared = baseline::compare_shapes(quality.aligned, truth, grid_shape(side));
  quality.iou = compared.iou;
  quality.phase_error = compared.phase_mean;
  quality.ssim = compared.ssim;
  return quality;
}

std::unique_ptr<Task> open_autophasenn(const TaskSettings& settings, const Options& model) {
  const std::int64_t side = model.integer("size", 1, 1 << 10);
  std::vector<std::string> generator{"size=" + model.text("size")};
  if (side < moderate_side) generator.push_back("diameter=0.4..0.75");  // with its soft edge it has to fit
  return open_table_task({.generator = "autophasenn",
                          .settings = std::move(generator),
                          .default_samples = side <= moderate_side ? 2000 : 480,
                          .training_share = 0.9,
                          .group = {},
                          .inputs = {{"diff"}},
                          .targets = {},
                          .more = {"amp", "phase"},
                          .augment = model.flag("vary") ? turn_pattern : nullptr,
                          .quality = quality_of_crystals,
                          .present = present_crystals,
                          .references = ball_and_retrieval,
                          .reference_seconds = side <= moderate_side ? 30.0 : 150.0,
                          .reference_fields = {}},
                         settings);
}

}  // namespace superstep::workload
