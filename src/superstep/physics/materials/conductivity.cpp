#include "superstep/physics/materials/conductivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "superstep/base/error.h"
#include "superstep/physics/materials/conductivity_multigrid.h"

namespace superstep::data {
namespace {

constexpr const char* here = "effective conductivity";

void check(std::span<const double> sigma, int width, int height) {
  if (width < 1 || height < 1 ||
      sigma.size() != static_cast<std::size_t>(width) * static_cast<std::size_t>(height))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} values for an image of {} x {} pixels", sigma.size(), width, height), here);
  for (std::size_t i = 0; i < sigma.size(); ++i)
    if (!(sigma[i] >= 0) || !std::isfinite(sigma[i]))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("conductivity {} at pixel {}; it must be finite and not negative", sigma[i], i),
                  here);
}

// Keeps the connected parts (by faces) that touch both electrodes; true when there is one.
class Percolation {
 public:
  Percolation(std::span<const double> sigma, int width, int height)
      : sigma_(sigma), width_(width), height_(height), carries_(sigma.size(), 0) {
    for (int y = 0; y < height_; ++y) {
      const std::size_t seed = static_cast<std::size_t>(y) * static_cast<std::size_t>(width_);
      if (!(sigma_[seed] > 0) || carries_[seed]) continue;
      if (flood(seed))
        percolates_ = true;
      else
        for (std::size_t cell : part_) carries_[cell] = 2;  // seen, but a dead part
    }
  }
  bool percolates() const { return percolates_; }
  bool carries(std::size_t cell) const { return carries_[cell] == 1; }

 private:
  void visit(std::size_t cell) {
    if (!(sigma_[cell] > 0) || carries_[cell]) return;
    carries_[cell] = 1;
    part_.push_back(cell);
  }
  // Marks the part of `seed`; does it reach the right edge?
  bool flood(std::size_t seed) {
    const auto w = static_cast<std::size_t>(width_);
    bool reaches = false;
    part_.clear();
    visit(seed);
    for (std::size_t next = 0; next < part_.size(); ++next) {
      const std::size_t cell = part_[next], x = cell % w;
      if (x + 1 < w) visit(cell + 1);
      if (x > 0) visit(cell - 1);
      if (cell >= w) visit(cell - w);
      if (cell + w < sigma_.size()) visit(cell + w);
      reaches |= x + 1 == w;
    }
    return reaches;
  }

  std::span<const double> sigma_;
  int width_, height_;
  std::vector<std::uint8_t> carries_;
  std::vector<std::size_t> part_;
  bool percolates_ = false;
};

double harmonic_mean(double a, double b) { return 2 * a * b / (a + b); }

// The equations of the cells that carry current. Conductivities are divided by `unit`, the largest.
GridLevel assemble(std::span<const double> sigma, int width, int height, const Percolation& path,
                   double unit) {
  GridLevel grid(width, height);
  const auto value = [&](int x, int y) {
    const std::size_t cell =
        static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x);
    return path.carries(cell) ? sigma[cell] / unit : 0.0;
  };
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const double own = value(x, y);
      if (!(own > 0)) continue;
      const std::size_t i = grid.at(x, y);
      if (x + 1 < width) grid.east[i] = harmonic_mean(own, value(x + 1, y));
      if (y + 1 < height) grid.south[i] = harmonic_mean(own, value(x, y + 1));
      if (x == 0) grid.right_side[i] = 2 * own;  // the left electrode, at potential 1
      grid.electrode[i] = (x == 0 ? 2 * own : 0) + (x + 1 == width ? 2 * own : 0);
    }
  grid.set_diagonal();
  return grid;
}

// Conjugate gradients on vectors with the layout of the grid. The residual is the right side of the finest
// level, the preconditioned residual its unknown.
class Solver {
 public:
  explicit Solver(GridLevel grid) : multigrid_(std::move(grid)) {
    GridLevel& level = multigrid_.finest();
    for (auto* vector : {&potential_, &direction_, &image_}) vector->assign(level.size(), 0.0);
    for (int y = 0; y < level.height; ++y) {
      faces_.push_back(level.right_side[level.at(0, y)]);
      for (int x = 0; x < level.width; ++x)
        if (level.diagonal[level.at(x, y)] > 0) potential_[level.at(x, y)] = 1 - (x + 0.5) / level.width;
    }
    norm_ = std::sqrt(dot(residual(), residual()));
    multiply(potential_, image_);
    for (std::size_t i = 0; i < level.size(); ++i) residual()[i] -= image_[i];
    residual_ = std::sqrt(dot(residual(), residual())) / norm_;
  }

  int run(const ConductivitySettings& settings) {
    int iteration = 0;
    double old_product = 0;
    for (; residual_ > settings.tolerance && iteration < settings.max_iterations; ++iteration) {
      multigrid_.cycle();
      const double product = dot(residual(), multigrid_.finest().unknown);
      step(product, iteration ? product / old_product : 0.0);
      old_product = product;
    }
    if (!(residual_ <= settings.tolerance))
      throw Error(
          ErrorCode::diverged,
          fmt::format("the relative residual is still {:.2e} after {} iterations", residual_, iteration),
          here, "raise the tolerance or the number of iterations");
    return iteration;
  }

  double reached() const { return residual_; }

