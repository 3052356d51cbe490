// ONNX files: opened, described, checked and turned into graphs.
//
// Opening maps the file into memory and reads its structure; tensors stay where they are until import() asks
// for their elements, so a file of gigabytes opens at once. Files are hostile until shown otherwise: every
// length is checked against what is left of the file, nesting is bounded, external data may lie only in
// files below the model's own folder.
//
// Operator sets 1 to 28 of the default domain are read; forms of older sets become the present ones
// (onnx/adapters/adapters.h). Control flow is resolved at import (onnx/import/control_flow.cpp), calls of
// functions of the model are replaced by the function's nodes, sequences inside a model are taken apart
// (onnx/import/sequence.cpp). Strings, maps, and sequences and optionals that go in or out have no place in a
// graph of tensors and are refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/tensor.h"
#include "superstep/graph/graph.h"
#include "superstep/onnx/findings.h"
#include "superstep/onnx/import_options.h"
#include "superstep/onnx/port.h"

namespace superstep::onnx {

// Whether a file is a model's by its name: .onnx, or an archive of torch.export, .pt2.
bool is_model_file(std::string_view name);

struct File;  // the mapped file and its structure (onnx/file.h)

class Model {
 public:
  // Throws Error (not_found, io, bad_file, unsupported for an IR version or operator set that is too new or
  // too old).
  // `given`: inputs with an initialiser that are given all the same: they are inputs as the others are.
  // Throws Error (invalid_argument) on a name that is no input of the model.
  static Model open(const std::filesystem::path& path, const std::vector<std::string>& given = {});
  // From memory, which is copied. External data are refused.
  static Model parse(std::span<const std::byte> bytes, const std::string& name = "model",
                     const std::vector<std::string>& given = {});

  const std::string& path() const;
  std::int64_t ir_version() const;
  std::string producer() const;  // name and version
  std::string doc() const;
  std::string graph_name() const;
  const std::map<std::string, std::int64_t>& opsets() const;  // by domain; "" is the default one
  const std::map<std::string, std::string>& metadata() const;
  const std::vector<Port>& inputs() const;    // without those that have an initialiser, unless they are given
  const std::vector<Port>& defaults() const;  // those: inputs that have the initialiser's elements
  const std::vector<Port>& outputs() const;

  // The graph at the extents that the options give. Values keep their ONNX names. Throws Error: unsupported,
  // bad_graph or bad_file, naming the nodes it cannot take (all of them, the first ten in the message).
  graph::Graph import(const ImportOptions& options = {}) const;

  // The same with what becomes of each floating initialiser, where parameters become states.
  struct WithInitializers {
    graph::Graph graph;
    std::vector<Initializer> initializers;
  };
  WithInitializers import_with_initializers(const ImportOptions& options) const;

  // Everything that is in the way of an import, at once. Never throws for what the file holds.
  Findings check(const ImportOptions& options = {}) const;

 private:
  explicit Model(std::shared_ptr<const File> file);
  std::shared_ptr<const File> file_;
};

// A file that holds one TensorProto, as ONNX's test data have them. Throws Error (not_found, bad_file,
// unsupported: an element type that a Tensor does not have, or another kind of value).
Tensor read_tensor_file(const std::filesystem::path& path);

}  // namespace superstep::onnx
