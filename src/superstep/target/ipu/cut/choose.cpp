#include "superstep/target/ipu/cut/choose.h"

#include <algorithm>
#include <limits>

#include "superstep/base/integers.h"
#include "superstep/machine/ipu/vertex_cycles.h"
#include "superstep/target/ipu/cut/channel_group.h"
#include "superstep/target/ipu/cut/cut_rules.h"

namespace superstep::target::ipu {
namespace {

using machine::ipu::Hardware;

constexpr double working_share = 0.4;         // of a tile's memory that one operator's operands may take
constexpr std::int64_t fewest_elements = 16;  // of a part: fewer are not worth a tile of their own

graph::ValueType none() { return {ElementType::f32, {0}}; }

PartTypes types_of(const Operation& operation, const PartShape& shape) {
  PartTypes types{shape.attributes, {}, {}};
  for (std::size_t i = 0; i < shape.inputs.size(); ++i)
    types.inputs.push_back(shape.inputs[i] ? graph::ValueType{operation.inputs[i]->element, *shape.inputs[i]}
                                           : none());
  for (std::size_t i = 0; i < shape.outputs.size(); ++i)
    types.outputs.push_back(
        shape.outputs[i] ? graph::ValueType{operation.outputs[i]->element, *shape.outputs[i]} : none());
  return types;
}
// The types refer to the attributes of the shape, which has to outlive them.
PartTypes types_of(const Operation& operation, const PartShape&& shape) = delete;

double bytes_of(const std::vector<graph::ValueType>& types) {
  double bytes = 0;
  for (const graph::ValueType& type : types)
    bytes +=
        static_cast<double>(type.shape.element_count()) * static_cast<double>(size_in_bytes(type.element));
  return bytes;
}

std::int64_t elements_of(const Operation& operation) {
  const std::int64_t results = operation.output().element_count();
  return operation.has(0) ? std::max(operation.input(0).element_count(), results) : results;
}

bool is_summed_op(const Cuts& cuts) {
  return std::any_of(cuts.axes.begin(), cuts.axes.end(), [](const Cut& cut) { return cut.summed; });
}

std::int64_t parts_for(std::int64_t elements, std::int64_t tiles) {
  return std::clamp<std::int64_t>(elements / fewest_elements, 1, tiles);
}

// --- in place ----------------------------------------------------------------------------------------------

// The operand whose place decides: of those with the most elements the one in most boxes. None where it is
// not known where those lie: to follow a few numbers of channels is to leave most tiles without work.
std::optional<std::size_t> principal(const Operation& operation, const Spreads& spreads) {
  std::int64_t most = 0;
  for (std::size_t i = 0; i < operation.inputs.size(); ++i)
    if (operation.has(i)) most = std::max(most, operation.input(i).element_count());
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
    if (!operation.has(i) || !spreads[i] || operation.input(i).element_count() < most) continue;
    if (!best || spreads[i]->boxes() > spreads[*best]->boxes()) best = i;
  }
  return best;
}

// Too few tiles have it: spreading it is worth the exchange.
bool is_crowded(const Hardware& hardware, const Operation& operation, std::size_t input,
                const Spread& spread) {
  const std::int64_t wanted = parts_for(operation.input(input).element_count(), hardware.tiles);
  return 4 * spread.boxes() < wanted;
}

std::optional<Choice> in_place(const Hardware& hardware, const Operation& operation, const Spreads& spreads) {
  const std::optional<std::size_t> input = principal(operation, spreads);
  if (!input) return std::nullopt;
  const Spread& spread = *spreads[*input];
  if (is_pointwise(operation.node->op) && operation.input(*input) != operation.output()) return std::nullopt;
  if (is_crowded(hardware, operation, *input, spread)) return std::nullopt;
  const std::optional<FlatOperation> flat = FlatOperation::make(operation, spread.flattening);
  if (!flat) return std::nullopt;
  std::optional<Partition> partition = follow(cuts_of(flat->operation()), spread, *input);
  if (!partition) return std::nullopt;
  return Choice{spread.flattening, std::move(*partition), std::nullopt};
}

// --- evenly ------------------------------------------------------------------------------------------------

Partition even_partition(Cuts cuts, const std::vector<std::int64_t>& splits,
                         const std::vector<std::int64_t>& grains = {}) {
  Partition partition;
  for (std::size_t i = 0; i < cuts.axes.size(); ++i)
    partition.bounds.push_back(even_bounds(cuts.axes[i].units, splits[i], grains.empty() ? 1 : grains[i]));
  partition.cuts = std::move(cuts);
  return partition;
}

// Channels that lie in groups are cut between groups.
std::int64_t grain_of(const Operation& operation, const Cut& cut) {
  const bool input = operation.has(0) && has_channel_groups(*operation.inputs[0]) && cut.inputs[0].axis == 1,
             output = has_channel_groups(*operation.outputs[0]) && cut.outputs[0].axis == 1;
  return input || output ? channel_group : 1;
}

std::int64_t product_of(const std::vector<std::int64_t>& units) {
  std::int64_t product = 1;
  for (const std::int64_t unit : units) product *= unit;
  return product;
}

// Whole groups of channels, unless that leaves most tiles without work.
std::vector<std::int64_t> grains_of(const Operation& operation, const Cuts& cuts, std::int64_t most) {
  std::vector<std::int64_t> grains, units, whole;
  for (const Cut& cut : cuts.axes) {
    grains.push_back(grain_of(operation, cut));
    units.push_back(cut.units);
    whole.push_back(ceil_div(cut.units, grains.back()));
  }
  if (2 * product_of(whole) < std::min(most, product_of(units))) grains.assign(grains.size(), 1);
  return grains;
}

// What results have is cut first; what is summed over takes the tiles that are left.
Partition even_cuts(const Operation& operation, Cuts cuts, std::int64_t elements, std::int64_t tiles) {
  const std::int64_t most = parts_for(elements, tiles);
  const std::vector<std::int64_t> grains = grains_of(operation, cuts, most);
  std::vector<std::int64_t> own, summed;
  for (std::size_t i = 0; i < cuts.axes.size(); ++i)
    (cuts.axes[i].summed ? summed : own).push_back(ceil_div(cuts.axes[i].units, grains[i]));
  const std::vector<std::int64_t> first = balanced_splits(own, most);
  const std::vector<std::int64_t> second = balanced_splits(summed, most / product_of(first));
  std::vector<std::int64_t> splits;
  std::size_t next = 0, next_summed = 0;
  for (const Cut& cut : cuts.axes) splits.push_back(cut.summed ? second[next_summed++] : first[next++]);
  return even_partition(std::move(cuts), splits, grains);
}

std::optional<Choice> as_row(const Hardware& hardware, const Operation& operation) {
  const std::optional<FlatOperation> flat = FlatOperation::make(operation, Flattening::all);
  if (!flat || has_channel_groups(*operation.outputs[0])) return std::nullopt;
  Cuts cuts = cuts_of(flat->operation());
  if (cuts.axes.empty()) return Choice{};
  const std::int64_t parts = parts_for(cuts.axes[0].units, hardware.tiles);
  Partition partition;
  partition.bounds = {even_bounds(cuts.axes[0].units, parts, 4)};
  partition.cuts = std::move(cuts);
  return Choice{Flattening::all, std::move(partition), std::nullopt};
}

// --- by cost -----------------------------------------------------------------------------------------------

// The fastest by the cycles of its largest part and the bytes that it must receive.
class Search {
 public:
  Search(const Hardware& hardware, const Operation& operation, Cuts cuts)
      : hardware_(hardware), operation_(operation), definition_(op::get(operation.node->op)) {
    splits_.assign(cuts.axes.size(), 1);
    best_ = splits_;
    cuts_ = std::move(cuts);
  }

