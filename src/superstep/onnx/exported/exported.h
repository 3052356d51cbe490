// Archives of torch.export (.pt2): read as the ONNX model that they stand for.
//
// The archive is a zip file: models/NAME.json has the graph in operators of ATen, by the schema of PyTorch's
// torch/_export/serde/schema.py, data/weights/ the elements of parameters and buffers. Each node is written
// as nodes of ONNX (aten.h), so that what comes after it, the importer, its refusals and the trainer, is that
// of every other model file. Nothing of the archive is run, and nothing of a pickle is read.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/error.h"

namespace superstep::onnx {

// Whether the bytes begin as a zip archive does.
bool may_be_exported(std::span<const std::byte> bytes);

// The bytes of a ModelProto. Throws Error: bad_file (a damaged archive, a weight whose bytes are too few, a
// graph that names what is not there), unsupported (an archive of another kind or version; operators that
// have no form here, all of them named).
std::vector<std::byte> onnx_of_exported(std::span<const std::byte> bytes, const std::string& where);

}  // namespace superstep::onnx
