#include "superstep/target/operator_table.h"

#include "superstep/op/core/definition.h"
#include "superstep/op/core/element_types.h"
#include "superstep/op/core/rules.h"
#include "superstep/target/cpu/lower/lowering.h"
#include "superstep/target/cpu/passes/decompose.h"
#include "superstep/target/pjrt/stablehlo/lowering.h"

namespace superstep::target {
namespace {

// Nothing of it is left to run: a view, or what is made before the run of inputs that must be known by then.
bool leaves_no_step(const op::Definition& definition) {
  const op::Traits& traits = definition.traits;
  if (traits.view != op::View::none || traits.work == op::WorkKind::view) return true;
  if (definition.max_inputs < 0 || definition.max_inputs > 31) return false;
  const std::uint32_t all = (std::uint32_t{1} << definition.max_inputs) - 1;
  return (definition.shape_inputs & all) == all;
}

std::string derivatives_of(const op::Definition& definition) {
  if (!definition.vjp) return "-";
  if (definition.vjp == op::zero_vjp) return "zero";
  return definition.jvp ? "vjp, jvp" : "vjp";
}

std::string types_of(const op::Definition& definition) {
  const op::TypeClass* types = op::element_types(definition.traits.elements);
  return types ? std::string(types->name) : "-";
}

const char* pjrt_road_of(std::string_view op) {
  switch (stablehlo::road_of(op)) {
    case stablehlo::Road::lowered: return "lowered";
    case stablehlo::Road::parts: return "parts";
    case stablehlo::Road::constant: return "compiled away";
    case stablehlo::Road::refused: return "refused";
  }
  return "";
}

constexpr std::string_view page_before = R"(# Operators

Names and meaning are ONNX's; `opset` is the first operator set with the meaning that Superstep evaluates, up to 28.
Older forms are turned into it when a file is read. Operators of ours, called `superstep.Name`, have a form in plain
ONNX operators, in which files are written. This page is what `superstep list ops` prints; a test fails when it is
out of date, and `build/tests/matrix/test_matrix --write` writes it anew.

- **element types**: of the data inputs. *floating* is f64, f32, f16 and bf16; *integer* is i64 to i8 and u64 to u8;
  *numeric* is both; *any* has bool too. There are no complex numbers, 8-bit and 4-bit floating types, or text.
- **reference**, **cpu**: what runs it. A *definition* is naive and exact: it computes in f64 and rounds once. A
  *kernel* takes the usual shapes and attributes in f32 and bf16, and `--explain` says for a model which steps have
  one and why others have not. *Parts*: run as the operators it is made of. *Compiled away*: passes, views and packing
  leave nothing to run.
- **pjrt**: on devices behind PJRT plug-ins ([accelerators.md](accelerators.md)). *Lowered*: operations of StableHLO of
  its own. *Refused*: by name, with the reason, before anything runs.
- **derivatives**: by reverse (vjp) and forward (jvp) rules written with operators, so that second derivatives
  follow; *zero* where the result is locally constant.

```
)";

constexpr std::string_view page_after = R"(```

The rules of every operator are checked by finite differences, against each other, and for the rounding of narrow types
(`tests/op`); each target is compared with the reference in every element type (`tests/matrix`).

## Shapes that depend on values
Shapes are static. `NonZero`, `Compress`, `Unique` and `NonMaxSuppression` are evaluated where the inputs that set the
size of their result are constant, and refused with that reason elsewhere; all but `Unique` are read from files in a
bounded form ([your-own-model.md](your-own-model.md)). `Reshape`, `Slice`, `Pad` and the like need constant shapes, which
reading a file finds for most models.

## Random numbers
`RandomUniform`, `RandomNormal`, their `Like` forms, `Bernoulli`, `Multinomial` and `Dropout` draw the same numbers at
every run, by seed, on every target. Two operators without a seed draw alike.

## What is not there, and why
| operators | why |
|---|---|
| `StringConcat`, `StringSplit`, `StringNormalizer`, `RegexFullMatch`, text in any other | tensors hold numbers |
| `SequenceConstruct`, `SequenceAt`, ..., `SplitToSequence`, `ConcatFromSequence`, `SequenceMap`, `Optional`... | values are tensors |
| `ImageDecoder` | reading pictures belongs to the data, not to the graph |
| `FlexAttention` of the preview domain | its functions inside the operator; `Attention` has windows, masks and caps |
| `Gradient` of the preview training domain | training graphs are made from the model itself: `superstep train` |
| `TreeEnsemble` and other operators of `ai.onnx.ml` that are not listed | decision trees and tables of text |
)";

}  // namespace

Execution cpu_execution_of(std::string_view op) {
  if (cpu::is_composite(op)) return Execution::parts;
  if (leaves_no_step(op::get(op))) return Execution::compiled_away;
  return cpu::has_kernel(op) ? Execution::kernel : Execution::definition;
}

const char* name_of(Execution execution) {
  switch (execution) {
    case Execution::kernel: return "kernel";
    case Execution::parts: return "parts";
    case Execution::definition: return "definition";
    case Execution::compiled_away: return "compiled away";
  }
  return "";
}

TextTable operator_table() {
  TextTable table({"operator", "opset", "element types", "reference", "cpu", "pjrt", "derivatives"});
  for (const op::Definition& definition : op::all())
    table.add_row({std::string(definition.name),
                   definition.since_opset ? std::to_string(definition.since_opset) : "ours",
                   types_of(definition), definition.evaluate ? "definition" : "-",
                   name_of(cpu_execution_of(definition.name)), pjrt_road_of(definition.name),
                   derivatives_of(definition)});
  return table;
}

std::string operators_page() {
  return std::string(page_before) + operator_table().to_string() + std::string(page_after);
}

}  // namespace superstep::target
