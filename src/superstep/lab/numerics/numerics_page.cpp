// The page of a comparison: the network, colored by what its nodes make of the difference.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "superstep/lab/numerics/compare_numerics.h"
#include "superstep/page/page.h"

namespace superstep::lab {
namespace {

// Pixels, chosen: a name of fourteen letters fits a box, and a network of a hundred nodes a few screens.
constexpr int box_width = 128, box_height = 34, gap_x = 12, gap_y = 22;
constexpr double least_error = 1e-8;  // of f32's last place, where the scale of errors begins

// How far down each node stands: one below the lowest that it reads.
std::vector<int> depths_of(const std::vector<NodeDifference>& nodes) {
  std::vector<int> depths(nodes.size(), 0);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const std::size_t from : nodes[i].reads) depths[i] = std::max(depths[i], depths[from] + 1);
  return depths;
}

// From white, for nothing, to red: a share as it is, an error by its power of ten.
std::string color_of(double part) {
  const int rest = static_cast<int>(std::lround(255 * (1 - std::clamp(part, 0.0, 1.0))));
  return fmt::format("rgb(255,{},{})", rest, rest);
}

double part_of(const NodeDifference& node, bool by_share) {
  if (by_share) return std::max(node.share, 0.0);
  if (!std::isfinite(node.error)) return 1;
  return node.error <= least_error ? 0 : std::log10(node.error / least_error) / std::log10(1 / least_error);
}

struct Place {
  int x, y;
};

std::string box(const NodeDifference& node, Place at, bool by_share) {
  std::string name = node.name.empty() ? node.op : node.name;
  constexpr std::size_t letters = 17;
  if (name.size() > letters) name = "..." + name.substr(name.size() - letters + 3);
  const std::string says = by_share && node.share >= 0 ? fmt::format("{:.1f} %", 100 * node.share)
                                                       : fmt::format("{:.1e}", node.error);
  return fmt::format(
      "<g><title>{}: {}, {}, error {:.2e}</title><rect x='{}' y='{}' width='{}' height='{}' rx='3' fill='{}' "
      "stroke='#666'/><text x='{}' y='{}' font-size='11' fill='#000'>{}</text><text x='{}' y='{}' "
      "font-size='10' "
      "fill='#333'>{} {}</text></g>",
      page::escape(node.name), page::escape(node.op), page::escape(node.way), node.error, at.x, at.y,
      box_width, box_height, color_of(part_of(node, by_share)), at.x + 5, at.y + 14, page::escape(name),
      at.x + 5, at.y + 28, page::escape(node.op.substr(node.op.rfind('.') + 1)), says);
}

std::string network(const std::vector<NodeDifference>& nodes, bool by_share) {
  const std::vector<int> depths = depths_of(nodes);
  std::map<int, int> taken;
  std::vector<Place> places;
  int width = 0, height = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const int column = taken[depths[i]]++;
    places.push_back({column * (box_width + gap_x) + 2, depths[i] * (box_height + gap_y) + 2});
    width = std::max(width, places[i].x + box_width + 2),
    height = std::max(height, places[i].y + box_height + 2);
  }
  std::string svg =
      fmt::format("<svg xmlns='http://www.w3.org/2000/svg' width='{}' height='{}' viewBox='0 0 {} {}'>",
                  width, height, width, height);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const std::size_t from : nodes[i].reads)
      svg +=
          fmt::format("<line x1='{}' y1='{}' x2='{}' y2='{}' stroke='#999'/>", places[from].x + box_width / 2,
                      places[from].y + box_height, places[i].x + box_width / 2, places[i].y);
  for (std::size_t i = 0; i < nodes.size(); ++i) svg += box(nodes[i], places[i], by_share);
  return "<div style='overflow-x:auto'>" + svg + "</svg></div>";
}

page::Plot losses(const NumericsComparison& c) {
  page::Plot plot{.title = "Loss of every step", .x_label = "step", .y_label = "loss"};
  for (const TrainedPair& pair : c.trainings)
    for (const bool of : {true, false}) {
      page::Series series{.label = fmt::format("{}, seed {}", of ? c.of : c.with, pair.seed)};
      series.y = of ? pair.of : pair.with;
      for (std::size_t i = 0; i < series.y.size(); ++i) series.x.push_back(static_cast<double>(i + 1));
      plot.series.push_back(std::move(series));
    }
  return plot;
}

}  // namespace

void write_page(const NumericsComparison& c, const std::filesystem::path& path) {
  page::Page page(fmt::format("{}: {} beside {}", c.workload, c.with, c.of));
  for (const std::string& sentence : c.sentences) page.paragraph(sentence);
  page.facts({{c.of, c.of_words},
              {c.with, c.with_words},
              {"samples", fmt::format("{}", c.batch)},
              {"weights", c.trained_weights ? "trained" : "initial"}});
  if (!c.trainings.empty()) page.plot(losses(c));
  page.heading("What each node makes of the difference");
  page.paragraph(
      "Red: the share of the final difference that the node makes alone; the number is that share, or "
      "where it is too small to be looked for, the error that its results have.");
  page.raw(network(c.nodes.nodes, true));
  page.heading("Where the difference stands");
  page.paragraph("Red: the error of the node's results beside the other arithmetic, by its power of ten.");
  page.raw(network(c.nodes.nodes, false));
  page.preformatted(to_text(c, true));
  page.write(path);
}

}  // namespace superstep::lab
