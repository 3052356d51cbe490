// A study as a page: target, box and curves of every iteration, what was predicted, and the table of trials.
#pragma once

#include <filesystem>
#include <optional>

#include "superstep/design/study.h"
#include "superstep/page/page.h"

namespace superstep::design {

// The curves of one iteration: the target in its box, the prediction in its uncertainty, what was measured at
// the settings of the prediction (empty where that is yet to be done).
page::Plot plot_of(const Problem& problem, const Iteration& iteration, std::span<const double> measured);

// The same as a PNG file: the target in blue, the prediction in orange, what was measured in green.
void write_picture(const std::filesystem::path& path, const Problem& problem, const Study& study,
                   const Iteration& iteration);

// The whole study; `references` where there is a simulator.
page::Page page_of(const Problem& problem, const Study& study, const std::optional<References>& references);

// A proposal for trials that others make.
page::Page page_of(const Problem& problem, std::span<const Trial> trials, const Iteration& next);

// "purge_a 0.213 s, mass_b 0.48".
std::string settings_text(const Problem& problem, std::span<const double> settings);

}  // namespace superstep::design
