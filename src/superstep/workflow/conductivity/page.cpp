// The page of the study: what each way out of a striped micrograph costs, and how sure the networks are.
#include "superstep/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/workflow/conductivity/study.h"

namespace superstep::workflow {
namespace {

constexpr std::size_t shown_sections = 4;
constexpr int section_pixels = 192;  // CSS pixels across

page::Series diagonal(double low, double high) {
  return {.label = "equal", .x = {low, high}, .y = {low, high}};
}

page::Plot labels_by_way(const Findings& findings) {
  page::Plot plot{.title = "Solved on what is made of the micrograph",
                  .x_label = "sigma_eff / sigma of the true section",
                  .y_label = "of the image that was found",
                  .series = {}};
  for (const Way& way : findings.ways)
    plot.series.push_back(
        {.label = way.name, .x = findings.test.ratio, .y = way.ratio, .style = page::Series::Style::points});
  plot.series.push_back(diagonal(0, 1));
  return plot;
}

// Ordered by what was predicted, so that the interval is a band and the truth lies in it or not.
page::Plot answers_in_intervals(const ConductivityStudy& study, const Findings& findings) {
  const Intervals& intervals = findings.intervals;
  std::vector<std::size_t> order(intervals.mean.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::ranges::sort(order, {}, [&](std::size_t k) { return intervals.mean[k]; });
  page::Series predicted{.label = fmt::format("networks, {:g} % within", 100 * study.level)};
  page::Series truth{.label = "true section", .style = page::Series::Style::points};
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::size_t k = order[place];
    const auto x = static_cast<double>(place);
    predicted.x.push_back(x), truth.x.push_back(x);
    predicted.y.push_back(intervals.mean[k]);
    predicted.low.push_back(std::max(0.0, intervals.mean[k] - intervals.half_width[k]));
    predicted.high.push_back(std::min(1.0, intervals.mean[k] + intervals.half_width[k]));
    truth.y.push_back(findings.test.ratio[k]);
  }
  return {.title = "Answers with their intervals",
          .x_label = "test sections, by what is predicted",
          .y_label = "sigma_eff / sigma",
          .series = {predicted, truth}};
}

page::Plot coverage(const Findings& findings) {
  const Intervals& intervals = findings.intervals;
  return {.title = "Are the intervals as wide as they should be?",
          .x_label = "share asked for",
          .y_label = "share of true sections inside",
          .series = {{.label = "test sections",
                      .x = intervals.levels,
                      .y = intervals.covered,
                      .style = page::Series::Style::points},
                     diagonal(intervals.levels.front(), intervals.levels.back())}};
}

template <class Bytes>
page::Picture picture(const Bytes& bytes, int side, float high, std::string caption) {
  const std::vector<float> values(bytes.begin(), bytes.end());
  return {.image = page::colored(values, side, side, page::Colormap::gray, 0.0f, high),
          .caption = std::move(caption),
          .marks = {},
          .scale = std::max(1, section_pixels / side)};
}

void add_section(page::Page& page, const ConductivityStudy& study, const Findings& findings, std::size_t k) {
  const auto section = static_cast<std::int64_t>(k);
  std::vector<page::Picture> pictures{
      picture(findings.test.micrograph(section), study.side, 255, "micrograph"),
      picture(findings.test.image(section), study.side, 1,
              fmt::format("section: {:.4f}", findings.test.ratio[k]))};
  const std::size_t plane = findings.test.image(section).size();
  for (const Way& way : findings.ways)
    pictures.push_back(picture(std::span(way.images).subspan(k * plane, plane), study.side, 1,
                               fmt::format("{}: {:.4f}", way.name, way.ratio[k])));
  page.begin_column()
      .heading(fmt::format("Section {}: the networks say {:.4f} \u00b1 {:.4f}", k, findings.intervals.mean[k],
                           findings.intervals.half_width[k]),
               4)
      .pictures(pictures)
      .end_column();
}

// Those of which the U-Net's image conducts most differently.
std::vector<std::size_t> worst_sections(const Findings& findings) {
  std::vector<std::size_t> order(findings.test.ratio.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t k) {
    return std::abs(findings.ways.back().ratio[k] - findings.test.ratio[k]);
  });
  order.resize(std::min(order.size(), shown_sections));
  return order;
}

}  // namespace

void write_page(const ConductivityStudy& study, const Findings& findings, const std::string& tables) {
  page::Page page("Conductivity of battery cathodes from striped micrographs");
  page.paragraph(fmt::format(
      "Sections of {0}x{0} pixels of a conducting and an insulating phase, seen in micrographs with the "
      "stripes of an ion beam. A U-Net separates the phases; {1} networks, trained on the solve of what it "
      "leaves, predict the effective conductivity. All figures are of {2} sections that none of them has "
      "seen.",
      study.side, study.members, findings.test.ratio.size()));
  page.preformatted(tables);
  page.begin_row()
      .plot(labels_by_way(findings))
      .plot(answers_in_intervals(study, findings))
      .plot(coverage(findings))
      .end_row();
  page.heading("Where the stripes that are left change the conductivity most");
  page.begin_row();
  for (const std::size_t k : worst_sections(findings)) add_section(page, study, findings, k);
  page.end_row();
  page.write(study.file("index.html"));
}

}  // namespace superstep::workflow
