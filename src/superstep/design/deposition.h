// Atomic layer deposition as a problem states it: its settings by name, and the curve that they give.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/physics/materials/ald.h"

namespace superstep::design {

struct ProcessSetting {
  std::string_view name, unit, meaning;
  double& (*of)(data::AldProcess& process);
};

std::span<const ProcessSetting> process_settings();
const ProcessSetting* find_process_setting(std::string_view name);  // null where there is none
std::vector<std::string> process_setting_names();

// Which curve a process gives.
struct DepositionCurve {
  bool trace = false;  // mass gained in the last cycle, evenly in time, in place of growth in each cycle
  int cycles = 50;
  int points = 100;   // of a trace
  double step_s = 0;  // of integration

  // The curve, [cycles] or [points]. Throws Error (invalid_argument) as growth_per_cycle does.
  std::vector<double> operator()(const data::AldProcess& process) const;
  std::vector<double> positions(const data::AldProcess& process) const;  // cycles from 1; times in s
};

}  // namespace superstep::design
