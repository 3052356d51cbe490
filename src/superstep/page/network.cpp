#include "superstep/page/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/page/page.h"

namespace superstep::page {
namespace {

// Pixels, chosen: a box holds two lines of some twenty letters.
constexpr double gap_x = 16, gap_y = 30, bend_width = 10, margin = 4;
constexpr std::size_t letters = 22;
constexpr int sweeps = 12;  // down and up; more change little

// A node, or a bend of a connection that passes a layer.
struct Item {
  int layer = 0;
  double width = network_box_width, x = 0;
  std::vector<std::size_t> above, below;
};

class Layers {
 public:
  explicit Layers(std::span<const NetworkNode> nodes) : nodes_(nodes), items_(nodes.size()) {
    find_layers();
    join();
    for (int i = 0; i < sweeps; ++i) order(i % 2 == 0);
    place();
  }

  NetworkLayout layout() const {
    NetworkLayout layout;
    const auto place_of = [&](std::size_t item) {
      const Item& each = items_[item];
      const double step = network_box_height + gap_y;
      return NetworkLayout::Place{each.x, margin + network_box_height / 2 + step * each.layer, each.layer};
    };
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      layout.places.push_back(place_of(node));
      auto& connections = layout.connections.emplace_back();
      for (const auto& way : ways_[node]) {
        auto& places = connections.emplace_back();
        for (const std::size_t item : way) places.push_back(place_of(item));
      }
    }
    for (const Item& item : items_) layout.width = std::max(layout.width, item.x + item.width / 2 + margin);
    layout.height = 2 * margin + network_box_height * static_cast<double>(layers_.size()) +
                    gap_y * static_cast<double>(layers_.empty() ? 0 : layers_.size() - 1);
    return layout;
  }

 private:
  void find_layers() {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      for (const std::size_t from : nodes_[i].reads) {
        if (from >= i) throw Error(ErrorCode::invalid_argument, "a node of a drawing reads one after it");
        items_[i].layer = std::max(items_[i].layer, items_[from].layer + 1);
      }
    std::vector<int> first(nodes_.size(), -1);  // layer of the first reader
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      for (const std::size_t from : nodes_[i].reads)
        first[from] = first[from] < 0 ? items_[i].layer : std::min(first[from], items_[i].layer);
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].reads.empty() && first[i] > 0) items_[i].layer = first[i] - 1;
  }

  // Connections are cut into pieces of one layer.
  void join() {
    ways_.resize(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      for (const std::size_t from : nodes_[i].reads) {
        std::vector<std::size_t>& way = ways_[i].emplace_back(1, from);
        for (int layer = items_[from].layer + 1; layer < items_[i].layer; ++layer) {
          items_.push_back({.layer = layer, .width = bend_width});
          link(way.back(), items_.size() - 1);
          way.push_back(items_.size() - 1);
        }
        link(way.back(), i);
        way.push_back(i);
      }
    int last = -1;
    for (const Item& item : items_) last = std::max(last, item.layer);
    layers_.resize(static_cast<std::size_t>(last + 1));
    for (std::size_t i = 0; i < items_.size(); ++i)
      layers_[static_cast<std::size_t>(items_[i].layer)].push_back(i);
    for (const auto& layer : layers_) number(layer);
  }
  void link(std::size_t from, std::size_t to) {
    items_[from].below.push_back(to);
    items_[to].above.push_back(from);
  }
  void number(const std::vector<std::size_t>& layer) {
    for (std::size_t at = 0; at < layer.size(); ++at) items_[layer[at]].x = static_cast<double>(at);
  }

  // The mean place of what an item is joined to; its own without any.
  double middle_of(std::size_t item, bool of_above) const {
    const std::vector<std::size_t>& others = of_above ? items_[item].above : items_[item].below;
    if (others.empty()) return items_[item].x;
    double sum = 0;
    for (const std::size_t other : others) sum += items_[other].x;
    return sum / static_cast<double>(others.size());
  }

  template <class Function>
  void for_each_layer(bool down, const Function& function) {
    if (down)
      for (auto& layer : layers_) function(layer);
    else
      for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) function(*layer);
  }

  void order(bool down) {
    for_each_layer(down, [&](std::vector<std::size_t>& layer) {
      std::vector<std::pair<double, std::size_t>> by_middle;
      for (const std::size_t item : layer) by_middle.emplace_back(middle_of(item, down), item);
      std::ranges::stable_sort(by_middle, {}, &std::pair<double, std::size_t>::first);
      for (std::size_t at = 0; at < layer.size(); ++at) layer[at] = by_middle[at].second;
      number(layer);
    });
  }

  // Each as near to where it wants to be as its neighbors let it: means of blocks that would overlap.
  void settle(const std::vector<std::size_t>& layer, const std::vector<double>& wanted) {
    struct Block {
      double sum;
      std::size_t count;
      double mean() const { return sum / static_cast<double>(count); }
    };
    std::vector<double> offset(layer.size(), 0);
    for (std::size_t at = 1; at < layer.size(); ++at)
      offset[at] = offset[at - 1] + (items_[layer[at - 1]].width + items_[layer[at]].width) / 2 + gap_x;
    std::vector<Block> blocks;
    for (std::size_t at = 0; at < layer.size(); ++at) {
      blocks.push_back({wanted[at] - offset[at], 1});
      while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
        const Block last = blocks.back();
        blocks.pop_back();
        blocks.back() = {blocks.back().sum + last.sum, blocks.back().count + last.count};
      }
    }
    std::size_t at = 0;
    for (const Block& block : blocks)
      for (std::size_t i = 0; i < block.count; ++i, ++at) items_[layer[at]].x = block.mean() + offset[at];
  }

  void place() {
    for (const auto& layer : layers_) settle(layer, std::vector<double>(layer.size(), 0));
    for (int i = 0; i < sweeps; ++i)
      for_each_layer(i % 2 == 0, [&](std::vector<std::size_t>& layer) {
        std::vector<double> wanted;
        for (const std::size_t item : layer) wanted.push_back(middle_of(item, i % 2 == 0));
        settle(layer, wanted);
      });
    double least = 0;
    for (const Item& item : items_) least = std::min(least, item.x - item.width / 2);
    for (Item& item : items_) item.x += margin - least;
  }

  std::span<const NetworkNode> nodes_;
  std::vector<Item> items_;                       // nodes, then bends
  std::vector<std::vector<std::size_t>> layers_;  // from left to right
  std::vector<std::vector<std::vector<std::size_t>>>
      ways_;  // by node and what it reads: items, from there to it
};

