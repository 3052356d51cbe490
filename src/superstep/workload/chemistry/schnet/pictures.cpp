// Energies of clusters against the known ones, by size, and clusters with the forces on their atoms.
#include "superstep/workload/pictures/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "superstep/workload/chemistry/schnet/schnet.h"
#include "superstep/workload/pictures/atoms_in_space.h"

namespace superstep::workload {
namespace {

constexpr std::size_t drawn_of_each_kind = 2;  // best, median, worst
constexpr double longest_arrow = 1.5;          // A

double missed_meV(const ClusterAnswers& answers, std::size_t i) {
  return 1e3 * (answers.energies[i] - answers.clusters[i]->energy.value_or(NAN)) /
         answers.clusters[i]->molecules;
}

void add_sizes(page::Page& page, const ClusterAnswers& answers) {
  std::map<int, std::pair<double, double>> by_size;  // sum, count
  for (std::size_t i = 0; i < answers.clusters.size(); ++i) {
    auto& [sum, count] = by_size[answers.clusters[i]->molecules];
    sum += std::abs(missed_meV(answers, i)), count += 1;
  }
  page::Series series{.label = "mean error", .x = {}, .y = {}, .low = {}, .high = {}};
  series.style = page::Series::Style::bars;
  for (const auto& [molecules, sums] : by_size)
    series.x.push_back(molecules), series.y.push_back(sums.first / sums.second);
  page.plot({.title = "Error by size",
             .x_label = "molecules",
             .y_label = "meV a molecule",
             .series = {series},
             .horizontal = {},
             .vertical = {}});
}

std::string figure(const ClusterAnswers& answers, const Chosen& chosen, double scale) {
  const Cluster& cluster = *answers.clusters[chosen.at];
  const std::string caption =
      fmt::format("{}: cluster {}, {} atoms, {:+.2f} meV a molecule", chosen.why, answers.samples[chosen.at],
                  cluster.atoms.elements.size(), missed_meV(answers, chosen.at));
  std::vector<AtomArrows> arrows;
  if (!cluster.forces.empty()) arrows.push_back({cluster.forces, "var(--ink)"});
  if (!answers.forces.empty()) arrows.push_back({answers.forces[chosen.at], "#2a9d4a"});
  return fmt::format(
      "<figure style=\"display: inline-block; margin: 0.6rem\">{}<figcaption>{}</figcaption></figure>\n",
      atoms_svg(cluster.atoms, arrows, scale, caption), page::escape(caption));
}

void add_drawings(page::Page& page, const ClusterAnswers& answers) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < answers.clusters.size(); ++i)
    errors.push_back(std::abs(missed_meV(answers, i)));
  const std::vector<Chosen> chosen = best_median_worst(errors, drawn_of_each_kind);
  double most = 0;
  for (const Chosen& each : chosen)
    for (const data::Cartesian& force : answers.clusters[each.at]->forces)
      most = std::max(most, data::norm(force));
  page.heading("Clusters", 3);
  page.paragraph(
      fmt::format("Forces that are known in the color of the text, those of the network in green; the "
                  "longest is {:.2g} eV/A.",
                  most));
  std::string figures = "<div>\n";
  for (const Chosen& each : chosen) figures += figure(answers, each, most > 0 ? longest_arrow / most : 1);
  page.raw(figures + "</div>\n");
}

}  // namespace

std::string present_clusters(const ClusterAnswers& answers, page::Page& page) {
  Regression regression{
      .quantity = "Energy a molecule", .unit = "eV", .truth = {}, .found = {}, .samples = answers.samples};
  for (std::size_t i = 0; i < answers.clusters.size(); ++i) {
    const double molecules = answers.clusters[i]->molecules;
    regression.truth.push_back(answers.clusters[i]->energy.value_or(NAN) / molecules);
    regression.found.push_back(answers.energies[i] / molecules);
  }
  present_regression(page, regression);
  add_sizes(page, answers);
  add_drawings(page, answers);
  return {};
}

}  // namespace superstep::workload