  double left_current() {
    double current = 0;
    for (int y = 0; y < grid().height; ++y)
      current += faces_[static_cast<std::size_t>(y)] * (1 - potential_[grid().at(0, y)]);
    return current;
  }

  double right_current() {
    double current = 0;
    const int x = grid().width - 1;
    for (int y = 0; y < grid().height; ++y) {
      const double left = x == 0 ? faces_[static_cast<std::size_t>(y)] : 0;
      current += (grid().electrode[grid().at(x, y)] - left) * potential_[grid().at(x, y)];
    }
    return current;
  }

  std::vector<double> potentials() {
    std::vector<double> all;
    for (int y = 0; y < grid().height; ++y)
      for (int x = 0; x < grid().width; ++x) {
        const std::size_t i = grid().at(x, y);
        all.push_back(grid().diagonal[i] > 0 ? potential_[i] : std::numeric_limits<double>::quiet_NaN());
      }
    return all;
  }

 private:
  const GridLevel& grid() { return multigrid_.finest(); }
  std::vector<double>& residual() { return multigrid_.finest().right_side; }

  static double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double sums[4] = {};  // four chains of additions, so that they do not wait for one another
    const std::size_t whole = a.size() / 4 * 4;
    for (std::size_t i = 0; i < whole; i += 4)
      for (std::size_t k = 0; k < 4; ++k) sums[k] += a[i + k] * b[i + k];
    for (std::size_t i = whole; i < a.size(); ++i) sums[0] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  void multiply(const std::vector<double>& v, std::vector<double>& product) {
    const GridLevel& level = multigrid_.finest();
    for (int y = 0; y < level.height; ++y)
      for (std::size_t i = level.at(0, y), end = level.at(level.width, y); i < end; ++i)
        product[i] = level.diagonal[i] * v[i] - level.neighbours(v.data(), i);
  }

  void step(double product, double keep) {
    const std::vector<double>& preconditioned = multigrid_.finest().unknown;
    for (std::size_t i = 0; i < direction_.size(); ++i)
      direction_[i] = preconditioned[i] + keep * direction_[i];
    multiply(direction_, image_);
    const double length = product / dot(direction_, image_);
    std::vector<double>& rest = residual();
    for (std::size_t i = 0; i < direction_.size(); ++i) {
      potential_[i] += length * direction_[i];
      rest[i] -= length * image_[i];
    }
    residual_ = std::sqrt(dot(rest, rest)) / norm_;
  }

  Multigrid multigrid_;
  std::vector<double> potential_, direction_, image_;
  std::vector<double> faces_;  // coefficients between the left electrode and the first column
  double norm_ = 0, residual_ = 0;
};

}  // namespace

Conductivity effective_conductivity(std::span<const double> sigma, int width, int height,
                                    const ConductivitySettings& settings) {
  check(sigma, width, height);
  Conductivity result;
  const Percolation path(sigma, width, height);
  result.percolates = path.percolates();
  if (!result.percolates) return result;
  const double unit = *std::max_element(sigma.begin(), sigma.end());
  Solver solver(assemble(sigma, width, height, path, unit));
  result.iterations = solver.run(settings);
  result.residual = solver.reached();
  const double scale = unit * width / height;
  result.effective = scale * solver.left_current();
  result.at_right = scale * solver.right_current();
  if (settings.keep_potential) result.potential = solver.potentials();
  return result;
}

Conductivity effective_conductivity(std::span<const std::uint8_t> image, int width, int height,
                                    double conductor, double insulator,
                                    const ConductivitySettings& settings) {
  std::vector<double> sigma(image.size());
  std::transform(image.begin(), image.end(), sigma.begin(),
                 [&](std::uint8_t pixel) { return pixel ? conductor : insulator; });
  return effective_conductivity(sigma, width, height, settings);
}

namespace {

// Current through the faces of cells, towards growing x and y; through electrodes too.
struct FaceCurrents {
  std::span<const double> sigma, potential;
  int width, height;

  std::size_t cell(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x);
  }
  double between(std::size_t a, std::size_t b) const {
    const double sum = sigma[a] + sigma[b], drop = potential[a] - potential[b];
    return sum > 0 && std::isfinite(drop) ? 2 * sigma[a] * sigma[b] / sum * drop : 0;
  }
  double from_electrode(std::size_t cell, double electrode) const {
    const double drop = electrode - potential[cell];
    return std::isfinite(drop) ? 2 * sigma[cell] * drop : 0;
  }
  double density(int x, int y) const {
    const std::size_t own = cell(x, y);
    const double in = x > 0 ? between(cell(x - 1, y), own) : from_electrode(own, 1);
    const double out = x + 1 < width ? between(own, cell(x + 1, y)) : -from_electrode(own, 0);
    const double down = y > 0 ? between(cell(x, y - 1), own) : 0;
    const double up = y + 1 < height ? between(own, cell(x, y + 1)) : 0;
    return std::hypot((in + out) / 2, (down + up) / 2);
  }
};

}  // namespace

std::vector<float> current_density(const Conductivity& solved, std::span<const double> sigma, int width,
                                   int height) {
  std::vector<float> density(sigma.size(), 0.0f);
  if (solved.potential.size() != sigma.size()) return density;  // nothing flows
  const FaceCurrents currents{sigma, solved.potential, width, height};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) density[currents.cell(x, y)] = static_cast<float>(currents.density(x, y));
  return density;
}

}  // namespace superstep::data
