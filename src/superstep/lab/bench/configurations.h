// The primitives that the published study of AI accelerators measures, with its configurations: Emani et
// al., "A Comprehensive Evaluation of Novel AI Accelerators for Deep Learning Workloads", PMBS 2022, Tables
// VI to IX.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::lab {

enum class PrimitiveKind { gemm, conv, relu, lstm };

// One shape. Members that a kind does not have are 0.
struct Primitive {
  PrimitiveKind kind;
  std::string name;
  std::int64_t m = 0, n = 0, k = 0;                  // gemm: [m, k] x [k, n]
  std::int64_t width = 0, height = 0, channels = 0;  // conv, relu
  std::int64_t batch = 0;                            // conv, relu, lstm; that of single precision
  std::int64_t filters = 0, filter_width = 0, filter_height = 0, pad_width = 0, pad_height = 0;  // conv
  std::int64_t steps = 0, inputs = 0, hidden = 0;                                                // lstm
};

const char* name_of(PrimitiveKind kind);  // "gemm"

// The published shapes of one kind, in the tables' order.
std::span<const Primitive> published_primitives(PrimitiveKind kind);
const Primitive& find_primitive(PrimitiveKind kind, std::string_view name);  // throws Error, nearest name

// Doubling sizes of a sweep: gemm n x n x n; conv, relu and lstm grow in the batch. The last is the first
// whose tensors need more than `most_bytes`: it shows where memory ended.
std::vector<Primitive> sweep(PrimitiveKind kind, double most_bytes, std::size_t element_bytes, bool trains);

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

// Forward and backward over forward alone: the gradients by data and by weights each cost as much as the
// forward pass; ReLU has one of them.
double training_factor(PrimitiveKind kind);

// Bytes of inputs, outputs and weights, and of their gradients where it trains.
double tensor_bytes(const Primitive& primitive, std::size_t element_bytes, bool trains);

nlohmann::json parameters_of(const Primitive& primitive);

}  // namespace superstep::lab
