// Any body of a request for inference is understood or refused with an Error. The first line says how long
// the JSON is, where tensors follow it.
#include <cstdlib>

#include "superstep/base/error.h"
#include "superstep/edge/protocol/infer_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace superstep;
  const edge::ServedPorts ports{
      .inputs = {{"x", ElementType::f32, {2, 3}}, {"mask", ElementType::boolean, {}}},
      .outputs = {{"y", ElementType::f32, {2}}}};
  const edge::ServedPorts whole{.batched = false, .inputs = {{"x", ElementType::i64, {4}}}, .outputs = {}};
  std::string_view body(reinterpret_cast<const char*>(data), size);
  std::optional<std::size_t> json_bytes;
  if (const std::size_t line = body.find('\n'); line != std::string_view::npos && line < 20) {
    json_bytes = std::strtoull(std::string(body.substr(0, line)).c_str(), nullptr, 10);
    body.remove_prefix(line + 1);
  }
  const auto admit = [](std::int64_t rows) {
    if (rows > 1000) throw Error(ErrorCode::out_of_memory, "more rows than there is memory for");
  };
  for (const edge::ServedPorts* each : {&ports, &whole}) {
    try {
      edge::decode_infer_request(*each, body, json_bytes, admit);
    } catch (const Error&) {
    }
  }
  return 0;
}
