#include "superstep/physics/materials/ald.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::data {
namespace {

// As rounded in the published study, so that its figures are reproduced.
constexpr double boltzmann = 1.38e-23, atomic_mass = 1.660e-27;

// The two rates while time passes.
struct Rates {
  double first = 0, second = 0;
  double first_factor = 1, second_factor = 1;  // a step's decay; 1 while dosed
};

// Coverage and mass, stepped by implicit Euler: rates and coverage at the end of the step.
class Surface {
 public:
  Surface(const AldProcess& process, double step) : process_(process), step_(step) {}

  void dose_first(Rates& rates) const {
    rates.first = dose_rate(process_.first, process_.dose_a_s);
    rates.first_factor = 1;
    rates.second_factor = decay(process_.second);
  }
  void dose_second(Rates& rates) const {
    rates.second = dose_rate(process_.second, process_.dose_b_s);
    rates.first_factor = decay(process_.first);
    rates.second_factor = 1;
  }
  void purge(Rates& rates) const {
    rates.first_factor = decay(process_.first);
    rates.second_factor = decay(process_.second);
  }
  void run(Rates& rates, double seconds, std::vector<double>* trace) {
    const long steps = std::lround(seconds / step_);
    for (long i = 0; i < steps; ++i) {
      rates.first *= rates.first_factor;
      rates.second *= rates.second_factor;
      coverage_ = (coverage_ + rates.first * step_) / (1 + (rates.first + rates.second) * step_);
      mass_ += step_ *
               (process_.mass_a * rates.first * (1 - coverage_) + process_.mass_b * rates.second * coverage_);
      if (trace) trace->push_back(mass_);
    }
  }
  double take_mass() { return std::exchange(mass_, 0.0); }

 private:
  double dose_rate(const Precursor& precursor, double seconds) const {
    return adsorption_rate(process_, precursor) * seconds / (seconds + precursor.purge_s);
  }
  double decay(const Precursor& precursor) const { return std::exp(-step_ / precursor.purge_s); }

  const AldProcess& process_;
  double step_, coverage_ = 0, mass_ = 0;
};

void check(const AldProcess& process, int cycles, double step) {
  const auto refuse = [](const char* what, double value) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} is {}", what, value), "atomic layer deposition");
  };
  const auto positive = [&](const char* what, double value) {
    if (!(value > 0) || !std::isfinite(value)) refuse(what, value);
  };
  positive("the temperature", process.temperature_k);
  positive("the area of a site", process.site_area_m2);
  positive("the time step", step);
  positive("the number of cycles", cycles);
  for (const Precursor* precursor : {&process.first, &process.second}) {
    positive("the pressure of a precursor", precursor->pressure_pa);
    positive("the mass of a precursor", precursor->mass_amu);
    positive("the sticking probability", precursor->sticking);
    if (!(precursor->purge_s >= 0)) refuse("the purge time constant", precursor->purge_s);
  }
  for (double time : {process.dose_a_s, process.purge_a_s, process.dose_b_s, process.purge_b_s})
    if (!(time >= 0) || time > 1e6 * step) refuse("the time of a dose or purge", time);
}

}  // namespace

std::span<const AldChemistry> ald_chemistries() {
  static const AldChemistry table[] = {
      {"reference",
       {473, 22.5e-20, {26.66, 72, 1e-3, 0.2}, {26.66, 18, 1e-4, 0.3}, .25, .25, .25, .25, 0.8, 0.5}},
      {"Al2O3-200C", {473, 0.225e-18, {26.66, 72, 1e-3, 0.2}, {26.66, 18, 1e-4, 0.2}}},
      {"Al2O3-100C", {373, 0.251e-18, {26.66, 72, 1e-4, 3}, {26.66, 18, 1e-5, 10}}},
      {"TiO2-200C", {473, 1.17e-18, {0.6665, 284, 1e-4, 0.2}, {26.66, 18, 1e-4, 0.2}}},
      {"W-200C", {473, 0.036e-18, {6.665, 297, 0.2, 0.2}, {26.66, 62, 0.05, 0.2}}}};
  return table;
}

const AldProcess& find_ald_chemistry(std::string_view name) {
  std::vector<std::string> names;
  for (const AldChemistry& chemistry : ald_chemistries()) {
    if (chemistry.name == name) return chemistry.process;
    names.emplace_back(chemistry.name);
  }
  throw Error(ErrorCode::invalid_argument, "no chemistry of this name", std::string(name),
              unknown_name_hint(name, names));
}

double adsorption_rate(const AldProcess& process, const Precursor& precursor) {
  const double thermal = boltzmann * process.temperature_k;
  const double speed = std::sqrt(8 * thermal / (std::numbers::pi * precursor.mass_amu * atomic_mass));
  return process.site_area_m2 * precursor.sticking * speed * precursor.pressure_pa / (4 * thermal);
}

double default_time_step(const AldProcess& process) {
  const double fastest =
      std::max(adsorption_rate(process, process.first), adsorption_rate(process, process.second));
  return std::pow(10.0, -(std::floor(std::log10(fastest)) + 1));
}

std::vector<double> growth_per_cycle(const AldProcess& process, int cycles, double step_s,
                                     std::vector<double>* trace) {
  const double step = step_s > 0 ? step_s : default_time_step(process);
  check(process, cycles, step);
  Surface surface(process, step);
  Rates rates;
  std::vector<double> growth;
  for (int cycle = 0; cycle < cycles; ++cycle) {
    std::vector<double>* recorded = cycle + 1 == cycles ? trace : nullptr;
    surface.dose_first(rates);
    surface.run(rates, process.dose_a_s, recorded);
    surface.purge(rates);
    surface.run(rates, process.purge_a_s, recorded);
    surface.dose_second(rates);
    surface.run(rates, process.dose_b_s, recorded);
    surface.purge(rates);
    surface.run(rates, process.purge_b_s, recorded);
    growth.push_back(surface.take_mass());
  }
  return growth;
}

double ideal_growth(const AldProcess& process) {
  const double x1 = std::exp(-adsorption_rate(process, process.first) * process.dose_a_s);
  const double x2 = std::exp(-adsorption_rate(process, process.second) * process.dose_b_s);
  return (1 - x1) * (1 - x2) / (1 - x1 * x2);
}

}  // namespace superstep::data
