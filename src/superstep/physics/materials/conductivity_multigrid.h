// A multigrid cycle for the five-point equations of a conductivity image, as preconditioner of conjugate
// gradients. Not part of the public interface: see conductivity.h.
//
// Cells are joined two by two in both directions. Restriction is the sum over a block and prolongation its
// transpose, so every level has five points; face coefficients of a coarse level are the sums over the two
// fine faces, halved, which makes them those of the same equation on cells twice as large (without the
// halving, coarse corrections of piecewise constants are too small by that factor: D. Braess, "Towards
// algebraic multigrid for elliptic problems of second order", Computing 55 (1995)). Smoothing is
// Gauss-Seidel by colours of the chess-board, in opposite order before and after, which keeps the cycle
// symmetric. Coarse levels are visited twice (a W-cycle).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace superstep::data {

// One grid. Vectors are row-major with a margin of one cell on every side (and one more where the size is
// odd); everything in the margin is 0.
struct GridLevel {
  GridLevel(int width, int height);
  std::size_t at(int x, int y) const {
    return static_cast<std::size_t>(y + 1) * stride + static_cast<std::size_t>(x + 1);
  }
  std::size_t size() const { return diagonal.size(); }

  // From `east`, `south` and `electrode`; cells without any coefficient are left out of the equations.
  void set_diagonal();
  // Solves the equations of one colour, (x + y) % 2 == color; sets cells left out to 0, those in the margin
  // that odd sizes have in a block of two by two included.
  void relax(int color);
  void relax_from_zero();  // relax(0) when `unknown` counts as 0
  double neighbours(const double* v, std::size_t i) const {
    return east[i - 1] * v[i - 1] + east[i] * v[i + 1] + south[i - stride] * v[i - stride] +
           south[i] * v[i + stride];
  }

  int width, height;
  std::size_t stride;
  std::vector<double> east, south;  // face coefficients towards x + 1 and y + 1
  std::vector<double> electrode;    // of a cell with the electrodes beside it
  std::vector<double> diagonal, inverse_diagonal;
  std::vector<double> unknown, right_side;
};

class Multigrid {
 public:
  explicit Multigrid(GridLevel finest);

  GridLevel& finest() { return levels_.front(); }
  // unknown = cycle(right_side) on the finest level, from zero.
  void cycle() { cycle_from_zero(0); }

 private:
  void cycle_from_zero(std::size_t level);
  void repeat_cycle(std::size_t level);
  void correct(std::size_t level);
  void solve_coarsest();

  std::vector<GridLevel> levels_;
};

}  // namespace superstep::data
