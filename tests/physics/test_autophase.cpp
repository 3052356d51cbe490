#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <numbers>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npz.h"
#include "superstep/physics/fft.h"
#include "superstep/physics/xray/autophase.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

using Complex = std::complex<double>;
constexpr double pi = std::numbers::pi;

std::vector<double> magnitude(const CrystalObject& object) {
  const auto side = static_cast<std::size_t>(2 * object.size);
  std::vector<Complex> field(side * side * side);
  far_field<double>(object, field);
  std::vector<double> result;
  for (const Complex& value : field) result.push_back(std::abs(value));
  return result;
}

double relative_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest / *std::max_element(a.begin(), a.end());
}

CrystalObject crystal(std::uint64_t seed, int size, double dislocations = 0.5) {
  RandomStream random(seed);
  const CrystalShape shape = draw_crystal(random, size, 0.8 * size);
  DisplacementSettings settings;
  settings.dislocations = dislocations;
  return render(shape, draw_displacement(random, shape, settings), size);
}

// The object moved by whole voxels on its grid, round the corner.
CrystalObject moved(const CrystalObject& object, int dz, int dy, int dx) {
  CrystalObject result = object;
  const int n = object.size;
  for (int z = 0; z < n; ++z)
    for (int y = 0; y < n; ++y)
      for (int x = 0; x < n; ++x) {
        const auto from = static_cast<std::size_t>((z * n + y) * n + x);
        const auto to = static_cast<std::size_t>(((z + dz) * n + y + dy) * n + x + dx);
        if (object.amplitude[from] == 0 && to >= result.amplitude.size()) continue;
        result.amplitude.at(to) = object.amplitude[from];
        result.phase.at(to) = object.phase[from];
      }
  return result;
}

TEST(Autophase, IntensityIsThatOfTheObject) {
  const CrystalObject object = crystal(1, 16);
  double in = 0, out = 0;
  for (const float value : object.amplitude) in += double{value} * value;
  for (const double value : magnitude(object)) out += value * value;
  EXPECT_NEAR(out / in, 32.0 * 32 * 32, 1e-10 * 32 * 32 * 32);
}

TEST(Autophase, CubeHasASeparableTransform) {
  constexpr int n = 16, side = 2 * n, edge = 6;
  CrystalObject cube{n, std::vector<float>(n * n * n), std::vector<float>(n * n * n)};
  for (int z = 5; z < 5 + edge; ++z)
    for (int y = 5; y < 5 + edge; ++y)
      for (int x = 5; x < 5 + edge; ++x) cube.amplitude[static_cast<std::size_t>((z * n + y) * n + x)] = 1;
  const auto found = magnitude(cube);
  const auto factor = [](int k) {
    return k == 0 ? double{edge} : std::abs(std::sin(pi * k * edge / side) / std::sin(pi * k / side));
  };
  double worst = 0;
  for (int z = 0; z < side; ++z)
    for (int y = 0; y < side; ++y)
      for (int x = 0; x < side; ++x)
        worst = std::max(worst, std::abs(found[static_cast<std::size_t>((z * side + y) * side + x)] -
                                         factor(z) * factor(y) * factor(x)));
  EXPECT_LT(worst, 1e-10 * edge * edge * edge);
  cube.amplitude[0] = 1;  // no cube any more
  EXPECT_GT(relative_difference(magnitude(cube), found), 1e-4);
}

TEST(Autophase, PhaseOffsetShiftAndTwinLeaveTheMagnitude) {
  const CrystalObject object = crystal(2, 16);
  const auto expected = magnitude(object);
  CrystalObject offset = object, twin = object, mirror = object;
  const std::size_t voxels = object.phase.size();
  for (std::size_t i = 0; i < voxels; ++i) {
    offset.phase[i] += 1.0f;
    twin.amplitude[i] = mirror.amplitude[i] = object.amplitude[voxels - 1 - i];
    twin.phase[i] = -object.phase[voxels - 1 - i];
    mirror.phase[i] = object.phase[voxels - 1 - i];  // not conjugated: another pattern
  }
  EXPECT_LT(relative_difference(expected, magnitude(offset)), 1e-6);
  EXPECT_LT(relative_difference(expected, magnitude(twin)), 1e-6);
  EXPECT_GT(relative_difference(expected, magnitude(mirror)), 1e-3);
  // Soft edges end 1.6 voxels inside the grid: a move by one voxel keeps everything on it.
  EXPECT_LT(relative_difference(expected, magnitude(moved(object, 1, 1, 1))), 1e-10);
}

