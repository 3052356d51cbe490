// Writing graphs as ONNX files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "superstep/base/error.h"
#include "superstep/graph/graph.h"

namespace superstep::onnx {

struct WriteOptions {
  int opset = 13;                      // of the default domain: the largest that the file may need
  std::string batch_symbol = "batch";  // the name of the batch extent; empty: fixed extents
  std::string producer_version;        // of this program
};

// The bytes of a ModelProto. `model` gives the graph at a batch size: extents that follow the batch are
// written as a symbol. States become initialisers; operators of ours are replaced by their decompositions.
// A graph with updates gives each state's next value as an output named "STATE.next".
// Throws Error (unsupported) naming the node when an operator is newer than `opset` and has no older form.
std::string to_onnx(const std::function<graph::Graph(std::int64_t batch)>& model,
                    const WriteOptions& options = {});

// Atomically; throws Error (io).
void write_onnx(const std::filesystem::path& path,
                const std::function<graph::Graph(std::int64_t batch)>& model,
                const WriteOptions& options = {});

}  // namespace superstep::onnx
