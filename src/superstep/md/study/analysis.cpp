#include "superstep/md/study/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "superstep/base/statistics.h"
#include "superstep/file/atoms/element.h"
#include "superstep/file/csv.h"
#include "superstep/md/forces/neighbours.h"
#include "superstep/physics/materials/atomic_units.h"
#include "superstep/physics/materials/neighbor_list.h"

namespace superstep::md {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr double farthest = 10, bin = 0.05;  // A: of radial distributions
constexpr std::size_t most_frames = 200;     // that are looked at: of longer trajectories evenly spaced ones
constexpr double square_metre_per_second = 1e-8;  // of 1 A^2/ps
constexpr double fastest = 5;                     // of the histogram of speeds, in sqrt(kT/m)
constexpr std::size_t speed_bins = 50;

ThermoSeries read_thermo(const std::filesystem::path& path) {
  data::CsvReader table(path);
  ThermoSeries s;
  const std::pair<const char*, std::vector<double>*> columns[] = {{"step", &s.step},
                                                                  {"time_fs", &s.time},
                                                                  {"temperature_K", &s.temperature},
                                                                  {"pressure_bar", &s.pressure},
                                                                  {"potential_eV", &s.potential},
                                                                  {"kinetic_eV", &s.kinetic},
                                                                  {"conserved_eV", &s.conserved},
                                                                  {"volume_A3", &s.volume}};
  std::vector<std::size_t> places;
  for (const auto& column : columns) places.push_back(table.column(column.first));
  while (table.next())
    for (std::size_t i = 0; i < places.size(); ++i) columns[i].second->push_back(table.number(places[i]));
  return s;
}

struct Line {
  double slope = 0, scatter = 0;
};

// Least squares, and the root mean square of what is left.
Line fitted_line(std::span<const double> x, std::span<const double> y) {
  if (x.size() < 2) return {none, none};
  const double mx = mean(x), my = mean(y);
  double xx = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) xx += (x[i] - mx) * (x[i] - mx), xy += (x[i] - mx) * (y[i] - my);
  if (!(xx > 0)) return {none, none};
  Line line{xy / xx, 0};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double left = y[i] - my - line.slope * (x[i] - mx);
    line.scatter += left * left / static_cast<double>(x.size());
  }
  line.scatter = std::sqrt(line.scatter);
  return line;
}

struct Frame {
  double time = 0;  // ps
  std::vector<Cartesian> positions, velocities;
  std::optional<Cell> cell;
};

// Frames after the equilibration, thinned evenly; and the last configuration.
std::vector<Frame> read_frames(const RunFolder& folder, Analysis& analysis) {
  const Settings& settings = folder.settings();
  const std::int64_t all = (settings.steps - settings.equilibration) / settings.frame_every + 1;
  const std::int64_t stride = std::max<std::int64_t>(
      1, (all + static_cast<std::int64_t>(most_frames) - 1) / static_cast<std::int64_t>(most_frames));
  std::vector<Frame> frames;
  data::XyzReader reader(folder.trajectory());
  std::int64_t number = 0;
  data::XyzFrame frame, last;
  for (; reader.next(frame); last = std::move(frame)) {
    const auto step = frame.info.find("step");
    const std::int64_t at = step == frame.info.end() ? 0 : std::atoll(step->second.c_str());
    if (at < settings.equilibration || at % settings.frame_every != 0 || number++ % stride != 0) continue;
    frames.push_back({static_cast<double>(at) * settings.protocol.timestep / 1000,
                      frame.configuration.positions, frame.velocities, frame.configuration.cell});
  }
  analysis.last = std::move(last.configuration);
  analysis.frames = frames.size();
  return frames;
}

double shell_volume(double inner, double width) {
  return 4.0 / 3 * std::numbers::pi * (std::pow(inner + width, 3) - std::pow(inner, 3));
}

// Kinds of atoms: their elements in order of atomic numbers.
struct Kinds {
  std::vector<int> elements;         // of each kind
  std::vector<std::size_t> of_atom;  // kind of each atom
  std::vector<double> count;
};
Kinds kinds_of(const std::vector<int>& elements) {
  Kinds kinds;
  kinds.elements = elements;
  std::ranges::sort(kinds.elements);
  kinds.elements.erase(std::ranges::unique(kinds.elements).begin(), kinds.elements.end());
  kinds.count.resize(kinds.elements.size());
  for (const int element : elements) {
    const auto kind =
        static_cast<std::size_t>(std::ranges::lower_bound(kinds.elements, element) - kinds.elements.begin());
    kinds.of_atom.push_back(kind);
    kinds.count[kind] += 1;
  }
  return kinds;
}

