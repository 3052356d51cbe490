// Messages of the Open Inference Protocol over gRPC (package `inference`), in the wire format of Protocol
// Buffers. Knows nothing of connections.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "superstep/edge/protocol/infer_codec.h"
#include "superstep/edge/protocol/inference.h"
#include "superstep/onnx/wire/wire_reader.h"

namespace superstep::edge {

// Of ModelReadyRequest, ModelMetadataRequest, ModelInferRequest: fields 1 and 2. Views of the message. Throws
// Error (invalid_argument), as all that reads here does.
struct ModelName {
  std::string_view name, version;
};
ModelName decode_model_name(onnx::Bytes message);

// ModelInferRequest. `admit` as in decode_infer_request(); tensors are in raw_input_contents or typed.
InferRequest decode_infer_message(const ServedPorts& ports, onnx::Bytes message,
                                  FunctionRef<void(std::int64_t rows)> admit);

std::string encode_flag(bool value);  // ServerLive-, ServerReady-, ModelReadyResponse
std::string encode_server_metadata(std::string_view version, const std::vector<std::string>& extensions);
std::string encode_model_metadata(const ModelService& model, const Version& version);
// ModelInferResponse, with tensors in raw_output_contents.
std::string encode_infer_message(const Inference::Answer& answer);
// ModelStreamInferResponse: an answer, or why there is none.
std::string encode_stream_answer(std::string_view infer_message);
std::string encode_stream_failure(std::string_view message, std::string_view id);

}  // namespace superstep::edge
