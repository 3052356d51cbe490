// Requests and answers of the Open Inference Protocol's `infer`: JSON, and JSON followed by the tensors'
// bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/function_ref.h"
#include "superstep/base/tensor.h"
#include "superstep/edge/model/blueprint.h"

namespace superstep::edge {

struct WantedOutput {
  std::size_t port = 0;
  bool binary = false;
};

struct InferRequest {
  std::string id;
  std::int64_t rows = 0;
  std::vector<Tensor> inputs;  // in the order of the ports
  std::vector<WantedOutput> outputs;
  std::optional<std::chrono::microseconds> timeout;
};

// `json_bytes`: how long the JSON at the front is, where tensors follow it. `admit` hears how many rows there
// will be before memory is taken for them, and throws to refuse. Throws Error (invalid_argument), naming the
// tensor.
InferRequest decode_infer_request(const ServedPorts& ports, std::string_view body,
                                  std::optional<std::size_t> json_bytes,
                                  FunctionRef<void(std::int64_t rows)> admit);

struct InferAnswer {
  std::string body;
  std::optional<std::size_t> json_bytes;  // where tensors follow the JSON
};

// Throws Error (invalid_argument) where an output holds what JSON cannot say (NaN, infinity).
InferAnswer encode_infer_answer(const ServedPorts& ports, std::string_view model, std::string_view version,
                                std::string_view id, std::span<const WantedOutput> wanted,
                                std::span<const Tensor> outputs);

}  // namespace superstep::edge
