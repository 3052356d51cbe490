#include "superstep/physics/chemistry/dose_response.h"

#include <cmath>
#include <numbers>

namespace superstep::data {
namespace {

// log10(1 + 10^x) without overflow.
double log10_one_plus(double x) { return x > 15 ? x : std::log1p(std::pow(10.0, x)) / std::numbers::ln10; }

}  // namespace

double viability(const HillCurve& curve, double log10_concentration) {
  const double x = curve.slope * (log10_concentration - curve.log10_ec50);
  return curve.floor + (1 - curve.floor) / (1 + std::pow(10.0, x));
}

double area_under_curve(const HillCurve& curve, double low, double high) {
  const auto integral = [&](double x) {
    return x - log10_one_plus(curve.slope * (x - curve.log10_ec50)) / curve.slope;
  };
  return curve.floor + (1 - curve.floor) * (integral(high) - integral(low)) / (high - low);
}

}  // namespace superstep::data
