// Partitions of products: the machine model's search, mapped onto the cuts of an operator.
#include <algorithm>
#include <limits>
#include <utility>

#include "superstep/base/integers.h"
#include "superstep/machine/ipu/superstep_cost.h"
#include "superstep/op/product/convolution.h"
#include "superstep/target/ipu/cut/choose.h"
#include "superstep/target/ipu/cut/combining.h"

namespace superstep::target::ipu {
namespace {

using machine::ipu::Convolution;
using machine::ipu::Kernels;
using machine::ipu::Pass;
using machine::ipu::ProductForm;
using op::ProductKind;

// Leading axes of the left operand are rows where the right one has none, else groups.
Convolution matrix_problem(ProductKind kind, const graph::Attributes& attributes, const Shape& a,
                           const Shape& b, const Shape& y, ElementType element) {
  const std::int64_t terms = a[op::transposes_left(kind, attributes) ? 0 : a.rank() - 1];
  const std::int64_t columns = std::max<std::int64_t>(1, y[y.rank() - 1]);
  std::int64_t groups = 1;
  for (int axis = 0; kind == ProductKind::matrices && axis + 2 < b.rank(); ++axis) groups *= b[axis];
  const std::int64_t rows = std::max<std::int64_t>(1, y.element_count() / columns / groups);
  return machine::ipu::matrix_product(groups, rows, std::max<std::int64_t>(1, terms), columns,
                                      element == ElementType::f32 ? ElementType::f32 : ElementType::f16);
}

Convolution problem_of(ProductKind kind, const graph::Attributes& attributes, const Shape& first,
                       const Shape& second, const Shape& out, ElementType element) {
  if (!op::is_convolution(kind)) return matrix_problem(kind, attributes, first, second, out, element);
  return machine::ipu::convolution_of(op::geometry_of(kind, attributes, first, second, out), element);
}

Convolution problem_of_part(const Operation& operation, const PartShape& shape) {
  const ProductKind kind = op::traits_of(operation.node->op).product_kind;
  const ElementType element = operation.inputs[0]->element;
  if (!shape.windows.empty()) return machine::ipu::convolution_of(geometry_of(kind, shape), element);
  return problem_of(kind, shape.attributes, *shape.inputs[0], *shape.inputs[1], *shape.outputs[0], element);
}

// Deals the splits of a product's dimensions out to the cuts of each role.
class Mapping {
 public:
  Mapping(const machine::ipu::Hardware& hardware, const Operation& operation, const ProductChoice& choice,
          Cuts cuts, Kernels kernels)
      : hardware_(hardware), operation_(operation), choice_(choice), kernels_(kernels) {
    partition_.cuts = std::move(cuts);
    for (const Cut& cut : partition_.cuts.axes) partition_.bounds.push_back({0, cut.units});
  }

  const Partition& run(const Convolution& problem) {
    const machine::ipu::PartPlan& plan = choice_.plan;
    const machine::ipu::Partition& found = plan.partition;
    const bool swapped = plan.swapped;
    const std::int64_t outputs = found.outputs * found.serial_outputs;
    spread(cuts_of(CutRole::group), found.groups, plan.combined);
    spread(cuts_of(CutRole::output), swapped ? found.rows[0] : outputs, swapped ? 1 : plan.grain.outputs);
    if (choice_.pass == Pass::weight_gradient) summed_positions();
    if (swapped)
      spread(cuts_of(CutRole::row), outputs, plan.grain.outputs);
    else
      rows(problem);
    if (choice_.pass != Pass::weight_gradient) terms(problem);
    turns(swapped ? CutRole::row : CutRole::output, found.serial_outputs);
    return partition_;
  }

  // Operands of which parts have more than a tile's share of their elements, together.
  machine::ipu::OrderedFirst ordered(const Convolution& problem) const {
    return machine::ipu::ordered_first(hardware_, choice_.plan, problem,
                                       problem_of_part(operation_, middle()), choice_.pass,
                                       choice_.arrangement);
  }

