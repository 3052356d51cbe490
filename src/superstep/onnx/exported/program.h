// An archive of torch.export, opened and checked: its graph as JSON, its weights where they lie.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/file/zip.h"

namespace superstep::onnx {

// A type of elements by PyTorch's number in such files: ONNX's number, and its size. Throws Error
// (unsupported) for those that have none here.
struct ExportedType {
  std::int64_t onnx = 0;
  std::size_t bytes = 0;
};
ExportedType exported_type(std::int64_t number);

// An extent: known, a symbol, or something that follows symbols ("").
struct ExportedExtent {
  std::int64_t value = -1;
  std::string symbol;
};

class ExportedProgram {
 public:
  ExportedProgram(std::span<const std::byte> bytes, const std::string& where);

  const nlohmann::json& graph() const { return graph_; }
  const nlohmann::json& signature() const { return signature_; }
  const std::string& producer() const { return producer_; }

  // Of a value of the graph. Throws Error (bad_file) where the file says nothing of it.
  ExportedType type(const std::string& value) const;
  std::vector<ExportedExtent> extents(const std::string& value) const;

  // What a weight or a constant of this name has, row-major. Throws Error: bad_file, unsupported.
  struct Weight {
    std::int64_t onnx_type = 0;
    std::vector<std::int64_t> extents;
    std::string elements;
  };
  Weight weight(const std::string& name) const;

  const std::string& where() const { return where_; }

 private:
  const data::ZipEntry* find(const std::string& name) const;
  std::string text_of(const std::string& name) const;
  nlohmann::json json_of(const std::string& name) const;
  void require_version() const;
  std::string only_model() const;
  void read_weights(const std::string& folder, const std::string& list);

  std::string where_, prefix_, producer_;
  data::ZipReader zip_;
  nlohmann::json graph_, signature_;
  std::map<std::string, std::pair<std::string, nlohmann::json>> weights_;  // entry, and what is said of it
};

}  // namespace superstep::onnx
