// Atomic layer deposition: two precursors dosed by turns cover a surface, and its mass grows cycle by cycle.
//
// Coverage theta' = a1 (1 - theta) - a2 theta, where a_k is the rate at which precursor k meets free sites.
// From kinetic theory a0 = A beta v p / (4 kB T), v = sqrt(8 kB T / (pi M)); while a precursor is dosed for
// t seconds its rate is a0 t / (t + tp), and it decays as exp(-time / tp) from the end of its dose on. What
// is left of the second precursor at the end of a cycle carries over to the next; of the first, it does not.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace superstep::data {

struct Precursor {
  double pressure_pa = 0;
  double mass_amu = 0;
  double sticking = 0;  // beta
  double purge_s = 0;   // tp; 0 is a perfect purge
};

struct AldProcess {
  double temperature_k = 0;
  double site_area_m2 = 0;
  Precursor first, second;
  double dose_a_s = 0.25, purge_a_s = 0.25, dose_b_s = 0.25, purge_b_s = 0.25;
  double mass_a = 1, mass_b = 0;  // mass gained where the first, the second precursor reacts
};

struct AldChemistry {
  std::string_view name;
  AldProcess process;
};

// Al2O3 at 200 and 100 C, TiO2 and W at 200 C, and "reference", the case of a published design study.
std::span<const AldChemistry> ald_chemistries();
// Throws Error (invalid_argument) with the nearest name.
const AldProcess& find_ald_chemistry(std::string_view name);

// a0 of one precursor, 1/s.
double adsorption_rate(const AldProcess& process, const Precursor& precursor);

// The step that belongs to the fastest rate: 10^-(floor(log10 a0) + 1) s.
double default_time_step(const AldProcess& process);

// Growth in each of `cycles` cycles from an empty surface, by implicit Euler steps of `step_s` (0: the
// default); segments are rounded to whole steps. With `trace`, the mass gained since the start of the last
// cycle is appended to it after every step of that cycle.
// Throws Error (invalid_argument) on times, rates or steps that are not finite and positive.
std::vector<double> growth_per_cycle(const AldProcess& process, int cycles, double step_s = 0,
                                     std::vector<double>* trace = nullptr);

// Growth of a steady cycle with perfect purges and mass gain 1 and 0, in closed form:
// (1 - x1)(1 - x2) / (1 - x1 x2), x_k = exp(-a0_k t_k).
double ideal_growth(const AldProcess& process);

}  // namespace superstep::data
