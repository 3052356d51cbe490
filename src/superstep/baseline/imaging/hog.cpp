#include "superstep/baseline/imaging/hog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "superstep/base/error.h"

namespace superstep::baseline {
namespace {

constexpr double clip = 0.2, smallest = 1e-3;  // of a block's length, so that noise is not made large

struct Gradient {
  double x = 0, y = 0;
  double square() const { return x * x + y * y; }
};

Gradient gradient_at(std::span<const std::uint8_t> plane, int width, int height, int x, int y) {
  const auto at = [&](int column, int row) {
    const auto place =
        static_cast<std::size_t>(std::clamp(row, 0, height - 1) * width + std::clamp(column, 0, width - 1));
    return double{static_cast<double>(plane[place])} / 255;
  };
  return {at(x + 1, y) - at(x - 1, y), at(x, y + 1) - at(x, y - 1)};
}

// Of all channels the one with the largest gradient.
Gradient largest_gradient(std::span<const std::uint8_t> planes, int width, int height, int x, int y) {
  const auto plane = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  Gradient largest;
  for (std::size_t first = 0; first < planes.size(); first += plane) {
    const Gradient own = gradient_at(planes.subspan(first, plane), width, height, x, y);
    if (own.square() > largest.square()) largest = own;
  }
  return largest;
}

// Histograms of all cells: [rows, columns, orientations].
class Cells {
 public:
  Cells(int columns, int rows, const HogSettings& settings)
      : columns_(columns),
        rows_(rows),
        settings_(settings),
        votes_(static_cast<std::size_t>(columns * rows * settings.orientations), 0.0) {}

  void add(int x, int y, const Gradient& gradient) {
    const double size = std::sqrt(gradient.square());
    if (size == 0) return;
    const double turn = std::atan2(gradient.y, gradient.x) / std::numbers::pi;  // -1 to 1
    const double bin = (turn < 0 ? turn + 1 : turn) * settings_.orientations - 0.5;
    const int low = static_cast<int>(std::floor(bin));
    const double share = bin - low;
    add_to_cells(x, y, low, size * (1 - share));
    add_to_cells(x, y, low + 1, size * share);
  }
  const double* cell(int column, int row) const {
    return &votes_[static_cast<std::size_t>((row * columns_ + column) * settings_.orientations)];
  }

 private:
  void add_to_cells(int x, int y, int bin, double weight) {
    const int n = settings_.orientations, wrapped = (bin + n) % n;
    const double cx = (x + 0.5) / settings_.cell - 0.5, cy = (y + 0.5) / settings_.cell - 0.5;
    const int left = static_cast<int>(std::floor(cx)), top = static_cast<int>(std::floor(cy));
    for (int dy = 0; dy < 2; ++dy)
      for (int dx = 0; dx < 2; ++dx) {
        const int column = left + dx, row = top + dy;
        if (column < 0 || row < 0 || column >= columns_ || row >= rows_) continue;
        const double part = (1 - std::abs(cx - column)) * (1 - std::abs(cy - row));
        votes_[static_cast<std::size_t>((row * columns_ + column) * n + wrapped)] += part * weight;
      }
  }

  int columns_, rows_;
  HogSettings settings_;
  std::vector<double> votes_;
};

void normalise(std::span<double> block) {
  double square = smallest * smallest;
  for (const double value : block) square += value * value;
  for (double& value : block) value /= std::sqrt(square);
}

}  // namespace

int hog_length(int width, int height, const HogSettings& settings) {
  const int columns = width / settings.cell, rows = height / settings.cell;
  if (columns < 2 || rows < 2)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("images of {} x {} px have fewer than 2 x 2 cells of {} px", width, height,
                            settings.cell),
                "", "choose smaller cells");
  return (columns - 1) * (rows - 1) * 4 * settings.orientations;
}

std::vector<float> hog_features(std::span<const std::uint8_t> planes, int width, int height,
                                const HogSettings& settings) {
  const int length = hog_length(width, height, settings);
  const int columns = width / settings.cell, rows = height / settings.cell;
  Cells cells(columns, rows, settings);
  for (int y = 0; y < rows * settings.cell; ++y)
    for (int x = 0; x < columns * settings.cell; ++x)
      cells.add(x, y, largest_gradient(planes, width, height, x, y));
  std::vector<float> features;
  features.reserve(static_cast<std::size_t>(length));
  std::vector<double> block;
  for (int row = 0; row + 1 < rows; ++row)
    for (int column = 0; column + 1 < columns; ++column) {
      block.clear();
      for (int k = 0; k < 4; ++k) {
        const double* cell = cells.cell(column + k % 2, row + k / 2);
        block.insert(block.end(), cell, cell + settings.orientations);
      }
      normalise(block);
      for (double& value : block) value = std::min(value, clip);
      normalise(block);
      features.insert(features.end(), block.begin(), block.end());
    }
  return features;
}

}  // namespace superstep::baseline
