// Any text as the graph of an archive of torch.export is either a model that can be imported, or refused with
// an Error.
#include <span>

#include "superstep/base/error.h"
#include "superstep/file/zip.h"
#include "superstep/graph/verify.h"
#include "superstep/onnx/model.h"
#include "superstep/op/core/definition.h"
#include "tests/fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const InputFile file(nullptr, 0, ".pt2");
  const auto bytes_of = [](std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  superstep::data::ZipEntries entries;
  entries["archive_format"] = bytes_of("pt2"), entries["archive_version"] = bytes_of("0");
  entries["models/model.json"] = bytes_of({reinterpret_cast<const char*>(data), size});
  entries["data/weights/w"].resize(64);
  entries["data/weights/model_weights_config.json"] = bytes_of(
      R"({"config": {"w": {"path_name": "w", "tensor_meta": {"dtype": 7, "sizes": [{"as_int": 4}, {"as_int": 4}],
          "strides": [{"as_int": 1}, {"as_int": 4}]}}}})");
  superstep::data::write_zip(file.path(), entries);
  superstep::onnx::ImportOptions options;
  options.most_nodes = 500;
  options.default_extent = 2;
  try {
    const auto model = superstep::onnx::Model::open(file.path());
    const bool importable = model.check(options).importable();
    const superstep::graph::Graph graph = model.import(options);
    if (!importable || !superstep::graph::verify(graph, superstep::op::infer_types)) __builtin_trap();
  } catch (const superstep::Error&) {
  }
  return 0;
}
