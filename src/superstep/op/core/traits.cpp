// What a definition must state, and what of it cannot be so together.
#include "superstep/op/core/traits.h"

#include "superstep/op/core/definition.h"
#include "superstep/op/core/file_functions.h"

namespace superstep::op {
namespace {

struct Demand {
  bool (*holds)(const Definition& definition);
  const char* otherwise;
};

// Facts without a safe default first; then what would give wrong results or wrong predictions together.
constexpr Demand demands[] = {
    {[](const Definition& d) { return !d.name.empty(); }, "name"},
    {[](const Definition& d) { return d.infer != nullptr; }, "infer: the rule that gives the output types"},
    {[](const Definition& d) { return d.evaluate != nullptr; }, "evaluate: the definition"},
    {[](const Definition& d) { return d.traits.elements != Elements::unstated; },
     "traits.elements: the element types of its data inputs"},
    {[](const Definition& d) { return d.traits.work != WorkKind::unstated; },
     "traits.work: the kind of work it is to a machine"},
    {[](const Definition& d) { return !d.vjp == !d.jvp; },
     "vjp and jvp: one derivative rule without the other (zero_vjp and zero_jvp where the result is locally "
     "constant)"},
    {[](const Definition& d) { return d.evaluate_box || !(d.has_effects || d.traits.by_counter); },
     "evaluate_box: random elements depend on their place, which parts of the result must know"},
    {[](const Definition& d) {
       return d.since_opset > 0 || d.decompose || d.evaluate_box || is_function_of_files(d.name);
     },
     "decompose: ONNX does not have it, so files need it in operators that ONNX has"},
    {[](const Definition& d) { return d.since_opset > 0 || d.traits.attributes.empty(); },
     "traits.attributes: these are ONNX's, which does not have it"},
    {[](const Definition& d) {
       return !d.traits.elementwise || d.traits.work == WorkKind::elementwise || d.traits.view != View::none;
     },
     "traits.work: element-wise operators are WorkKind::elementwise"},
    {[](const Definition& d) {
       return !d.traits.elementwise || (d.traits.batch && d.traits.constants == Variation::elementwise);
     },
     "traits.batch, traits.constants: element-wise operators keep samples apart (op/batch/rules.h)"},
    {[](const Definition& d) { return !d.traits.elementwise || d.max_outputs == 1; },
     "traits.elementwise: with several outputs none of them is the shape of all"},
    {[](const Definition& d) { return !d.traits.product || d.traits.work == WorkKind::product; },
     "traits.work: a product is WorkKind::product"},
    {[](const Definition& d) { return !d.traits.product || d.traits.product_kind != ProductKind::none; },
     "traits.product_kind: a product that element-wise nodes may follow says which it is"},
    {[](const Definition& d) {
       return d.traits.product_kind == ProductKind::none || d.traits.work == WorkKind::product;
     },
     "traits.work: what has a product_kind is WorkKind::product"},
    {[](const Definition& d) { return !d.traits.axes_input_since || d.traits.folding != Folding::none; },
     "traits.folding: how the reduction makes one element of many"},
    {[](const Definition& d) {
       return d.traits.folding == Folding::none || d.traits.work == WorkKind::reduction;
     },
     "traits.work: what has a folding is WorkKind::reduction"},
    {[](const Definition& d) { return d.traits.effort == Effort::instruction || d.traits.elementwise; },
     "traits.effort: asked of element-wise operators alone"},
    {[](const Definition& d) { return d.traits.view == View::none || d.traits.batch; },
     "traits.batch: a view keeps samples apart (op/batch/rules.h)"},
    {[](const Definition& d) { return !d.traits.moves_bytes || d.traits.precision == Precision::follows; },
     "traits.precision: what moves bytes follows the precision of its data"},
};

}  // namespace

std::vector<std::string> missing_facts(const Definition& definition) {
  std::vector<std::string> missing;
  for (const Demand& demand : demands)
    if (!demand.holds(definition)) missing.emplace_back(demand.otherwise);
  return missing;
}

}  // namespace superstep::op