// Histograms of one frame by pair of kinds, divided by what a gas without correlation has.
void add_distances(const Frame& frame, const Kinds& kinds, double reach,
                   std::vector<std::vector<double>>& sums) {
  const std::size_t count = kinds.elements.size();
  std::vector<std::vector<double>> found(count * count, std::vector<double>(sums[0].size(), 0.0));
  for (const auto& [i, j, shift] : data::neighbor_pairs(frame.positions, frame.cell, reach)) {
    const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(j);
    const double r = norm(frame.positions[b] + shift - frame.positions[a]);
    const auto place = static_cast<std::size_t>(r / bin);
    if (place >= found[0].size()) continue;
    const auto [low, high] = std::minmax(kinds.of_atom[a], kinds.of_atom[b]);
    found[low * count + high][place] += low == high ? 2 : 1;
  }
  const double volume = std::abs(frame.cell->volume());
  for (std::size_t low = 0; low < count; ++low)
    for (std::size_t high = low; high < count; ++high) {
      // An atom is no neighbour of itself; its images are counted with the others.
      const double pairs = kinds.count[low] * (low == high ? kinds.count[low] - 1 : kinds.count[high]);
      for (std::size_t k = 0; k < sums[0].size(); ++k)
        if (pairs > 0)
          sums[low * count + high][k] += found[low * count + high][k] * volume /
                                         (pairs * shell_volume(static_cast<double>(k) * bin, bin));
    }
}

void find_distributions(std::span<const Frame> frames, const std::vector<int>& elements, ThreadPool& pool,
                        Analysis& analysis) {
  if (frames.empty() || !frames[0].cell) return;
  double reach = farthest;
  for (const Frame& frame : frames) reach = std::min(reach, std::ranges::min(heights_of(*frame.cell)) / 2);
  const auto bins = static_cast<std::size_t>(reach / bin);
  if (bins == 0) return;
  const Kinds kinds = kinds_of(elements);
  const std::size_t count = kinds.elements.size();
  std::vector<std::vector<std::vector<double>>> each(
      frames.size(), std::vector<std::vector<double>>(count * count, std::vector<double>(bins, 0.0)));
  pool.parallel_for(static_cast<std::int64_t>(frames.size()), [&](std::int64_t item, int) {
    const auto i = static_cast<std::size_t>(item);
    add_distances(frames[i], kinds, static_cast<double>(bins) * bin, each[i]);
  });
  analysis.bin_width = bin;
  for (std::size_t low = 0; low < count; ++low)
    for (std::size_t high = low; high < count; ++high) {
      PairDistribution pair{fmt::format("{}-{}", data::element_symbol(kinds.elements[low]),
                                        data::element_symbol(kinds.elements[high])),
                            std::vector<double>(bins, 0.0)};
      for (const auto& sums : each)
        for (std::size_t k = 0; k < bins; ++k)
          pair.g[k] += sums[low * count + high][k] / static_cast<double>(frames.size());
      analysis.pairs.push_back(std::move(pair));
    }
}

// Positions in a box of the mean size, so that its breathing is no motion of atoms; less the centre of mass.
std::vector<Cartesian> in_mean_box(const Frame& frame, double mean_volume,
                                   const std::vector<double>& masses) {
  const double scale = frame.cell ? std::cbrt(mean_volume / std::abs(frame.cell->volume())) : 1;
  Cartesian centre;
  double mass = 0;
  for (std::size_t i = 0; i < masses.size(); ++i) centre += masses[i] * frame.positions[i], mass += masses[i];
  std::vector<Cartesian> positions;
  for (const Cartesian& p : frame.positions) positions.push_back(scale * (p - centre * (1 / mass)));
  return positions;
}

void find_displacements(std::span<const Frame> frames, const std::vector<double>& masses,
                        Analysis& analysis) {
  if (frames.size() < 4) return;
  double volume = 0;
  for (const Frame& frame : frames)
    if (frame.cell) volume += std::abs(frame.cell->volume()) / static_cast<double>(frames.size());
  std::vector<std::vector<Cartesian>> positions;
  for (const Frame& frame : frames) positions.push_back(in_mean_box(frame, volume, masses));
  const double spacing = frames[1].time - frames[0].time;
  for (std::size_t lag = 0; lag <= frames.size() / 2; ++lag) {
    double sum = 0;
    for (std::size_t first = 0; first + lag < frames.size(); ++first)
      for (std::size_t i = 0; i < masses.size(); ++i) {
        const Cartesian moved = positions[first + lag][i] - positions[first][i];
        sum += dot(moved, moved);
      }
    analysis.lag.push_back(static_cast<double>(lag) * spacing);
    analysis.displacement.push_back(sum / static_cast<double>(masses.size() * (frames.size() - lag)));
  }
  const std::size_t from = analysis.lag.size() / 4;
  const Line line =
      fitted_line(std::span(analysis.lag).subspan(from), std::span(analysis.displacement).subspan(from));
  constexpr double two_for_each_dimension = 6;
  if (std::isfinite(line.slope))
    analysis.diffusion = line.slope / two_for_each_dimension * square_metre_per_second;
}

