// From overlapping patches back to one picture.
#pragma once

#include <span>
#include <vector>

#include "superstep/physics/xray/ptycho_object.h"

namespace superstep::data {

// Adds patches to a canvas, each value shared out among the four nearest pixels when a patch does not lie
// on whole pixels, and divides by what was added. Sums are double: the order of the patches does not show.
class Stitcher {
 public:
  Stitcher(int height, int width);

  // The central `central` x `central` pixels of an n x n patch whose pixel (0, 0) belongs at (top, left) of
  // the canvas, in pixels. What falls outside the canvas is dropped. Throws Error (invalid_argument) when
  // the patch has another size or `central` is not in [1, n].
  void add(std::span<const float> patch, int n, double top, double left, int central);

  Map mean() const;  // sum / hits; 0 where there was no hit
  const std::vector<double>& hits() const { return hits_; }

 private:
  void add_pixel(double y, double x, double value);
  void deposit(int y, int x, double weight, double value);

  int height_, width_;
  std::vector<double> sum_, hits_;
};

// Pearson correlation of two pictures over the pixels where `weight` is above 0. NaN when one is constant.
double correlation(std::span<const float> a, std::span<const float> b, std::span<const double> weight);

// Subtracts the circular mean, arg sum exp(i phase), and wraps to (-pi, pi]: a phase is known up to a
// constant only.
void remove_circular_mean(std::span<float> phase);

}  // namespace superstep::data
