// Energies and forces against the known ones, errors frame by frame, and frames with the forces on their
// atoms.
#include "superstep/workload/pictures/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/workload/materials/deepmd/deepmd.h"
#include "superstep/workload/pictures/atoms_in_space.h"

namespace superstep::workload {
namespace {

constexpr std::size_t drawn_of_each_kind = 1;  // best, median, worst
constexpr std::size_t most_components = 6000;  // of forces in one plot: more are no other cloud
constexpr double longest_arrow = 1.5;          // A

double atoms_of(const FrameAnswers& answers, std::size_t i) {
  return static_cast<double>(answers.frames[i]->row.size());
}

double energy_error(const FrameAnswers& answers, std::size_t i) {
  const double known = answers.frames[i]->frame.labels.energy.value_or(NAN);
  return 1e3 * (answers.energies[i] - known) / atoms_of(answers, i);
}

// Root mean square over the components of one frame, meV/A.
double force_error(const FrameAnswers& answers, std::size_t i) {
  const auto& known = answers.frames[i]->frame.labels.forces;
  double squares = 0;
  for (std::size_t k = 0; k < known.size(); ++k) {
    const data::Cartesian apart = answers.forces[i][k] - known[k];
    squares += dot(apart, apart);
  }
  return known.empty() ? NAN : 1e3 * std::sqrt(squares / (3 * static_cast<double>(known.size())));
}

void add_energies(page::Page& page, const FrameAnswers& answers) {
  Regression regression{
      .quantity = "Energy an atom", .unit = "eV", .truth = {}, .found = {}, .samples = answers.samples};
  for (std::size_t i = 0; i < answers.frames.size(); ++i) {
    regression.truth.push_back(answers.frames[i]->frame.labels.energy.value_or(NAN) / atoms_of(answers, i));
    regression.found.push_back(answers.energies[i] / atoms_of(answers, i));
  }
  present_regression(page, regression);
}

void add_forces(page::Page& page, const FrameAnswers& answers) {
  std::size_t all = 0;
  for (const PlacedFrame* frame : answers.frames) all += 3 * frame->frame.labels.forces.size();
  if (all == 0) return;
  const std::size_t stride = (all + most_components - 1) / most_components;
  Regression regression{
      .quantity = "Force component", .unit = "eV/A", .truth = {}, .found = {}, .samples = {}};
  std::size_t at = 0;
  for (std::size_t i = 0; i < answers.frames.size(); ++i) {
    const auto& known = answers.frames[i]->frame.labels.forces;
    for (std::size_t k = 0; k < known.size(); ++k) {
      const data::Cartesian &truth = known[k], &found = answers.forces[i][k];
      for (const auto& [a, b] : {std::pair(truth.x, found.x), {truth.y, found.y}, {truth.z, found.z}})
        if (at++ % stride == 0) {
          regression.truth.push_back(a), regression.found.push_back(b);
          regression.samples.push_back(answers.samples[i]);
        }
    }
  }
  present_regression(page, regression);
}

void add_errors_by_frame(page::Page& page, const FrameAnswers& answers) {
  page::Series energy{.label = "energy, meV an atom", .x = {}, .y = {}, .low = {}, .high = {}};
  page::Series force{.label = "forces, meV/A", .x = {}, .y = {}, .low = {}, .high = {}};
  energy.style = force.style = page::Series::Style::points;
  for (std::size_t i = 0; i < answers.frames.size(); ++i) {
    const auto sample = static_cast<double>(answers.samples[i]);
    energy.x.push_back(sample), energy.y.push_back(std::abs(energy_error(answers, i)));
    force.x.push_back(sample), force.y.push_back(force_error(answers, i));
  }
  page.plot({.title = "Errors by frame",
             .x_label = "frame",
             .y_label = "error",
             .log_y = true,
             .series = {energy, force},
             .horizontal = {},
             .vertical = {}});
}

std::string figure(const FrameAnswers& answers, const Chosen& chosen, double scale) {
  const PlacedFrame& frame = *answers.frames[chosen.at];
  const std::string caption =
      fmt::format("{}: frame {}, {} atoms, forces off by {:.1f} meV/A, energy by {:+.2f} meV an atom",
                  chosen.why, answers.samples[chosen.at], frame.row.size(), force_error(answers, chosen.at),
                  energy_error(answers, chosen.at));
  const std::vector<AtomArrows> arrows{{frame.frame.labels.forces, "var(--ink)"},
                                       {answers.forces[chosen.at], "#2a9d4a"}};
  return fmt::format(
      "<figure style=\"display: inline-block; margin: 0.6rem\">{}<figcaption>{}</figcaption></figure>\n",
      atoms_svg(frame.frame.configuration, arrows, scale, caption), page::escape(caption));
}

void add_drawings(page::Page& page, const FrameAnswers& answers) {
  std::vector<double> errors;
  double most = 0;
  for (std::size_t i = 0; i < answers.frames.size(); ++i) {
    errors.push_back(force_error(answers, i));
    for (const data::Cartesian& force : answers.frames[i]->frame.labels.forces)
      most = std::max(most, data::norm(force));
  }
  if (most == 0) return;
  page.heading("Frames", 3);
  page.paragraph(
      fmt::format("Forces that are known in the color of the text, those of the model in green; the longest "
                  "is {:.2g} eV/A.",
                  most));
  std::string figures = "<div>\n";
  for (const Chosen& each : best_median_worst(errors, drawn_of_each_kind))
    figures += figure(answers, each, longest_arrow / most);
  page.raw(figures + "</div>\n");
}

}  // namespace

std::string present_frames(const FrameAnswers& answers, page::Page& page) {
  add_energies(page, answers);
  add_forces(page, answers);
  add_errors_by_frame(page, answers);
  add_drawings(page, answers);
  return {};
}

}  // namespace superstep::workload
