// Any message of a request for inference over gRPC is understood or refused with an Error.
#include "superstep/base/error.h"
#include "superstep/edge/grpc/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace superstep;
  const edge::ServedPorts ports{
      .inputs = {{"x", ElementType::f32, {2, 3}}, {"mask", ElementType::boolean, {}}},
      .outputs = {{"y", ElementType::f32, {2}}}};
  const edge::ServedPorts whole{.batched = false, .inputs = {{"x", ElementType::i64, {4}}}, .outputs = {}};
  const onnx::Bytes message{reinterpret_cast<const std::byte*>(data), size};
  const auto admit = [](std::int64_t rows) {
    if (rows > 1000) throw Error(ErrorCode::out_of_memory, "more rows than there is memory for");
  };
  try {
    edge::decode_model_name(message);
  } catch (const Error&) {
  }
  for (const edge::ServedPorts* each : {&ports, &whole}) {
    try {
      edge::decode_infer_message(*each, message, admit);
    } catch (const Error&) {
    }
  }
  return 0;
}
