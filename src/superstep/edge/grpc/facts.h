// What gRPC says of models beside their answers, in Triton's messages: configurations, counts and times, the
// repository. In the wire format of Protocol Buffers; knows nothing of connections.
#pragma once

#include <string>

#include "superstep/edge/service/repository.h"
#include "superstep/onnx/wire/wire_reader.h"

namespace superstep::edge {

std::string encode_model_config(const ModelService& model, const Version& version);  // ModelConfigResponse

// ModelStatisticsResponse of the model, of all models where it is null.
std::string encode_model_statistics(const Repository& repository, const ModelService* model);

// RepositoryIndexRequest: whether those that are ready are meant alone. Throws Error (invalid_argument).
bool decode_only_ready(onnx::Bytes message);
std::string encode_repository_index(const Repository& repository, bool only_ready);

}  // namespace superstep::edge
