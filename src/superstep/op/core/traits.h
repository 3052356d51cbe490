// What there is to know about an operator besides its rules: asked for in its definition, compared by name
// nowhere. An operator states what is not the default; what has no safe default (`unstated`) it must state:
// missing_facts() says what is missing, and a test asks it.
#pragma once

#include <cstdint>
#include <string_view>

namespace superstep::op {

struct BatchAxis;
struct BatchSite;

// The element types of an operator's data inputs (not of indices, shapes or axes); of one without data
// inputs, of its result.
enum class Elements : std::uint8_t {
  unstated,
  any,
  numeric,  // floating and integer
  integer,
  floating,
  boolean,
  bytes,    // i8, u8
  counter,  // i64
};

// The kind of work, for models of cost.
enum class WorkKind : std::uint8_t {
  view,       // costs nothing: Reshape, constants
  product,    // Conv, MatMul, Gemm and their gradients
  recurrent,  // LSTM, GRU, RNN
  attention,
  elementwise,  // an operation or a few for an element of the result; where that is smaller than an input,
                // a pass over all that is read
  optimizer,
  reduction,
  normalization,  // statistics, then a scaling: also softmax
  pooling,
  gather,
  scatter,
  movement,  // Transpose, Concat, Slice: copies
  spectral,  // Fourier transforms
  unsupported,
  unstated,
};

// How a reduction makes one element of many.
enum class Folding : std::uint8_t {
  none,
  sum,
  mean,
  product,
  largest,
  smallest,
  sum_of_squares,
  sum_of_absolutes,
  root_of_squares,  // of their sum
  log_of_sum,
  log_of_exponentials,  // of their sum
};

// What an element of an element-wise result takes, for models of cost.
enum class Effort : std::uint8_t {
  instruction,  // or a few
  function,     // one that takes some: an exponential, a root, a division
  functions,    // several, or a long one
};

// Which product of floating types it is, of inputs 0 and 1.
enum class ProductKind : std::uint8_t {
  none,
  convolution,
  transposed_convolution,  // the gradient of a convolution by its input
  weight_gradient,         // of a convolution: input 1 is the gradient of its result
  matrices,                // as NumPy's, with groups in front
  scaled_matrices,         // Gemm: transposed and scaled as its attributes say
};

// A result that is input 0 in another shape or order: nothing to compute.
enum class View : std::uint8_t {
  none,
  same,      // Identity
  regroups,  // Reshape: other extents, the same order
  permutes,  // Transpose
};

// What computing in a reduced type (bf16, f16) does to it.
enum class Precision : std::uint8_t {
  wide,          // it needs f32
  follows,       // no error worth f32: it compares, moves, or rounds once
  follows_data,  // the same, for data that comes reduced; a table is not reduced to be read
};

// Along which axes the elements of a result made of constants can differ.
enum class Variation : std::uint8_t {
  anywhere,
  nowhere,      // all are the same: ConstantOfShape
  elementwise,  // where those of the inputs, broadcast, do
  as_expanded,  // where those of input 0, broadcast, do
  as_moved,     // nowhere if those of input 0 are all the same
  as_reduced,   // nowhere if those of every input are all the same
};

struct Traits {
  Elements elements = Elements::unstated;
  WorkKind work = WorkKind::unstated;
  // Where the samples of a batch are in the results (op/batch/rules.h). Null: not known to keep them apart.
  BatchAxis (*batch)(const BatchSite& site) = nullptr;
  Variation constants = Variation::anywhere;
  std::string_view domain = {};  // ONNX's, where it is not the standard one: "ai.onnx.ml"
  // The ONNX attributes that it has or had in any operator set, between spaces. A file with another one means
  // something that nobody here knows of, and is refused.
  std::string_view attributes = {};
  // Where newer operator sets only widened types: since when what f32 graphs use has been the same.
  int f32_since = 0;
  int axes_input_since = 0;  // of a reduction: the first operator set with the axes as an input
  Folding folding = Folding::none;

  // Each element of the output is made of the elements at the same place of the inputs, after broadcasting.
  bool elementwise = false;
  Effort effort = Effort::instruction;
  // A product or convolution of floating types, that element-wise nodes may follow in one kernel.
  bool product = false;
  ProductKind product_kind = ProductKind::none;
  View view = View::none;
  Precision precision = Precision::wide;
  // It gives elements of its data as they are, or the largest of some: values may be rounded to bytes before
  // it as well as after.
  bool moves_bytes = false;
  // Element i is made from number i of a counter, which counts the samples of a batch.
  bool by_counter = false;
};

}  // namespace superstep::op