  Partition run() {
    descend(0, hardware_.tiles);
    return even_partition(std::move(cuts_), best_);
  }

 private:
  void descend(std::size_t axis, std::int64_t tiles) {
    if (axis == splits_.size()) {
      const double cost = cost_now();
      if (cost < cost_) {
        cost_ = cost;
        best_ = splits_;
      }
      return;
    }
    for (const std::int64_t split : candidates(cuts_.axes[axis].units, tiles)) {
      splits_[axis] = split;
      descend(axis + 1, tiles / split);
    }
    splits_[axis] = 1;
  }

  std::vector<std::int64_t> candidates(std::int64_t units, std::int64_t tiles) const {
    std::vector<std::int64_t> list{1};
    const std::int64_t step = splits_.size() > 2 ? 4 : 2;
    for (std::int64_t p = 2; p < std::min(units, tiles); p *= step) list.push_back(p);
    for (const std::int64_t p : {units, (units + 1) / 2, tiles})
      if (p > 1 && p <= units && p <= tiles) list.push_back(p);
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
  }

  double cost_now() const {
    Partition partition;
    partition.cuts = cuts_;
    Part part;
    for (std::size_t a = 0; a < splits_.size(); ++a)
      part.range.push_back({0, ceil_div(cuts_.axes[a].units, splits_[a])});
    const PartShape shape = part_shape(definition_, operation_, partition, part);
    const PartTypes types = types_of(operation_, shape);
    const double in = bytes_of(types.inputs), out = bytes_of(types.outputs);
    const double working = working_share * static_cast<double>(hardware_.tile_bytes);
    const double overflow = std::max(0.0, in + out - working) * 1e3;  // rather many parts than a full tile
    return static_cast<double>(part_cycles(hardware_, operation_.node->op, types)) +
           in / static_cast<double>(hardware_.exchange_rate) + overflow + combining(types.outputs);
  }

