#include "superstep/physics/materials/conductivity_multigrid.h"

#include <algorithm>
#include <utility>

namespace superstep::data {
namespace {

constexpr double coarse_scale = 0.5;
constexpr int coarsest_sweeps = 8;

int half(int n) { return (n + 1) / 2; }

GridLevel coarsened(const GridLevel& fine) {
  GridLevel coarse(half(fine.width), half(fine.height));
  for (int y = 0; y < coarse.height; ++y)
    for (int x = 0; x < coarse.width; ++x) {
      const std::size_t i = coarse.at(x, y), a = fine.at(2 * x, 2 * y), b = a + fine.stride;
      coarse.east[i] = coarse_scale * (fine.east[a + 1] + fine.east[b + 1]);
      coarse.south[i] = coarse_scale * (fine.south[b] + fine.south[b + 1]);
      coarse.electrode[i] = coarse_scale * (fine.electrode[a] + fine.electrode[a + 1] + fine.electrode[b] +
                                            fine.electrode[b + 1]);
    }
  coarse.set_diagonal();
  return coarse;
}

// After relax(1) only cells of colour 0 have a residual: two of them, on the diagonal of a block.
void restrict_residual(const GridLevel& fine, GridLevel& coarse) {
  const double* v = fine.unknown.data();
  const auto residual = [&](std::size_t i) {
    return fine.right_side[i] + fine.neighbours(v, i) - fine.diagonal[i] * v[i];
  };
  for (int y = 0; y < coarse.height; ++y)
    for (int x = 0; x < coarse.width; ++x) {
      const std::size_t a = fine.at(2 * x, 2 * y);
      coarse.right_side[coarse.at(x, y)] = residual(a) + residual(a + fine.stride + 1);
    }
}

// Only cells of colour 0 need the correction: relax(1), which follows, overwrites the others.
void add_correction(const GridLevel& coarse, GridLevel& fine) {
  for (int y = 0; y < coarse.height; ++y)
    for (int x = 0; x < coarse.width; ++x) {
      const std::size_t a = fine.at(2 * x, 2 * y);
      const double correction = coarse.unknown[coarse.at(x, y)];
      fine.unknown[a] += correction;
      fine.unknown[a + fine.stride + 1] += correction;
    }
}

}  // namespace

GridLevel::GridLevel(int w, int h) : width(w), height(h), stride(static_cast<std::size_t>(2 * half(w) + 2)) {
  const std::size_t cells = stride * static_cast<std::size_t>(2 * half(h) + 2);
  for (auto* vector : {&east, &south, &electrode, &diagonal, &inverse_diagonal, &unknown, &right_side})
    vector->assign(cells, 0.0);
}

void GridLevel::set_diagonal() {
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const std::size_t i = at(x, y);
      diagonal[i] = electrode[i] + east[i - 1] + east[i] + south[i - stride] + south[i];
      inverse_diagonal[i] = diagonal[i] > 0 ? 1 / diagonal[i] : 0;
    }
}

void GridLevel::relax(int color) {
  double* v = unknown.data();
  for (int y = 0; y < 2 * half(height); ++y)
    for (std::size_t i = at((y + color) % 2, y), end = at(2 * half(width), y); i < end; i += 2)
      v[i] = (right_side[i] + neighbours(v, i)) * inverse_diagonal[i];
}

void GridLevel::relax_from_zero() {
  for (int y = 0; y < 2 * half(height); ++y)
    for (std::size_t i = at(y % 2, y), end = at(2 * half(width), y); i < end; i += 2)
      unknown[i] = right_side[i] * inverse_diagonal[i];
}

Multigrid::Multigrid(GridLevel finest) {
  levels_.push_back(std::move(finest));
  while (levels_.back().width > 2 || levels_.back().height > 2) levels_.push_back(coarsened(levels_.back()));
}

void Multigrid::solve_coarsest() {
  GridLevel& level = levels_.back();
  std::fill(level.unknown.begin(), level.unknown.end(), 0.0);
  for (int sweep = 0; sweep < coarsest_sweeps; ++sweep) level.relax(0), level.relax(1);
  for (int sweep = 0; sweep < coarsest_sweeps; ++sweep) level.relax(1), level.relax(0);
}

// The coarse correction and the smoothing after it.
void Multigrid::correct(std::size_t at) {
  GridLevel &fine = levels_[at], &coarse = levels_[at + 1];
  fine.relax(1);
  restrict_residual(fine, coarse);
  cycle_from_zero(at + 1);
  if (at + 2 < levels_.size()) repeat_cycle(at + 1);
  add_correction(coarse, fine);
  fine.relax(1);
  fine.relax(0);
}

void Multigrid::cycle_from_zero(std::size_t at) {
  if (at + 1 == levels_.size()) return solve_coarsest();
  levels_[at].relax_from_zero();
  correct(at);
}

void Multigrid::repeat_cycle(std::size_t at) {
  levels_[at].relax(0);
  correct(at);
}

}  // namespace superstep::data
