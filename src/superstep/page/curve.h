// The series of a plot as SVG path data, thinned to what a picture can show.
#pragma once

#include <span>
#include <string>

#include "superstep/page/axis.h"
#include "superstep/page/page.h"

namespace superstep::page {

// The rectangle of a drawing in which a plot's values lie, in SVG units.
struct Frame {
  Axis x, y;
  double left, top, width, height;
  bool log_x, log_y;

  double across(double value) const { return left + width * x.position(value); }
  double down(double value) const { return top + height * (1 - y.position(value)); }
  bool shows(double x_value, double y_value) const {
    return drawable(x_value, log_x) && drawable(y_value, log_y);
  }
};

// Throws Error (invalid_argument) where x, y, low and high differ in length.
void check_lengths(const Series& series);

// A coordinate with as many digits as can be seen.
std::string coordinate(double value);

// Width of a bar of the series, in units of x.
double bar_width(const Series& series);

std::string line_path(const Series& series, const Frame& frame);    // broken where a value cannot be drawn
std::string steps_path(const Series& series, const Frame& frame);   // level from a point to the next
std::string points_path(const Series& series, const Frame& frame);  // dots: to be stroked with caps
std::string bars_path(const Series& series, const Frame& frame);    // from zero, or the foot of a log axis
std::string band_path(const Series& series, const Frame& frame);    // between low and high

}  // namespace superstep::page
