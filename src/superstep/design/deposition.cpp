#include "superstep/design/deposition.h"

#include "superstep/base/error.h"

namespace superstep::design {

using data::AldProcess;

std::span<const ProcessSetting> process_settings() {
  static const ProcessSetting table[] = {
      {"purge_a", "s", "time constant of the first precursor's purge",
       [](AldProcess& p) -> double& { return p.first.purge_s; }},
      {"purge_b", "s", "the same of the second", [](AldProcess& p) -> double& { return p.second.purge_s; }},
      {"mass_a", "", "mass gained where the first precursor reacts",
       [](AldProcess& p) -> double& { return p.mass_a; }},
      {"mass_b", "", "the same of the second", [](AldProcess& p) -> double& { return p.mass_b; }},
      {"dose_time_a", "s", "how long the first precursor is dosed",
       [](AldProcess& p) -> double& { return p.dose_a_s; }},
      {"purge_time_a", "s", "how long is purged after it",
       [](AldProcess& p) -> double& { return p.purge_a_s; }},
      {"dose_time_b", "s", "how long the second precursor is dosed",
       [](AldProcess& p) -> double& { return p.dose_b_s; }},
      {"purge_time_b", "s", "how long is purged after it",
       [](AldProcess& p) -> double& { return p.purge_b_s; }},
      {"pressure_a", "Pa", "pressure of the first precursor",
       [](AldProcess& p) -> double& { return p.first.pressure_pa; }},
      {"pressure_b", "Pa", "of the second", [](AldProcess& p) -> double& { return p.second.pressure_pa; }},
      {"sticking_a", "",
       "probability that a molecule of the first precursor stays where it meets a free site",
       [](AldProcess& p) -> double& { return p.first.sticking; }},
      {"sticking_b", "", "of the second", [](AldProcess& p) -> double& { return p.second.sticking; }},
      {"molar_mass_a", "g/mol", "molar mass of the first precursor",
       [](AldProcess& p) -> double& { return p.first.mass_amu; }},
      {"molar_mass_b", "g/mol", "of the second", [](AldProcess& p) -> double& { return p.second.mass_amu; }},
      {"temperature", "K", "temperature of the reactor",
       [](AldProcess& p) -> double& { return p.temperature_k; }},
      {"site_area", "m2", "area of a site", [](AldProcess& p) -> double& { return p.site_area_m2; }}};
  return table;
}

const ProcessSetting* find_process_setting(std::string_view name) {
  for (const ProcessSetting& setting : process_settings())
    if (setting.name == name) return &setting;
  return nullptr;
}

std::vector<std::string> process_setting_names() {
  std::vector<std::string> names;
  for (const ProcessSetting& setting : process_settings()) names.emplace_back(setting.name);
  return names;
}

std::vector<double> DepositionCurve::operator()(const AldProcess& process) const {
  if (!trace) return data::growth_per_cycle(process, cycles, step_s);
  std::vector<double> all, some;
  data::growth_per_cycle(process, cycles, step_s, &all);
  if (all.empty()) throw Error(ErrorCode::invalid_argument, "a cycle takes no time step");
  const auto count = static_cast<std::size_t>(points);
  for (std::size_t k = 1; k <= count; ++k)
    some.push_back(all[std::max<std::size_t>(k * all.size() / count, 1) - 1]);
  return some;
}

std::vector<double> DepositionCurve::positions(const AldProcess& process) const {
  const double cycle = process.dose_a_s + process.purge_a_s + process.dose_b_s + process.purge_b_s;
  std::vector<double> at;
  for (int k = 1; k <= (trace ? points : cycles); ++k) at.push_back(trace ? cycle * k / points : k);
  return at;
}

}  // namespace superstep::design
