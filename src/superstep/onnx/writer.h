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
  int opset = 0;                       // of the default domain; 0: the smallest that will do, at least 13
  std::string batch_symbol = "batch";  // the name of the batch extent
  std::int64_t fixed_batch = 0;        // 0: the batch is left open
  std::string producer_version;        // of this program
};

// The bytes of a ModelProto. `model` gives the graph at a batch size: extents that follow the batch are
// written as a symbol, and constants that do (shapes, and what is the same for all samples) as nodes that
// compute them from the extent of an input (onnx/open_batch.h). States become initialisers; operators of ours
// are replaced by their decompositions. A graph with updates takes each state that changes as an input, whose
// initialiser is its initial value, and gives its next value as an output named "STATE.next". Every computed
// value is listed with its type (value_info). Throws Error (unsupported) naming the node when an operator is
// newer than `opset` and has no older form, when the batch cannot be left open, and when the file would
// exceed the 2 GiB that the format allows.
std::string to_onnx(const std::function<graph::Graph(std::int64_t batch)>& model,
                    const WriteOptions& options = {});

// Why a file of the model cannot leave its batch open; empty where it can.
std::string why_batch_is_fixed(const std::function<graph::Graph(std::int64_t batch)>& model);

// Throws what to_onnx() would throw, without the bytes.
void require_writable(const std::function<graph::Graph(std::int64_t batch)>& model,
                      const WriteOptions& options);

// Atomically; throws Error (io).
void write_onnx(const std::filesystem::path& path,
                const std::function<graph::Graph(std::int64_t batch)>& model,
                const WriteOptions& options = {});

}  // namespace superstep::onnx
