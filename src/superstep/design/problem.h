// What is to be found: settings whose response curve lies within a tolerance of a target.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::design {

struct Unknown {
  std::string name, unit;
  double low = 0, high = 1;
};

struct Problem {
  std::string name;
  std::vector<Unknown> unknowns;
  std::vector<double> target;           // the curve, [points]
  std::vector<double> target_settings;  // that the target was made with; empty where nobody knows
  std::vector<double> half_width;       // of the box around each point of the target, > 0
  double tolerance = 0.1;               // relative
  double noise = 0;                     // standard deviation of a simulated measurement
  int initial = 20, batch = 10;         // trials before the first iteration; beside the target's in each
  std::string x_label = "point", y_label = "response";
  std::vector<double> positions;  // of the points, for drawings: cycle, time
  // The curve without noise of settings in their units; empty for an experiment that only its owner can make.
  // Thread-safe. Throws Error (invalid_argument).
  std::function<std::vector<double>(std::span<const double>)> simulate;
  nlohmann::json source;  // all that the above was made of: equal sources are equal problems

  std::size_t points() const { return target.size(); }
  // Largest |curve - target| in units of its box: 1 is the edge. NaN counts as infinitely far.
  double distance(std::span<const double> curve) const;
  // Largest |curve - target|, relative as the tolerance is: distance times tolerance.
  double deviation(std::span<const double> curve) const { return tolerance * distance(curve); }
};

// The case of the published study (C. Graziani and M. Ngom, ANL-23/15): growth in 50 cycles of the chemistry
// "reference", four unknowns, a tolerance of 10 %.
nlohmann::json published_case();

// Settings of an atomic layer deposition that a problem may name, with what they mean, one line each.
std::string settings_table();

// Reads a problem as docs/design-of-experiments.md describes it. Throws Error (bad_file) with `where` and the
// member that is wrong.
Problem problem_from_json(const nlohmann::json& json, const std::string& where);
// Reads a file of it; throws Error (not_found, bad_file).
Problem read_problem(const std::string& path);

}  // namespace superstep::design
