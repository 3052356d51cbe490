// Graphs of one operator, from the names that published tables give primitives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/lab/bench/configurations.h"

namespace superstep::lab {

// "gemm_k1" .. "gemm_k4", "gemm_1000" (square), "gemm_1760x16x1760_nn" (m x n x k) and
// "conv_w7_h7_c32_n131072_k32_fw3_fh3_p0x0_s1x1"; `metric` says which pass a convolution's time is of
// (time_forward, time_backward_inputs, time_backward_weights). Nothing for other names.
std::optional<graph::Graph> primitive_graph(const std::string& name, const std::string& metric);

// The shapes of the study of Emani et al. that have a batch ("conv_k1", "relu_k2", "rnn_k3"), and its
// products with their gradients. `batch` 0: the published one, twice that of elements of two bytes. Nothing
// for other names. Throws Error (unsupported) for gradients alone of what has none.
std::optional<graph::Graph> batched_primitive(const std::string& name, Passes passes, std::int64_t batch,
                                              std::size_t element_bytes);

// A set of kernels that tables give one figure of ("conv2d"), as names of primitives; empty: it is none.
std::vector<std::string> kernels_of_set(const std::string& name);

}  // namespace superstep::lab