void find_speeds(std::span<const Frame> frames, const std::vector<double>& masses, Analysis& analysis) {
  if (!(analysis.temperature.value > 0)) return;
  const double width = fastest / static_cast<double>(speed_bins);
  std::vector<double> counts(speed_bins, 0.0);
  double all = 0;
  for (const Frame& frame : frames)
    for (std::size_t i = 0; i < frame.velocities.size(); ++i) {
      const double unit = std::sqrt(data::boltzmann_ev_per_kelvin * analysis.temperature.value *
                                    data::acceleration_unit / masses[i]);
      const auto place = static_cast<std::size_t>(norm(frame.velocities[i]) / unit / width);
      if (place < speed_bins) counts[place] += 1;
      all += 1;
    }
  if (all == 0) return;
  for (std::size_t k = 0; k < speed_bins; ++k) {
    const double u = (static_cast<double>(k) + 0.5) * width;
    analysis.speed.push_back(u);
    analysis.found.push_back(counts[k] / (all * width));
    analysis.expected.push_back(std::sqrt(2 / std::numbers::pi) * u * u * std::exp(-u * u / 2));
  }
}

void find_means(Analysis& a, const Settings& settings) {
  const ThermoSeries& s = a.thermo;
  a.equilibrated = static_cast<std::size_t>(
      std::ranges::lower_bound(s.step, static_cast<double>(settings.equilibration)) - s.step.begin());
  const auto rest = [&](const std::vector<double>& values) {
    return std::span(values).subspan(a.equilibrated);
  };
  a.temperature = block_mean(rest(s.temperature));
  a.pressure = block_mean(rest(s.pressure));
  a.volume = block_mean(rest(s.volume));
  const auto atoms = static_cast<double>(a.atoms);
  a.potential = block_mean(rest(s.potential));
  a.potential.value /= atoms, a.potential.error /= atoms;
  const Line line = fitted_line(rest(s.time), rest(s.conserved));
  constexpr double mev_per_ev = 1e3, fs_per_ns = 1e6;
  a.drift = line.slope * mev_per_ev * fs_per_ns / atoms;
  a.scatter = line.scatter * mev_per_ev / atoms;
}

}  // namespace

Mean block_mean(std::span<const double> values) {
  constexpr std::size_t blocks = 10;
  Mean found{mean(values), none};
  if (values.size() < 2 * blocks) return found;
  const std::size_t length = values.size() / blocks;
  double squares = 0;
  std::array<double, blocks> means{};
  for (std::size_t b = 0; b < blocks; ++b) means[b] = mean(values.subspan(b * length, length));
  const double middle = mean(means);
  for (const double each : means) squares += (each - middle) * (each - middle);
  found.error = std::sqrt(squares / (blocks * (blocks - 1)));
  return found;
}

Analysis analyse(const RunFolder& folder, ThreadPool& pool) {
  Analysis analysis;
  const std::vector<int> elements = folder.start().atoms.elements;
  std::vector<double> masses;
  for (const int element : elements) masses.push_back(data::element_mass(element));
  analysis.atoms = elements.size();
  analysis.thermo = read_thermo(folder.thermo());
  find_means(analysis, folder.settings());
  const std::vector<Frame> frames = read_frames(folder, analysis);
  find_distributions(frames, elements, pool, analysis);
  find_displacements(frames, masses, analysis);
  find_speeds(frames, masses, analysis);
  return analysis;
}

void write_tables(const Analysis& analysis, const std::filesystem::path& folder) {
  if (!analysis.pairs.empty()) {
    std::vector<std::string> header{"r_A"};
    for (const PairDistribution& pair : analysis.pairs) header.push_back("g_" + pair.label);
    data::CsvWriter table(folder / "rdf.csv", header);
    for (std::size_t k = 0; k < analysis.pairs[0].g.size(); ++k) {
      table.cell((static_cast<double>(k) + 0.5) * analysis.bin_width);
      for (const PairDistribution& pair : analysis.pairs) table.cell(pair.g[k]);
      table.end_row();
    }
    table.close();
  }
  const auto write = [&](const char* name, const std::vector<std::string>& header,
                         std::initializer_list<const std::vector<double>*> columns) {
    if ((*columns.begin())->empty()) return;
    data::CsvWriter table(folder / name, header);
    for (std::size_t i = 0; i < (*columns.begin())->size(); ++i) {
      for (const std::vector<double>* column : columns) table.cell((*column)[i]);
      table.end_row();
    }
    table.close();
  };
  write("displacement.csv", {"lag_ps", "mean_squared_displacement_A2"},
        {&analysis.lag, &analysis.displacement});
  write("speeds.csv", {"speed", "found", "maxwell_boltzmann"},
        {&analysis.speed, &analysis.found, &analysis.expected});
}

}  // namespace superstep::md