  // Whether the operands of a part are more than the share of a tile that plans keep within where they can.
  bool crowds_a_tile() const {
    const PartShape shape = middle();
    return bytes_received(shape) + bytes_of(*shape.outputs[0], *operation_.outputs[0]) >
           hardware_.memory_proportion * static_cast<double>(hardware_.tile_bytes);
  }

  // Cycles as far as parts decide them: of one in the middle in every turn, and of partial results that
  // become one.
  double cost() const {
    const double parts = static_cast<double>(partition_.turns) * cost_of_middle();
    if (partition_.partials() == 1) return parts;
    const PartShape shape = middle();
    return parts + combining_cycles(hardware_, shape.outputs[0]->element_count(), partition_.partials());
  }

 private:
  // Of what is summed over along one dimension of the product: channels, and what the form folds into them.
  void terms(const Convolution& problem) {
    const machine::ipu::PartPlan& plan = choice_.plan;
    std::vector<std::size_t> cuts = cuts_of(CutRole::summed);
    const std::vector<std::size_t> kept = kept_axes(problem);
    const bool last = plan.form == ProductForm::folded_last;
    if ((last || plan.form == ProductForm::windowed) && !kept.empty())
      kernel(kept.front(), plan.partition.kernel);
    if (!last && plan.form != ProductForm::folded)
      return spread(cuts, plan.partition.inputs, plan.grain.inputs);
    std::vector<std::size_t> taps = cuts_of(CutRole::tap);
    if (last)
      std::erase_if(taps, [&](std::size_t cut) {
        return partition_.cuts.axes[cut].taps != static_cast<int>(kept.back());
      });
    by_cost(cuts, taps, plan.partition.inputs);
  }

  // The positions of a gradient by the weights. Where the window is kept, its kernel is what lies along the
  // first axis of them.
  void summed_positions() {
    const machine::ipu::PartPlan& plan = choice_.plan;
    std::vector<std::size_t> cuts = cuts_of(CutRole::summed);
    if (plan.form == ProductForm::weight_gradient_windowed)
      std::erase_if(cuts, [&](std::size_t cut) {
        const bool first = partition_.cuts.axes[cut].window == 0;
        if (first) set(cut, plan.partition.kernel, 1);
        return first;
      });
    spread(cuts, plan.partition.inputs, 1);
  }

  void kernel(std::size_t axis, std::int64_t parts) {
    for (const std::size_t cut : cuts_of(CutRole::tap))
      if (partition_.cuts.axes[cut].taps == static_cast<int>(axis)) set(cut, parts, 1);
  }

  // The spatial axes that the product has: a gradient by the data has none where there was one result.
  std::vector<std::size_t> kept_axes(const Convolution& problem) const {
    std::vector<std::size_t> kept;
    for (std::size_t axis = 0; axis < problem.axes.size(); ++axis)
      if (choice_.pass != Pass::data_gradient || problem.axes[axis].output > 1) kept.push_back(axis);
    return kept;
  }

  std::vector<std::size_t> cuts_of(CutRole role) const {
    std::vector<std::size_t> list;
    if (role == CutRole::tap && kernels_ == Kernels::whole) return list;
    for (std::size_t i = 0; i < partition_.cuts.axes.size(); ++i)
      if (partition_.cuts.axes[i].role == role) list.push_back(i);
    return list;
  }

  void set(std::size_t cut, std::int64_t parts, std::int64_t grain) {
    partition_.bounds[cut] = even_bounds(partition_.cuts.axes[cut].units, parts, grain);
  }

  void spread(const std::vector<std::size_t>& cuts, std::int64_t parts, std::int64_t grain) {
    if (cuts.size() == 1) return set(cuts[0], parts, grain);
    std::vector<std::int64_t> units;
    for (const std::size_t cut : cuts) units.push_back(partition_.cuts.axes[cut].units);
    const std::vector<std::int64_t> splits = balanced_splits(units, parts);
    for (std::size_t i = 0; i < cuts.size(); ++i) set(cuts[i], splits[i], 1);
  }

