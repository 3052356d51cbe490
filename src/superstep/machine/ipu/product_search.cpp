#include "superstep/machine/ipu/product_search.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "superstep/base/integers.h"
#include "superstep/machine/ipu/tile_share.h"

namespace superstep::machine::ipu {

std::vector<std::int64_t> distinct_splits(std::int64_t extent, std::int64_t most) {
  std::vector<std::int64_t> splits;
  const std::int64_t last = std::min(extent, most);
  for (std::int64_t split = 1; split <= last;) {
    splits.push_back(split);
    const std::int64_t part = ceil_div(extent, split);
    if (part == 1) break;
    split = ceil_div(extent, part - 1);
  }
  return splits;
}

namespace {

constexpr std::int64_t serial_choices[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
constexpr std::int64_t most_turns = 64;

class Search {
 public:
  Search(const Hardware& hardware, const Product& product, double limit, double most)
      : hardware_(hardware), product_(product), limit_(limit), best_cycles_(most) {
    double macs = static_cast<double>(product.groups * product.outputs) * static_cast<double>(product.inputs);
    for (const std::int64_t rows : product.rows) macs *= static_cast<double>(rows);
    for (const Axis& axis : product.window)
      macs *= static_cast<double>(axis.kernel) / static_cast<double>(axis.dilation);
    least_compute_ =
        macs / hardware.peak_macs(product.element, product.partials) / static_cast<double>(hardware.tiles);
  }

  void run(const Grain& grain) {
    grain_ = grain;
    partition_ = {};
    partition_.rows.assign(product_.rows.size(), 1);
    for (std::int64_t turns : serial_choices) serial_outputs(turns);
  }

  SearchResult best() const {
    SearchResult result;
    if (!found_) return result;
    result.grain = best_grain_;
    result.partition = best_;
    result.plan = cost_of(hardware_, product_, best_grain_, best_, share_of(product_, best_grain_, best_));
    result.plan.partition = best_.to_string();
    return result;
  }

 private:
  void serial_outputs(std::int64_t turns) {
    if (turns > ceil_div(product_.outputs, grain_.outputs)) return;
    if (product_.whole_channels && turns > 1) return;
    partition_.serial_outputs = turns;
    for (std::int64_t more : serial_choices) {
      if (product_.parts_only && more > 1) break;
      if (more * turns > most_turns || more > ceil_div(product_.inputs, grain_.inputs)) break;
      partition_.serial_inputs = more;
      if (turns_alone() < best_cycles_) split_groups();
    }
  }

  // What turns cost whatever is split: their barriers, exchanges and loop, and all arithmetic at its peak.
  double turns_alone() const {
    const double turns = static_cast<double>(partition_.serial_outputs * partition_.serial_inputs);
    const double loop = turns > 1 ? hardware_.step_cycles : 0;
    const bool at_peak = grain_.vertex == Vertex::amp_1x1 || grain_.vertex == Vertex::amp_nx1;
    return hardware_.program_cycles + turns * (hardware_.sync_cycles + loop) + (at_peak ? least_compute_ : 0);
  }

  void split_groups() {
    for (std::int64_t split : distinct_splits(product_.groups, hardware_.tiles)) {
      partition_.groups = split;
      split_outputs(hardware_.tiles / split);
    }
  }

  void split_outputs(std::int64_t tiles) {
    const std::int64_t grains = ceil_div(product_.outputs, grain_.outputs * partition_.serial_outputs);
    for (std::int64_t split : distinct_splits(grains, product_.whole_channels ? 1 : tiles)) {
      partition_.outputs = split;
      split_inputs(tiles / split);
    }
  }

  void split_inputs(std::int64_t tiles) {
    const std::int64_t grains = ceil_div(product_.inputs, grain_.inputs * partition_.serial_inputs);
    for (std::int64_t split : distinct_splits(grains, product_.whole_channels ? 1 : tiles)) {
      partition_.inputs = split;
      split_kernel(tiles / split);
    }
  }

  void split_kernel(std::int64_t tiles) {
    const std::int64_t kernel = product_.window.empty() ? 1 : product_.window.front().kernel;
    for (std::int64_t split : {std::int64_t{1}, kernel}) {
      if (split > tiles) break;
      partition_.kernel = split;
      split_rows(0, tiles / split);
      if (kernel == 1 || product_.whole_kernel) break;
    }
  }

  std::int64_t most_splits(std::size_t axis, std::int64_t tiles) const {
    return product_.most_row_splits.empty() ? tiles : std::min(tiles, product_.most_row_splits[axis]);
  }

  // Whether none of the splits of the axes from `axis` on can be the best.
  bool hopeless(std::size_t axis, std::int64_t tiles) {
    find_least_share(product_, grain_, partition_, axis, tiles, share_);
    return temporary_bytes(product_, share_) > limit_ ||
           least_cycles(hardware_, product_, grain_, partition_, share_) >= best_cycles_;
  }

  // The last axis takes all tiles that are left, or the fewest that give the same largest part.
  void split_rows(std::size_t axis, std::int64_t tiles) {
    if (axis + 1 == product_.rows.size()) {
      const std::int64_t extent = product_.rows[axis];
      partition_.rows[axis] = ceil_div(extent, ceil_div(extent, std::min(most_splits(axis, tiles), extent)));
      return consider();
    }
    if (hopeless(axis, tiles)) return;
    for (std::int64_t split : distinct_splits(product_.rows[axis], most_splits(axis, tiles))) {
      partition_.rows[axis] = split;
      split_rows(axis + 1, tiles / split);
    }
  }

  void consider() {
    find_share(product_, grain_, partition_, share_);
    if (compute_bound(hardware_, product_, grain_, partition_, share_) >= best_cycles_) return;
    if (temporary_bytes(product_, share_) > limit_) return;
    const double cycles = cycles_of(hardware_, product_, grain_, partition_, share_).total();
    if (cycles >= best_cycles_) return;
    found_ = true;
    best_cycles_ = cycles;
    best_ = partition_;
    best_grain_ = grain_;
  }

  const Hardware& hardware_;
  const Product& product_;
  double limit_, best_cycles_, least_compute_ = 0;
  bool found_ = false;
  Grain grain_, best_grain_;
  Partition partition_, best_;
  TileShare share_;
};

// Channels of a group for the vertex that takes windows in fours of columns; 0: it cannot do the product.
std::int64_t slic_channels(const Product& product) {
  constexpr std::int64_t most_channels = 4, most_stride = 2;
  const std::int64_t channels = std::max(product.inputs, product.outputs);
  const bool dilated =
      std::ranges::any_of(product.window, [](const Axis& axis) { return axis.dilation > 1; });
  if (product.element != ElementType::f16 || product.window.size() < 2 || dilated ||
      product.window.back().stride > most_stride || product.window.back().kernel_step > 1 ||
      channels > most_channels)
    return 0;
  return channels == 3 ? most_channels : channels;
}

// The ways to group channels for the vertices that can do the product.
std::vector<Grain> grains(const Hardware& hardware, const Product& product) {
  const std::int64_t units = hardware.conv_units(product.element, product.partials);
  const std::int64_t weights = product.element == ElementType::f16 ? 16 : 8;  // held by a unit
  std::vector<Grain> result;
  if (product.window.empty()) {
    for (std::int64_t outputs = units; outputs <= 16; outputs *= 2)
      result.push_back({Vertex::amp_1x1, weights, outputs, 1, units});
    if (product.inputs == 1) result.push_back({Vertex::outer_product, 1, 1, 1, 1});
  } else {
    for (std::int64_t height : {1, 2, 4})
      if (height == 1 || product.window.front().kernel >= height)
        for (std::int64_t outputs = units; outputs <= 16; outputs *= 2)
          result.push_back({Vertex::amp_nx1, weights / height, outputs, height, units});
    if (product.inputs == 1 && product.outputs == 1) result.push_back({Vertex::vertical_mac, 1, 1, 1, 1});
    if (const std::int64_t channels = slic_channels(product); channels > 0)
      result.push_back({Vertex::slic, channels, channels, 1, units});
  }
  // Channels in x out up to which the multiply-accumulate vertex is looked at. No source: chosen, which keeps
  // the search short.
  constexpr std::int64_t most_mac_channels = 4096;
  if (product.inputs * product.outputs <= most_mac_channels)
    result.push_back({Vertex::horizontal_mac, 1, 1, 1, 1});
  return result;
}

}  // namespace

Product swapped(const Product& product) {
  Product other = product;
  other.outputs = product.rows[0];
  other.rows = {product.outputs};
  std::swap(other.left, other.right);
  other.can_swap = false;
  return other;
}

SearchResult search(const Hardware& hardware, const Product& product, double limit, double most) {
  Search direct(hardware, product, limit, most);
  for (const Grain& grain : grains(hardware, product)) direct.run(grain);
  SearchResult best = direct.best();
  if (!product.can_swap || !product.window.empty() || product.rows.size() != 1 || product.gather_share < 1)
    return best;
  const Product other = swapped(product);
  Search turned(hardware, other, limit, best.plan.tiles != 0 ? best.plan.cycles.total() : most);
  for (const Grain& grain : grains(hardware, other)) turned.run(grain);
  SearchResult found = turned.best();
  if (found.plan.tiles == 0) return best;
  found.swapped = true;
  found.plan.partition += " (operands swapped)";
  return found;
}

}  // namespace superstep::machine::ipu