// The middle of a long name says least.
std::string cut(const std::string& text) {
  if (text.size() <= letters) return text;
  return text.substr(0, letters / 2 - 2) + "..." + text.substr(text.size() - letters / 2 + 1);
}

// From the foot of a box through bends to the head of another, down all the way.
std::string connection(const std::vector<NetworkLayout::Place>& way) {
  double x = way.front().x, y = way.front().y + network_box_height / 2;
  std::string path = fmt::format("M{:.1f} {:.1f}", x, y);
  for (std::size_t at = 1; at < way.size(); ++at) {
    const double next_x = way[at].x, next_y = way[at].y - network_box_height / 2, bend = (next_y - y) / 2;
    path += fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", x, y + bend, next_x, next_y - bend,
                        next_x, next_y);
    x = next_x, y = next_y;
    if (at + 1 == way.size()) break;
    y += network_box_height;
    path += fmt::format("V{:.1f}", y);
  }
  return path;
}

std::string box(const NetworkNode& node, const NetworkLayout::Place& place) {
  const double left = place.x - network_box_width / 2, top = place.y - network_box_height / 2;
  std::string svg = "<g>";
  if (!node.hint.empty()) svg += fmt::format("<title>{}</title>", escape(node.hint));
  svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" rx=\"4\"{}/>", left, top,
                     network_box_width, network_box_height,
                     node.fill.empty() ? "" : fmt::format(" style=\"fill:{}\"", escape(node.fill)));
  const bool two = !node.text.empty();
  svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>", place.x, place.y + (two ? -3 : 4.5),
                     node.fill.empty() ? "" : " class=\"on\"", escape(cut(node.title)));
  if (two)
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>", place.x, place.y + 11.5,
                       node.fill.empty() ? "soft" : "on soft", escape(cut(node.text)));
  return svg + "</g>";
}

}  // namespace

NetworkLayout laid_out(std::span<const NetworkNode> nodes) { return Layers(nodes).layout(); }

std::string network_figure(std::span<const NetworkNode> nodes) {
  const NetworkLayout layout = laid_out(nodes);
  std::string paths, boxes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const auto& way : layout.connections[i]) paths += connection(way);
    boxes += box(nodes[i], layout.places[i]);
  }
  return fmt::format(
      "<figure class=\"network\" tabindex=\"0\"><svg class=\"network\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" aria-label=\"the network\"><path d=\"{2}\"/>{3}</svg>"
      "</figure>\n",
      layout.width, layout.height, paths, boxes);
}

}  // namespace superstep::page