// L(psi) = sum w |F psi|: its derivative is the unnormalised inverse transform of w F / |F|.
TEST(Autophase, AdjointOfTheMagnitudeAgreesWithDifferences) {
  const Shape shape{6, 8, 4};
  RandomStream random(3);
  std::vector<Complex> psi(192), direction(192);
  std::vector<double> weight(192);
  for (std::size_t i = 0; i < 192; ++i) {
    psi[i] = {random.normal(), random.normal()};
    direction[i] = {random.normal(), random.normal()};
    weight[i] = random.normal();
  }
  auto& fft = thread_fft<double>(shape);
  const auto loss = [&](double step) {
    std::vector<Complex> field = psi;
    for (std::size_t i = 0; i < field.size(); ++i) field[i] += step * direction[i];
    fft.forward(field);
    double sum = 0;
    for (std::size_t i = 0; i < field.size(); ++i) sum += weight[i] * std::abs(field[i]);
    return sum;
  };
  std::vector<Complex> gradient = psi;
  fft.forward(gradient);
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] *= weight[i] / std::abs(gradient[i]);
  fft.inverse(gradient);
  double along = 0, wrong = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    along += (std::conj(gradient[i]) * direction[i]).real();
    wrong += (gradient[i] * direction[i]).real();
  }
  const double difference = (loss(1e-5) - loss(-1e-5)) / 2e-5;
  EXPECT_NEAR(along / difference, 1, 1e-5);
  EXPECT_GT(std::abs(wrong / difference - 1), 1e-3);
}

TEST(Autophase, CrystalsFillTheirDiameterAndStayInside) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random(seed);
    const double diameter = random.uniform(10, 28);
    const CrystalShape shape = draw_crystal(random, 32, diameter);
    EXPECT_TRUE(shape.facets.size() >= 8 && shape.facets.size() <= 20);
    const CrystalObject object = render(shape, {}, 32);
    double volume = 0, at_the_border = 0;
    for (int z = 0; z < 32; ++z)
      for (int y = 0; y < 32; ++y)
        for (int x = 0; x < 32; ++x) {
          const float amplitude = object.amplitude[static_cast<std::size_t>((z * 32 + y) * 32 + x)];
          volume += amplitude;
          if (std::min({z, y, x}) == 0 || std::max({z, y, x}) == 31) at_the_border += amplitude;
        }
    EXPECT_EQ(at_the_border, 0);
    const double sphere = pi / 6 * diameter * diameter * diameter;
    EXPECT_GT(volume, 0.12 * sphere);
    EXPECT_LT(volume, sphere);
  }
}

TEST(Autophase, OctahedronHasItsVolume) {
  CrystalShape shape;
  shape.origin = {15.5, 15.5, 15.5};
  const double h = 6, c = 1 / std::sqrt(3.0);
  for (int signs = 0; signs < 8; ++signs)
    shape.facets.push_back({{signs & 1 ? c : -c, signs & 2 ? c : -c, signs & 4 ? c : -c}, h});
  const CrystalObject object = render(shape, {}, 32);
  const double volume = std::accumulate(object.amplitude.begin(), object.amplitude.end(), 0.0);
  // 4/3 a^3 with vertices at a = sqrt(3) h.
  EXPECT_NEAR(volume / (4.0 / 3 * std::pow(std::sqrt(3.0) * h, 3)), 1, 0.02);
}

TEST(Autophase, PhaseHasItsStrengthAndNoMean) {
  RandomStream random(4);
  const CrystalShape shape = draw_crystal(random, 32, 24);
  const Displacement displacement = draw_displacement(random, shape, {{0.7, 0.7}, {0.5, 0.5}, 0});
  const CrystalObject object = render(shape, displacement, 32);
  double weight = 0, sum = 0, squares = 0;
  for (std::size_t i = 0; i < object.phase.size(); ++i) {
    EXPECT_TRUE(object.amplitude[i] > 0 || object.phase[i] == 0);
    weight += object.amplitude[i];
    sum += object.amplitude[i] * object.phase[i];
    squares += double{object.amplitude[i]} * object.phase[i] * object.phase[i];
  }
  EXPECT_NEAR(sum / weight, 0, 0.03);  // but for voxels that were wrapped
  EXPECT_NEAR(std::sqrt(squares / weight), 0.7, 0.07);
}

// The phase winds by 2 pi times the sign around a dislocation, whether screw or edge.
TEST(Autophase, DislocationsWindOnce) {
  for (const auto kind : {Dislocation::Kind::screw, Dislocation::Kind::edge}) {
    CrystalShape block;
    block.origin = {15.5, 15.5, 15.5};
    block.diameter = 24;
    for (std::size_t axis = 0; axis < 3; ++axis)
      for (const double sign : {-1.0, 1.0}) {
        Facet facet;
        facet.normal[axis] = sign;
        facet.distance = 10;
        block.facets.push_back(facet);
      }
    Displacement displacement;
    displacement.scattering = {1, 0, 0};
    displacement.relaxation_depth = 1;
    displacement.correlation = 1;
    displacement.waves = {{0, 0, 0, 0}};
    displacement.dislocation = {kind, -1, {0, 0, 0}, {1, 0, 0}, {0, 0, 1}};
    const CrystalObject object = render(block, displacement, 32);
    double winding = 0, last = 0;
    for (int step = 0; step <= 200; ++step) {
      const double angle = 2 * pi * (step % 200) / 200;
      const int y = static_cast<int>(std::lround(15.5 + 7 * std::sin(angle)));
      const int x = static_cast<int>(std::lround(15.5 + 7 * std::cos(angle)));
      const double phase = object.phase[static_cast<std::size_t>((16 * 32 + y) * 32 + x)];
      if (step > 0) winding += std::remainder(phase - last, 2 * pi);
      last = phase;
    }
    EXPECT_NEAR(std::abs(winding), 2 * pi, 1e-4);
  }
}

