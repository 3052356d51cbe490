// Drawings of networks: nodes in layers, each below all that it reads, with few crossings.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace superstep::page {

struct NetworkNode {
  std::string title, text;         // two lines of a box; what is too long is cut in the middle
  std::string hint = {};           // what the pointer on it tells
  std::string fill = {};           // a CSS color; empty: the page's own
  std::vector<std::size_t> reads;  // numbers of nodes before it
};

// Where the middle of a node's box lies, in pixels, and how large the drawing is.
struct NetworkLayout {
  struct Place {
    double x = 0, y = 0;
    int layer = 0;
  };
  std::vector<Place> places;                                 // by node
  std::vector<std::vector<std::vector<Place>>> connections;  // by node and what it reads: from there to here
  double width = 0, height = 0;
};
constexpr double network_box_width = 150, network_box_height = 36;

// Layers by the longest path; what nobody feeds stands right above its first reader; order within a layer by
// barycenters, and places that move least from the middle of what they are joined to (K. Sugiyama, S. Tagawa,
// M. Toda, 1981; the last step an isotonic regression). Throws Error (invalid_argument) when a node reads
// itself or one after it.
NetworkLayout laid_out(std::span<const NetworkNode> nodes);

// An SVG drawing of it in a figure that scrolls.
std::string network_figure(std::span<const NetworkNode> nodes);

}  // namespace superstep::page
