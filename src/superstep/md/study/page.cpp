#include "superstep/md/study/page.h"

#include <fmt/format.h>

#include <cmath>

#include "superstep/base/text.h"
#include "superstep/physics/materials/atomic_units.h"
#include "superstep/workload/pictures/atoms_in_space.h"

namespace superstep::md {
namespace {

constexpr double fs_per_ps = 1000;
constexpr std::size_t most_drawn = 700;  // atoms: more are a thicket

const char* name_of(const Protocol& protocol) {
  switch (protocol.ensemble) {
    case Ensemble::nve: return "NVE: energy and volume kept";
    case Ensemble::nvt:
      return protocol.bath == Bath::langevin ? "NVT: Langevin" : "NVT: stochastic velocity rescaling";
    case Ensemble::npt:
      return protocol.bath == Bath::langevin
                 ? "NPT: stochastic cell rescaling, Langevin"
                 : "NPT: stochastic cell rescaling, stochastic velocity rescaling";
  }
  return "";
}

std::string with_error(const Mean& mean, const char* unit) {
  if (!std::isfinite(mean.value)) return "not known";
  if (!std::isfinite(mean.error)) return fmt::format("{:.5g} {}", mean.value, unit);
  return fmt::format("{:.5g} +- {:.2g} {}", mean.value, mean.error, unit);
}

std::string per_day(double ns) { return fmt::format("{:.3g} ns/day", ns); }

std::vector<std::vector<std::string>> facts(const Settings& settings, const Analysis& a,
                                            const Sitting& sitting) {
  std::vector<std::vector<std::string>> rows{
      {"atoms", format_count(static_cast<double>(a.atoms))},
      {"from", settings.start},
      {"potential", settings.potential},
      {"rules", name_of(settings.protocol)},
      {"time", fmt::format("{} steps of {} fs: {:.4g} ps", format_count(static_cast<double>(sitting.to)),
                           settings.protocol.timestep,
                           static_cast<double>(sitting.to) * settings.protocol.timestep / fs_per_ps)},
      {"means", settings.equilibration > 0
                    ? fmt::format("after {} steps", format_count(static_cast<double>(settings.equilibration)))
                    : "of all steps"}};
  return rows;
}

// Name and value.
std::vector<std::vector<std::string>> findings(const Analysis& a, const Sitting& sitting) {
  std::vector<std::vector<std::string>> rows{{"temperature", with_error(a.temperature, "K")}};
  if (std::isfinite(a.pressure.value)) rows.push_back({"pressure", with_error(a.pressure, "bar")});
  constexpr double rounding = 1e-9;  // of a volume that does not change
  if (a.volume.error > rounding * a.volume.value) rows.push_back({"volume", with_error(a.volume, "A^3")});
  rows.push_back({"potential energy", with_error(a.potential, "eV an atom")});
  if (std::isfinite(a.drift))
    rows.push_back(
        {"drift of the conserved energy",
         fmt::format("{:.3g} meV an atom and ns, scatter {:.3g} meV an atom", a.drift, a.scatter)});
  if (a.diffusion) rows.push_back({"diffusion", fmt::format("{:.3g} m^2/s", *a.diffusion)});
  if (sitting.to > sitting.from) {
    const double all = sitting.seconds;
    rows.push_back({"speed", fmt::format("{}, {} steps/s", per_day(sitting.ns_per_day()),
                                         format_count(std::round(sitting.steps_per_second())))});
    rows.push_back(
        {"of the time",
         fmt::format("forces {:.0f} %, neighbors {:.0f} %, files {:.0f} %", 100 * sitting.force_seconds / all,
                     100 * sitting.neighbour_seconds / all, 100 * sitting.writing_seconds / all)});
  }
  return rows;
}

page::Plot over_time(const Analysis& a, const char* title, const char* label,
                     const std::vector<double>& values) {
  page::Plot plot{.title = title, .x_label = "time, ps", .y_label = label};
  page::Series series{.label = title};
  for (std::size_t i = 0; i < values.size(); ++i)
    series.x.push_back(a.thermo.time[i] / fs_per_ps), series.y.push_back(values[i]);
  plot.series.push_back(std::move(series));
  if (a.equilibrated > 0 && a.equilibrated < a.thermo.time.size())
    plot.vertical.push_back({a.thermo.time[a.equilibrated] / fs_per_ps, "means from here"});
  return plot;
}

void add_thermo(const Settings& settings, const Analysis& a, page::Page& page) {
  const ThermoSeries& s = a.thermo;
  page.heading("Energy, temperature, pressure");
  page.paragraph(
      settings.protocol.ensemble == Ensemble::nve
          ? "Conserved is the total energy: what moves it are rounding and the time step."
          : "Conserved is the total energy less what the baths gave: what moves it are rounding and the "
            "time step.");
  std::vector<double> away;
  for (const double each : s.conserved)
    away.push_back(1000 * (each - s.conserved.front()) / static_cast<double>(a.atoms));
  page.begin_row().plot(over_time(a, "conserved energy, from its start", "meV an atom", away));
  page::Plot kelvin = over_time(a, "temperature", "K", s.temperature);
  if (settings.protocol.ensemble != Ensemble::nve)
    kelvin.horizontal.push_back({settings.protocol.kelvin, "bath"});
  page.plot(kelvin).end_row();
  if (s.pressure.empty() || !std::isfinite(s.pressure.front())) return;
  page::Plot bar = over_time(a, "pressure", "bar", s.pressure);
  page.begin_row();
  if (settings.protocol.ensemble == Ensemble::npt) {
    bar.horizontal.push_back({settings.protocol.pressure * data::bar_per_ev_per_cubic_angstrom, "barostat"});
    page.plot(over_time(a, "volume", "A^3", s.volume));
  }
  page.plot(bar).end_row();
}

void add_structure(const Analysis& a, page::Page& page) {
  page.heading("Structure and motion");
  page.paragraph(fmt::format("Of {} frames after the equilibration.", a.frames));
  if (!a.pairs.empty()) {
    page::Plot plot{.title = "radial distribution", .x_label = "distance, A", .y_label = "g"};
    for (const PairDistribution& pair : a.pairs) {
      page::Series series{.label = pair.label};
      for (std::size_t k = 0; k < pair.g.size(); ++k)
        series.x.push_back((static_cast<double>(k) + 0.5) * a.bin_width), series.y.push_back(pair.g[k]);
      plot.series.push_back(std::move(series));
    }
    plot.horizontal.push_back({1, "no correlation"});
    page.plot(plot);
  }
  page.begin_row();
  if (!a.lag.empty())
    page.plot({.title = "mean squared displacement",
               .x_label = "time, ps",
               .y_label = "A^2",
               .series = {{.label = "displacement", .x = a.lag, .y = a.displacement}}});
  if (!a.speed.empty())
    page.plot({.title = "speeds",
               .x_label = "speed, sqrt(kT/m)",
               .y_label = "density",
               .series = {{.label = "found", .x = a.speed, .y = a.found, .style = page::Series::Style::bars},
                          {.label = "Maxwell and Boltzmann", .x = a.speed, .y = a.expected}}});
  page.end_row();
}

// Brought into the box, to be seen together.
data::Configuration wrapped(data::Configuration atoms) {
  if (!atoms.cell) return atoms;
  const auto rows = inverse_of(*atoms.cell);
  for (Cartesian& p : atoms.positions) {
    const double a = dot(rows[0], p), b = dot(rows[1], p), c = dot(rows[2], p);
    p -= std::floor(a) * atoms.cell->a + std::floor(b) * atoms.cell->b + std::floor(c) * atoms.cell->c;
  }
  return atoms;
}

}  // namespace

std::vector<Metric> metrics_of(const Settings& settings, const Analysis& a, const Sitting& sitting) {
  std::vector<Metric> metrics;
  const auto add = [&](const char* name, double value, const char* unit) {
    if (std::isfinite(value)) metrics.push_back({.name = name, .value = value, .unit = unit, .samples = {}});
  };
  if (sitting.to > sitting.from) {
    add("ns_per_day", sitting.ns_per_day(), "ns/day");
    add("steps_rate", sitting.steps_per_second(), "steps/s");
    add("force_time", sitting.force_seconds / static_cast<double>(sitting.to - sitting.from), "s");
  }
  add("simulated_time", static_cast<double>(sitting.to) * settings.protocol.timestep * 1e-15, "s");
  add("temperature", a.temperature.value, "K");
  add("temperature_error", a.temperature.error, "K");
  constexpr double pascal_per_bar = 1e5;
  add("pressure", a.pressure.value * pascal_per_bar, "Pa");
  add("pressure_error", a.pressure.error * pascal_per_bar, "Pa");
  add("volume", a.volume.value, "A^3");
  add("volume_error", a.volume.error, "A^3");
  add("potential_energy", a.potential.value, "eV/atom");
  add("conserved_drift", a.drift, "meV/atom/ns");
  add("conserved_scatter", a.scatter, "meV/atom");
  if (a.diffusion) add("diffusion", *a.diffusion, "m^2/s");
  return metrics;
}

page::Page page_of(const Settings& settings, const Analysis& a, const Sitting& sitting) {
  page::Page page(
      fmt::format("Molecular dynamics: {} by {}", formula_of(a.last.elements), settings.potential));
  page.facts(facts(settings, a, sitting));
  for (const std::string& note : sitting.notes) page.paragraph("Note: " + note + ".");
  page.heading("What came of it").facts(findings(a, sitting));
  page.paragraph("Errors are standard errors of the mean, from the means of ten blocks of time.");
  if (!a.thermo.time.empty()) add_thermo(settings, a, page);
  add_structure(a, page);
  if (!a.last.positions.empty() && a.last.positions.size() <= most_drawn) {
    page.heading("The last frame");
    page.raw(workload::atoms_svg(wrapped(a.last), {}, 1, "atoms of the last frame, along the thinnest axis"));
  }
  page.heading("The force field").preformatted(sitting.parameters_text);
  return page;
}

std::string summary_of(const Settings& settings, const Analysis& a, const Sitting& sitting) {
  std::string text;
  for (const auto& row : facts(settings, a, sitting)) text += fmt::format("{:<30}{}\n", row[0], row[1]);
  for (const auto& row : findings(a, sitting)) text += fmt::format("{:<30}{}\n", row[0], row[1]);
  for (const std::string& note : sitting.notes) text += fmt::format("note: {}\n", note);
  return text;
}

}  // namespace superstep::md
