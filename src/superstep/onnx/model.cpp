#include "superstep/onnx/model.h"

#include <fmt/format.h>

#include "superstep/onnx/file.h"
#include "superstep/onnx/import/importer.h"
#include "superstep/onnx/wire/element.h"

namespace superstep::onnx {
namespace {

constexpr std::size_t most_findings_told = 10;

[[noreturn]] void refuse(const File& file, const std::vector<Finding>& findings) {
  std::string text = fmt::format("cannot be imported: {}", to_string(findings.front()));
  for (std::size_t i = 1; i < std::min(findings.size(), most_findings_told); ++i)
    text += "; " + to_string(findings[i]);
  if (findings.size() > most_findings_told)
    text += fmt::format("; and {} more", findings.size() - most_findings_told);
  throw Error(ErrorCode::unsupported, text, file.path, "'superstep onnx check' lists everything");
}

}  // namespace

std::string to_string(const Extent& extent) {
  if (extent.value >= 0) return std::to_string(extent.value);
  return extent.symbol.empty() ? "?" : extent.symbol;
}

std::string to_string(const Port& port) {
  if (!port.element) return port.type;
  if (!port.has_shape) return port.type + "[...]";
  std::vector<std::string> extents;
  for (const Extent& extent : port.extents) extents.push_back(to_string(extent));
  return fmt::format("{}[{}]", port.type, fmt::join(extents, ","));
}

std::string to_string(const Finding& finding) {
  if (finding.op.empty()) return fmt::format("{}: {}", finding.where, finding.reason);
  return fmt::format("{} ({}, operator set {}): {}", finding.where, finding.op, finding.opset,
                     finding.reason);
}

Model::Model(std::shared_ptr<const File> file) : file_(std::move(file)) {}

Model Model::open(const std::filesystem::path& path) {
  const auto file = std::make_shared<File>();
  file->path = path.string();
  file->mapping = std::make_unique<MappedFile>(path);
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  file->external = std::make_unique<ExternalData>(folder);
  try {
    describe(*file, file->mapping->bytes());
  } catch (const Error& error) {
    throw error.in(file->path);
  }
  return Model(file);
}

Model Model::parse(std::span<const std::byte> bytes, const std::string& name) {
  const auto file = std::make_shared<File>();
  file->path = name;
  file->copy.assign(bytes.begin(), bytes.end());
  file->external = std::make_unique<ExternalData>(std::filesystem::path());
  try {
    describe(*file, file->copy);
  } catch (const Error& error) {
    throw error.in(name);
  }
  return Model(file);
}

const std::string& Model::path() const { return file_->path; }
std::int64_t Model::ir_version() const { return file_->model.ir_version; }
std::string Model::doc() const { return std::string(file_->model.doc); }
std::string Model::graph_name() const { return std::string(file_->graph.name); }
const std::map<std::string, std::int64_t>& Model::opsets() const { return file_->opsets; }
const std::map<std::string, std::string>& Model::metadata() const { return file_->metadata; }
const std::vector<Port>& Model::inputs() const { return file_->inputs; }
const std::vector<Port>& Model::outputs() const { return file_->outputs; }

std::string Model::producer() const {
  const ModelProto& model = file_->model;
  return fmt::format("{}{}{}", model.producer_name, model.producer_version.empty() ? "" : " ",
                     model.producer_version);
}

graph::Graph Model::import(const ImportOptions& options) const {
  Imported imported = import_file(*file_, options, ImportMode::whole);
  if (!imported.findings.importable()) refuse(*file_, imported.findings.unsupported);
  return std::move(imported.graph);
}

Findings Model::check(const ImportOptions& options) const {
  return import_file(*file_, options, ImportMode::types_only).findings;
}

Tensor read_tensor_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  try {
    return read_tensor(parse_tensor(file.bytes()), ExternalData(std::filesystem::path()));
  } catch (const Error& error) {
    throw error.in(path.string());
  }
}

}  // namespace superstep::onnx
