// Memory on the page of a profile: tile by tile, and over the program.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/bsp/profile/profile_page.h"
#include "superstep/bsp/profile/profile_sums.h"

namespace superstep::bsp {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t drawn_categories = 8;  // as many as there are colours; the last is of all the rest
constexpr int bins = 40;

double kilobytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e3; }

// The categories, the largest first.
std::vector<MemoryCategory> by_size(const TileMemory& sums) {
  std::vector<MemoryCategory> categories(std::begin(memory_categories), std::end(memory_categories));
  std::ranges::stable_sort(categories, std::greater(),
                           [&](const MemoryCategory& category) { return sums.*category.bytes; });
  return categories;
}

std::vector<page::Series> categories_of_tiles(const CompilationProfile& compilation, const MemorySums& sums) {
  std::vector<double> tiles(compilation.tiles.size());
  std::iota(tiles.begin(), tiles.end(), 0.0);
  std::vector<page::Series> shares;
  for (const MemoryCategory& category : by_size(sums.by_category)) {
    if (sums.by_category.*category.bytes == 0) break;
    const bool rest = shares.size() == drawn_categories;
    if (!rest) shares.push_back({.label = category.name, .x = tiles, .y = std::vector<double>(tiles.size())});
    if (rest) shares.back().label = "other";
    for (std::size_t tile = 0; tile < tiles.size(); ++tile)
      shares.back().y[tile] += kilobytes(compilation.tiles[tile].*category.bytes);
  }
  return page::stacked(shares);
}

// What the tile has is drawn where it is near what they need: elsewhere it would press all else flat.
page::Plot tiles_plot(const CompilationProfile& compilation, const MemorySums& sums) {
  page::Plot plot{.title = "What every tile holds",
                  .x_label = "tile",
                  .y_label = "kB",
                  .series = categories_of_tiles(compilation, sums)};
  if (2 * sums.max_including_gaps > compilation.device.bytes_per_tile)
    plot.horizontal = {{kilobytes(compilation.device.bytes_per_tile), "a tile's memory"}};
  return plot;
}

page::Plot histogram_plot(const CompilationProfile& compilation) {
  std::vector<double> totals;
  for (const TileMemory& tile : compilation.tiles) totals.push_back(kilobytes(tile.including_gaps()));
  const auto [low, high] = std::ranges::minmax_element(totals);
  return {.title = "How full the tiles are",
          .x_label = "kB of a tile",
          .y_label = "tiles",
          .series = {page::histogram("", totals, *low, *high, bins)}};
}

// The message of the compiler: a line of what, then a tenant a line.
void add_too_full(page::Page& page, const std::string& message) {
  if (message.empty()) return;
  Rows rows;
  std::size_t at = message.find('\n');
  page.paragraph("Too full: " + message.substr(0, at));
  while (at != std::string::npos) {
    const std::size_t next = message.find('\n', at + 1);
    const std::string line = message.substr(at + 1, next == std::string::npos ? next : next - at - 1);
    const std::size_t unit = line.find(" B  ");
    if (unit != std::string::npos)
      rows.push_back({line.substr(unit + 4),
                      line.substr(line.find_first_not_of(' '), unit - line.find_first_not_of(' '))});
    at = next;
  }
  page.table({"tenant", "B"}, rows);
}

void add_categories(page::Page& page, const MemorySums& sums, const TileMemory& fullest) {
  Rows rows;
  for (const MemoryCategory& category : by_size(sums.by_category))
    if (sums.by_category.*category.bytes > 0)
      rows.push_back(
          {category.name, count_text(sums.by_category.*category.bytes), count_text(fullest.*category.bytes)});
  rows.push_back({"in all", count_text(sums.including_gaps), count_text(fullest.including_gaps())});
  const std::size_t all = rows.size() - 1;
  page.table({"what", "all tiles, B", fmt::format("fullest tile ({}), B", sums.fullest_tile)}, rows,
             {&all, 1});
}

page::Plot liveness_plot(const char* title, const char* unit, double scale,
                         const std::vector<LivenessStep>& steps, std::uint64_t LivenessStep::*bytes) {
  page::Series series{.label = "", .x = {}, .y = {}, .style = page::Series::Style::steps};
  for (const LivenessStep& step : steps) {
    series.x.push_back(static_cast<double>(&step - steps.data()));
    series.y.push_back(static_cast<double>(step.*bytes) / scale);
  }
  return {.title = title, .x_label = "step of the program", .y_label = unit, .series = {std::move(series)}};
}

std::string shown_step(const LivenessStep& step) {
  StepProfile named;
  named.name = step.name;
  named.kind = step.kind;
  return shown_name(named);
}

// A variable is named after the operator that makes it, where the model has no name for it.
std::string shown_variable(const std::string& name) {
  StepProfile named;
  named.name = name;
  return name.find('#') == std::string::npos ? name : shown_name(named);
}

}  // namespace

void add_memory(page::Page& page, const CompilationProfile& compilation) {
  const MemorySums sums = sum_memory(compilation);
  page.heading("Memory by tile");
  page.paragraph(fmt::format("A tile has {} kB. The fullest, tile {}, needs {:.1f} kB ({:.1f} %).",
                             compilation.device.bytes_per_tile / 1000, sums.fullest_tile,
                             kilobytes(sums.max_including_gaps),
                             100.0 * static_cast<double>(sums.max_including_gaps) /
                                 static_cast<double>(compilation.device.bytes_per_tile)));
  add_too_full(page, compilation.too_full);
  page.begin_row().plot(tiles_plot(compilation, sums));
  const auto total = [](const TileMemory& tile) { return tile.including_gaps(); };
  const auto [low, high] = std::ranges::minmax(compilation.tiles, {}, total);
  if (total(low) < total(high)) page.plot(histogram_plot(compilation));
  add_categories(page, sums, compilation.tiles[sums.fullest_tile]);
  page.end_row();
}

void add_liveness(page::Page& page, const CompilationProfile& compilation) {
  const std::vector<LivenessStep>& steps = compilation.liveness;
  if (steps.empty()) return;
  page.heading("Liveness over the program");
  page.paragraph("Memory that is needed for a part of the program alone; other variables share it later.");
  page.begin_row();
  page.plot(
      liveness_plot("Not always live, all tiles", "MB", 1e6, steps, &LivenessStep::not_always_live_bytes));
  page.plot(liveness_plot("Not always live, fullest tile", "kB", 1e3, steps, &LivenessStep::max_tile_bytes));
  const auto worst = std::ranges::max_element(steps, {}, &LivenessStep::not_always_live_bytes);
  Rows rows;
  for (const auto& [name, bytes] : worst->largest) rows.push_back({shown_variable(name), count_text(bytes)});
  if (!rows.empty()) {
    page.begin_column().paragraph(
        fmt::format("Most is live at step {}, {}:", worst - steps.begin(), shown_step(*worst)));
    page.table({"variable", "B"}, rows).end_column();
  }
  page.end_row();
}

}  // namespace superstep::bsp