  // The product's row axes: batch x positions, or batch and the spatial axes one by one.
  void rows(const Convolution& problem) {
    const std::vector<std::int64_t>& splits = choice_.plan.partition.rows;
    const std::vector<std::size_t> cuts = cuts_of(CutRole::row);
    const ProductForm form = choice_.plan.form;
    if (choice_.pass == Pass::weight_gradient) return kernel_rows();
    if (form == ProductForm::collapsed || form == ProductForm::folded) return spread(cuts, splits[0], 1);
    std::vector<std::int64_t> by_axis(problem.axes.size(), 1);
    std::vector<std::size_t> kept = kept_axes(problem);
    if (form == ProductForm::folded_last)  // batch, the last, the others
      std::rotate(kept.begin(), kept.end() - 1, kept.end());
    for (std::size_t i = 0; i < kept.size() && i + 1 < splits.size(); ++i) by_axis[kept[i]] = splits[i + 1];
    std::vector<std::int64_t> units, found;
    for (const std::size_t cut : cuts) {
      const int window = partition_.cuts.axes[cut].window;
      units.push_back(partition_.cuts.axes[cut].units);
      found.push_back(window < 0 ? splits[0] : by_axis[static_cast<std::size_t>(window)]);
    }
    found = outermost_first(units, std::move(found));
    for (std::size_t i = 0; i < cuts.size(); ++i) set(cuts[i], found[i], 1);
  }

  // Of a gradient by the weights: input channels, and the kernel's positions, which are its results. They are
  // one dimension of the product, or each its own: channels, the last axis of the kernel, the others.
  void kernel_rows() {
    const std::vector<std::int64_t>& splits = choice_.plan.partition.rows;
    std::vector<std::size_t> cuts = cuts_of(CutRole::row);
    if (choice_.plan.form == ProductForm::weight_gradient_windowed) {
      spread(cuts, splits[0], 1);
      kernel(splits.size() - 2, splits[1]);
      for (std::size_t axis = 0; axis + 2 < splits.size(); ++axis) kernel(axis, splits[axis + 2]);
      return;
    }
    by_cost(cuts, cuts_of(CutRole::tap), splits[0]);
  }

  // Channels and positions of the kernel into so many parts together. To share out a kernel is to read most
  // of the input again for every part of it, to share out channels is not, but these may be too few: the
  // largest part says by its cycles and bytes.
  void by_cost(const std::vector<std::size_t>& channels, const std::vector<std::size_t>& taps,
               std::int64_t parts) {
    std::vector<Bounds> best;
    double least = std::numeric_limits<double>::infinity();
    const auto consider = [&](std::int64_t rest) {
      spread(channels, rest, 1);
      if (const double cost = cost_of_middle(); cost < least) {
        least = cost;
        best = partition_.bounds;
      }
    };
    const auto descend = [&](auto& self, std::size_t next, std::int64_t rest) -> void {
      if (next == taps.size()) return consider(rest);
      for (const std::int64_t split :
           machine::ipu::distinct_splits(partition_.cuts.axes[taps[next]].units, rest)) {
        set(taps[next], split, 1);
        self(self, next + 1, rest / split);
      }
    };
    descend(descend, 0, parts);
    partition_.bounds = std::move(best);
  }

  // A part that has neighbours on all sides.
  PartShape middle() const {
    std::int64_t number = 0;
    for (const Bounds& along : partition_.bounds) {
      const auto parts = static_cast<std::int64_t>(along.size()) - 1;
      number = number * parts + parts / 2;
    }
    return part_shape(op::get(operation_.node->op), operation_, partition_, part_of(partition_, number));
  }

  // Its cycles and those in which it receives its operands.
  double cost_of_middle() const {
    const PartShape shape = middle();
    return static_cast<double>(product_cycles(hardware_, choice_, operation_, shape)) +
           machine::ipu::exchange_phase(hardware_, bytes_received(shape)).exchange;
  }

  static double bytes_of(const Shape& shape, const graph::ValueType& of) {
    return static_cast<double>(shape.element_count()) * static_cast<double>(size_in_bytes(of.element));
  }
  double bytes_received(const PartShape& shape) const {
    return bytes_of(*shape.inputs[0], *operation_.inputs[0]) +
           bytes_of(*shape.inputs[1], *operation_.inputs[1]);
  }