  // Of partial results: those who made them share the work.
  double combining(const std::vector<graph::ValueType>& outputs) const {
    std::int64_t depth = 1;
    for (std::size_t a = 0; a < splits_.size(); ++a)
      if (cuts_.axes[a].summed) depth *= splits_[a];
    if (depth == 1) return 0;
    const std::int64_t own = ceil_div(outputs[0].shape.element_count(), depth);
    return hardware_.sync_cycles + hardware_.exchange_setup +
           bytes_of(outputs) / static_cast<double>(hardware_.exchange_rate) +
           static_cast<double>(machine::ipu::reduce_strided_cycles(hardware_, own, depth, ElementType::f32));
  }

  const Hardware& hardware_;
  const Operation& operation_;
  const op::Definition& definition_;
  Cuts cuts_;
  std::vector<std::int64_t> splits_, best_;
  double cost_ = std::numeric_limits<double>::infinity();
};

}  // namespace

Choice choose(const Hardware& hardware, const Operation& operation, const Spreads& spreads) {
  if (std::optional<Choice> product = choose_product(hardware, operation)) return std::move(*product);
  const bool pointwise = is_pointwise(operation.node->op);
  Cuts cuts = cuts_of(operation);
  const bool free =
      pointwise || (is_summed_op(cuts) && !cuts.by_cost) || operation.node->op == "BatchNormalization";
  if (free)
    if (std::optional<Choice> choice = in_place(hardware, operation, spreads)) return std::move(*choice);
  if (pointwise)
    if (std::optional<Choice> choice = as_row(hardware, operation)) return std::move(*choice);
  if (cuts.axes.empty()) return {};
  const std::int64_t elements = elements_of(operation);
  if (free || cuts.even || (cuts.form != WindowForm::none && !cuts.by_cost))
    return {Flattening::none, even_cuts(operation, std::move(cuts), elements, hardware.tiles), std::nullopt};
  return {Flattening::none, Search(hardware, operation, std::move(cuts)).run(), std::nullopt};
}

std::uint64_t cycles_of(const Hardware& hardware, const Choice& choice, const Operation& operation,
                        const PartShape& shape) {
  if (choice.product && choice.partition.count() > 0)
    return std::max<std::uint64_t>(1, product_cycles(hardware, *choice.product, operation, shape));
  if (operation.fused) return fused_cycles(hardware, *operation.fused, types_of(operation, shape));
  return part_cycles(hardware, operation.node->op, types_of(operation, shape));
}

}  // namespace superstep::target::ipu
