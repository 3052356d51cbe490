// The page of a comparison: the network, colored by what its nodes make of the difference.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/lab/numerics/compare_numerics.h"
#include "superstep/page/network.h"
#include "superstep/page/page.h"

namespace superstep::lab {
namespace {

constexpr double least_error = 1e-8;  // of f32's last place, where the scale of errors begins

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

std::string network(const std::vector<NodeDifference>& nodes, bool by_share) {
  std::vector<page::NetworkNode> boxes;
  for (const NodeDifference& node : nodes) {
    const std::string says = by_share && node.share >= 0 ? fmt::format("{:.1f} %", 100 * node.share)
                                                         : fmt::format("{:.1e}", node.error);
    boxes.push_back(
        {.title = node.name.empty() ? node.op : node.name,
         .text = fmt::format("{} {}", node.op.substr(node.op.rfind('.') + 1), says),
         .hint = fmt::format("{}: {}, {}, error {:.2e}", node.name, node.op, node.way, node.error),
         .fill = color_of(part_of(node, by_share)),
         .reads = node.reads});
  }
  return page::network_figure(boxes);
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
