// How much of a cell population survives a drug: the Hill curve and the area under it.
#pragma once

namespace superstep::data {

// Viability g(c) = Einf + (1 - Einf) / (1 + (c/EC50)^h), c and EC50 in mol/l.
struct HillCurve {
  double slope = 1;       // h > 0
  double log10_ec50 = 0;  // log10 of mol/l
  double floor = 0;       // Einf: what survives any dose, 0 to 1
};

double viability(const HillCurve& curve, double log10_concentration);

// Mean viability over log10 concentration from `low` to `high`, in closed form:
// Einf + (1 - Einf)(F(high) - F(low))/(high - low), F(x) = x - log10(1 + 10^(h(x - m)))/h.
double area_under_curve(const HillCurve& curve, double low = -10, double high = -4);

}  // namespace superstep::data
