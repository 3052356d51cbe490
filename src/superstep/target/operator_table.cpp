#include "superstep/target/operator_table.h"

#include <algorithm>

#include "superstep/op/core/definition.h"
#include "superstep/op/core/element_types.h"
#include "superstep/op/core/rules.h"

namespace superstep::target {
namespace {

// Both lists sorted; the test `matrix.Table` holds them against the plans of the operators' cases.
constexpr std::string_view with_kernel[] = {
    "Abs",
    "Add",
    "And",
    "AveragePool",
    "Cast",
    "Ceil",
    "Concat",
    "Conv",
    "ConvTranspose",
    "Cos",
    "DFT",
    "DepthToSpace",
    "Div",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "Expand",
    "Floor",
    "Gather",
    "Gelu",
    "Gemm",
    "Greater",
    "GreaterOrEqual",
    "HardSigmoid",
    "HardSwish",
    "LayerNormalization",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "Log",
    "LogSoftmax",
    "MatMul",
    "Max",
    "MaxPool",
    "Min",
    "Mul",
    "Neg",
    "Not",
    "Or",
    "Pad",
    "Pow",
    "QuantizeLinear",
    "Reciprocal",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSum",
    "ReduceSumSquare",
    "Relu",
    "Resize",
    "Round",
    "ScatterND",
    "Sigmoid",
    "Sign",
    "Sin",
    "Softmax",
    "Softplus",
    "Sqrt",
    "Sub",
    "Tanh",
    "Where",
    "superstep.Adam",
    "superstep.AveragePoolGradient",
    "superstep.ChannelMoments",
    "superstep.ChannelSums",
    "superstep.ConvWeightGradient",
    "superstep.Fourier",
    "superstep.LayerNormalizationGradient",
    "superstep.MaxPoolGradient",
    "superstep.PartsMean",
    "superstep.RandomMask",
    "superstep.ResizeGradient",
    "superstep.Sgd",
};
// Made of other operators, which are run instead.
constexpr std::string_view in_parts[] = {
    "Attention",
    "BatchNormalization",
    "GRU",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "GroupNormalization",
    "InstanceNormalization",
    "LSTM",
    "LpNormalization",
    "MeanVarianceNormalization",
    "NegativeLogLikelihoodLoss",
    "RMSNormalization",
    "RNN",
    "RotaryEmbedding",
    "SoftmaxCrossEntropyLoss",
    "superstep.LSTMGradient",
};
// What passes, views and packing leave nothing of, or what is made of constants before the run.
constexpr std::string_view without_a_step[] = {
    "BlackmanWindow", "Constant",      "ConstantOfShape", "Flatten",           "HammingWindow",
    "HannWindow",     "Identity",      "MelWeightMatrix", "NonMaxSuppression", "NonZero",
    "RandomNormal",   "RandomUniform", "Range",           "Reshape",           "Shape",
    "Size",           "Split",         "Squeeze",         "Transpose",         "Unique",
    "Unsqueeze",
};
static_assert(std::ranges::is_sorted(with_kernel) && std::ranges::is_sorted(in_parts) &&
              std::ranges::is_sorted(without_a_step));

std::string derivatives_of(const op::Definition& definition) {
  if (!definition.vjp) return "-";
  if (definition.vjp == op::zero_vjp) return "zero";
  return definition.jvp ? "vjp, jvp" : "vjp";
}

std::string types_of(const op::Definition& definition) {
  const op::TypeClass* types = op::element_types(definition.traits.elements);
  return types ? std::string(types->name) : "-";
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
- **derivatives**: by reverse (vjp) and forward (jvp) rules written with operators, so that second derivatives
  follow; *zero* where the result is locally constant.

```
)";

constexpr std::string_view page_after = R"(```

The rules of every operator are checked by finite differences, against each other, and for the rounding of narrow types
(`tests/op`); each target is compared with the reference in every element type (`tests/matrix`).

## Shapes that depend on values
Shapes are static. `NonZero`, `Compress`, `Unique` and `NonMaxSuppression` are evaluated where the inputs that set the
size of their result are constant, and refused with that reason elsewhere. `Reshape`, `Slice`, `Pad` and the like need
constant shapes, which reading a file finds for most models.

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
  if (std::ranges::binary_search(with_kernel, op)) return Execution::kernel;
  if (std::ranges::binary_search(in_parts, op)) return Execution::parts;
  return std::ranges::binary_search(without_a_step, op) ? Execution::compiled_away : Execution::definition;
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
  TextTable table({"operator", "opset", "element types", "reference", "cpu", "derivatives"});
  for (const op::Definition& definition : op::all())
    table.add_row({std::string(definition.name),
                   definition.since_opset ? std::to_string(definition.since_opset) : "ours",
                   types_of(definition), definition.evaluate ? "definition" : "-",
                   name_of(cpu_execution_of(definition.name)), derivatives_of(definition)});
  return table;
}

std::string operators_page() {
  return std::string(page_before) + operator_table().to_string() + std::string(page_after);
}

}  // namespace superstep::target
