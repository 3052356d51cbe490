// Any bytes are either a model that can be imported, or refused with an Error; check() never throws.
#include "superstep/base/error.h"
#include "superstep/graph/verify.h"
#include "superstep/onnx/model.h"
#include "superstep/op/core/definition.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  superstep::onnx::ImportOptions options;
  options.most_nodes = 500;  // hostile loops end soon
  options.default_extent = 2;
  try {
    const auto model =
        superstep::onnx::Model::parse({reinterpret_cast<const std::byte*>(data), size}, "fuzz");
    const bool importable = model.check(options).importable();
    const superstep::graph::Graph graph = model.import(options);
    if (!importable || !superstep::graph::verify(graph, superstep::op::infer_types)) __builtin_trap();
  } catch (const superstep::Error&) {
  }
  return 0;
}