std::unique_ptr<Generator> make(const std::vector<std::string>& assignments) {
  const auto entry = autophasenn_generator();
  return entry.make(Options(entry.options, assignments));
}

TEST(Autophase, SameBitsOnAnyNumberOfThreads) {
  const auto generator = make({"size=32"});
  ThreadPool one(1), three(3);
  const auto expected = generate_in_memory(*generator, 7, 5, 6, one),
             found = generate_in_memory(*generator, 7, 5, 6, three);
  for (std::size_t f = 0; f < expected.size(); ++f)
    EXPECT_EQ(std::memcmp(expected[f].bytes(), found[f].bytes(), expected[f].byte_count()), 0)
        << generator->fields()[f].name;
}

TEST(Autophase, PatternIsTheScaledFarFieldOfTheLabels) {
  const auto generator = make({"size=32", "noise=no"});
  ThreadPool pool(2);
  const auto fields = generate_in_memory(*generator, 1, 0, 1, pool);
  CrystalObject object{16, {}, {}};
  for (const float value : fields[1].as<float>()) object.amplitude.push_back(value);
  for (const float value : fields[2].as<float>()) object.phase.push_back(value);
  const auto unshifted = magnitude(object);
  std::vector<double> shifted(unshifted.size()), found;
  fft_shift<double>(unshifted, {32, 32, 32}, shifted);
  const double largest = *std::max_element(shifted.begin(), shifted.end());
  for (double& value : shifted) value /= largest;
  for (const float value : fields[0].as<float>()) found.push_back(value);
  EXPECT_LT(relative_difference(shifted, found), 1e-5);
}

TEST(Autophase, NoiseIsPoissonOnTheIntensity) {
  const auto noisy = make({"size=32", "photons=1e6"}), clean = make({"size=32", "photons=1e6", "noise=no"});
  ThreadPool pool(2);
  const auto a = generate_in_memory(*noisy, 1, 0, 1, pool), b = generate_in_memory(*clean, 1, 0, 1, pool);
  double total = 0;
  for (const float value : b[0].as<float>()) total += double{value} * value;
  const double unit = 1e6 / total;  // counts of the brightest voxel
  double chi2 = 0, voxels = 0;
  const double noisy_unit = std::round(unit);  // the scale that makes the noisy values whole numbers is near
  for (std::int64_t i = 0; i < a[0].element_count(); ++i) {
    const double expected = unit * b[0].at(i) * b[0].at(i), found = noisy_unit * a[0].at(i) * a[0].at(i);
    if (expected < 20 || expected > 2000) continue;
    chi2 += (found - expected) * (found - expected) / expected;
    ++voxels;
  }
  EXPECT_GT(voxels, 100);
  EXPECT_NEAR(chi2 / voxels, 1, 0.35);
}

TEST(Autophase, WritesAListOfNpzFiles) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const auto generator = make({"size=16", "diameter=0.3..0.7"});
  generator->write({folder / "crystals.txt", 3, 5, &pool});
  EXPECT_EQ(read_text_file(folder / "crystals.txt").substr(0, 20), "crystals/000000.npz\n");
  const NamedTensors arrays = read_npz(folder / "crystals/000004.npz");
  EXPECT_EQ(arrays.at("arr_0").shape(), (Shape{16, 16, 16}));
  EXPECT_EQ(arrays.at("arr_1").shape(), (Shape{8, 8, 8, 2}));  // complex64
  const auto fields = generate_in_memory(*generator, 3, 4, 1, pool);
  for (std::int64_t v = 0; v < 512; ++v)
    EXPECT_NEAR(std::hypot(arrays.at("arr_1").at(2 * v), arrays.at("arr_1").at(2 * v + 1)), fields[1].at(v),
                1e-6);
}

TEST(Autophase, RefusesWhatCannotBe) {
  EXPECT_THROW(make({"size=34"}), Error);
  EXPECT_THROW(make({"diameter=0.99"}), Error);
  EXPECT_THROW(make({"photons=0"}), Error);
}

}  // namespace
}  // namespace superstep::data