  // The same parts by outer axes rather than inner ones, where that is possible: less is read twice around
  // them, and what is left lies together.
  static std::vector<std::int64_t> outermost_first(const std::vector<std::int64_t>& units,
                                                   std::vector<std::int64_t> found) {
    std::int64_t parts = 1;
    for (const std::int64_t split : found) parts *= split;
    std::vector<std::int64_t> other = balanced_splits(units, parts);
    const auto largest = [&](const std::vector<std::int64_t>& splits) {
      std::int64_t box = 1;
      for (std::size_t i = 0; i < units.size(); ++i) box *= ceil_div(units[i], splits[i]);
      return box;
    };
    return largest(other) <= largest(found) ? other : found;
  }

  void turns(CutRole role, std::int64_t turns) {
    const std::vector<std::size_t> cuts = cuts_of(role);
    if (turns <= 1 || cuts.size() != 1) return;
    const auto parts = static_cast<std::int64_t>(partition_.bounds[cuts[0]].size()) - 1;
    if (parts % turns != 0) return;
    partition_.turn_cut = cuts[0];
    partition_.turns = turns;
  }

  const machine::ipu::Hardware& hardware_;
  const Operation& operation_;
  const ProductChoice& choice_;
  Kernels kernels_;
  Partition partition_;
};

}  // namespace

std::optional<Choice> choose_product(const machine::ipu::Hardware& hardware, const Operation& operation) {
  const ProductKind kind = op::traits_of(operation.node->op).product_kind;
  if (kind == ProductKind::none) return std::nullopt;
  if (operation.output().element_count() == 0 || operation.input(0).element_count() == 0) return std::nullopt;
  std::optional<FlatOperation> flat = FlatOperation::make(operation, Flattening::positions);
  const Flattening flattening = flat && op::is_convolution(kind) ? Flattening::positions : Flattening::none;
  const Operation flattened = flat ? flat->operation() : operation;
  Cuts cuts = ipu::cuts_of(flattening == Flattening::none ? operation : flattened);
  if (cuts.axes.empty()) return std::nullopt;
  const Convolution problem = problem_of(kind, *operation.attributes, operation.input(0), operation.input(1),
                                         operation.output(), operation.inputs[0]->element);
  ProductChoice product;
  product.pass = machine::ipu::pass_of(kind);
  const bool backward = operation.node->phase == graph::Phase::backward;
  if (op::is_convolution(kind))
    product.arrangement.weights = backward && product.pass == Pass::data_gradient;
  else if (backward)
    product.arrangement = {.input = op::transposes_left(kind, *operation.attributes), .weights = true};
  const Operation& seen = flattening == Flattening::none ? operation : flattened;
  // What is read again for every part of a kernel the search does not know exactly: parts of both kinds are
  // compared, what is too much for a tile first.
  Choice best;
  std::pair<bool, double> least{true, std::numeric_limits<double>::infinity()};
  for (const Kernels kernels : {Kernels::whole, Kernels::cut}) {
    if (kernels == Kernels::cut && problem.kernel_positions() == 1) break;
    product.ordered = {};
    product.plan = machine::ipu::plan_parts(hardware, problem, product.pass, product.arrangement, kernels);
    Mapping mapping(hardware, seen, product, cuts, kernels);
    const Partition& partition = mapping.run(problem);
    product.ordered = mapping.ordered(problem);
    const std::pair<bool, double> cost{mapping.crowds_a_tile(), mapping.cost()};
    if (cost >= least) continue;
    least = cost;
    best = {flattening, partition, product};
  }
  return best;
}

std::uint64_t product_cycles(const machine::ipu::Hardware& hardware, const ProductChoice& choice,
                             const Operation& operation, const PartShape& shape) {
  return static_cast<std::uint64_t>(machine::ipu::part_cycles(hardware, choice.plan,
                                                              problem_of_part(operation, shape), choice.pass,
                                                              choice.arrangement, choice.ordered));
}

}  // namespace superstep::target::ipu
