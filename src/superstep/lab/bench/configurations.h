// The primitives that the published study of AI accelerators measures, with its configurations: Emani et
// al., "A Comprehensive Evaluation of Novel AI Accelerators for Deep Learning Workloads", PMBS 2022, Tables
// VI to IX.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::lab {

enum class PrimitiveKind { gemm, conv, relu, lstm, gru, rnn };
std::span<const PrimitiveKind> primitive_kinds();

// A layer over a sequence, and how many products with its input and its state a step of it has.
bool is_recurrent(PrimitiveKind kind);
std::int64_t gates_of(PrimitiveKind kind);

// One shape. Members that a kind does not have are 0.
struct Primitive {
  PrimitiveKind kind;
  std::string name;
  std::int64_t m = 0, n = 0, k = 0;                  // gemm: [m, k] x [k, n]
  std::int64_t width = 0, height = 0, channels = 0;  // conv, relu
  std::int64_t batch = 0;                            // of all but gemm; that of single precision
  std::int64_t filters = 0, filter_width = 0, filter_height = 0, pad_width = 0, pad_height = 0;  // conv
  std::int64_t steps = 0, inputs = 0, hidden = 0;                                                // recurrent
};

const char* name_of(PrimitiveKind kind);  // "gemm"

// The published shapes of one kind, in the tables' order.
std::span<const Primitive> published_primitives(PrimitiveKind kind);
// The published one of this name, of any kind; null where it is none.
const Primitive* published_primitive(std::string_view name);
// "gemm_1024" (square) or "gemm_64x1760x2560" (m x n x k); nothing for other names.
std::optional<Primitive> product_named(std::string_view name);
// One of either. Throws Error (invalid_argument), nearest name.
Primitive find_primitive(PrimitiveKind kind, std::string_view name);

// Which passes are made. The gradients alone are those by the data and by the weights, where they need
// nothing that the forward pass computes: of products and convolutions.
enum class Passes { forward, gradients, both };
bool has_gradients_alone(PrimitiveKind kind);
const char* name_of(Passes passes);          // "infer", "backward", "train"
Passes passes_named(std::string_view mode);  // throws Error (invalid_argument)

// Doubling sizes of a sweep: gemm n x n x n; the others grow in the batch. The last is the first
// whose tensors need more than `most_bytes`: it shows where memory ended.
std::vector<Primitive> sweep(PrimitiveKind kind, double most_bytes, std::size_t element_bytes, Passes passes);

// The samples that are split over threads: rows m of a product, images or sequences otherwise.
std::int64_t batch_of(const Primitive& primitive);
Primitive with_batch(Primitive primitive, std::int64_t batch);

// Convolutions, ReLU and recurrent layers of half precision run twice the published batch, so that memory
// is equal (the study's own rule); products do not.
std::int64_t batch_at(const Primitive& primitive, std::size_t element_bytes);

std::int64_t conv_out(std::int64_t in, std::int64_t filter, std::int64_t pad);  // stride 1

// Operations of the forward pass, a multiply-accumulate as two. `corrected` counts what is computed;
// `printed` follows the study's formulas, in which the output of a convolution lacks one row and one column
// and the recurrent product of an LSTM counts h instead of h x h.
double corrected_flops(const Primitive& primitive);
double printed_flops(const Primitive& primitive);

// The operations of these passes over those of the forward pass: the gradients by data and by weights each
// cost as much as it; ReLU has one of them.
double operations_factor(PrimitiveKind kind, Passes passes);

// Bytes of inputs, outputs and weights, and of their gradients.
double tensor_bytes(const Primitive& primitive, std::size_t element_bytes, Passes passes);

nlohmann::json parameters_of(const Primitive& primitive);

}  // namespace superstep::lab
