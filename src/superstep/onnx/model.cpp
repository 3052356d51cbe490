#include "superstep/onnx/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "superstep/base/printable.h"
#include "superstep/base/text.h"
#include "superstep/onnx/exported/exported.h"
#include "superstep/onnx/file.h"
#include "superstep/onnx/import/importer.h"
#include "superstep/onnx/wire/element.h"

namespace superstep::onnx {
namespace {

constexpr std::size_t most_findings_told = 10;

[[noreturn]] void refuse(const File& file, const std::vector<Finding>& findings) {
  std::vector<std::string> lines = told(findings);
  const std::size_t more = lines.size() - std::min(lines.size(), most_findings_told);
  lines.resize(lines.size() - more);
  std::string text = fmt::format("cannot be imported: {}", fmt::join(lines, "; "));
  if (more > 0) text += fmt::format("; and {} more", more);
  throw Error(ErrorCode::unsupported, text, file.path, "'superstep onnx check' lists everything");
}

// The bytes themselves, or those of the model that an archive of torch.export stands for, which are the
// file's own then.
Bytes model_in(File& file, Bytes bytes) {
  if (!may_be_exported(bytes)) {
    if (file.path.ends_with(".pt2"))
      throw Error(ErrorCode::bad_file, "is no archive of torch.export: it does not begin as a zip file does",
                  file.path, "torch.export.save(program, FILE) writes one");
    return bytes;
  }
  file.copy = onnx_of_exported(bytes, file.path);
  file.mapping.reset();
  return file.copy;
}

}  // namespace

bool is_model_file(std::string_view name) { return name.ends_with(".onnx") || name.ends_with(".pt2"); }

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

std::vector<std::string> told(const std::vector<Finding>& findings) {
  const auto alike = [](const Finding& a, const Finding& b) {
    return a.op == b.op && a.opset == b.opset && a.reason == b.reason;
  };
  std::vector<std::pair<const Finding*, std::size_t>> groups;
  for (const Finding& finding : findings) {
    const auto group = std::ranges::find_if(
        groups, [&](const auto& each) { return !finding.op.empty() && alike(*each.first, finding); });
    if (group == groups.end())
      groups.emplace_back(&finding, 1);
    else
      ++group->second;
  }
  std::vector<std::string> lines;
  for (const auto& [first, count] : groups) {
    Finding finding = *first;
    if (count > 1) finding.where += fmt::format(" and {} more", count - 1);
    lines.push_back(to_string(finding));
  }
  return lines;
}

std::string to_string(const std::vector<Initializer>& initializers, std::size_t most_names) {
  std::int64_t trained = 0, values = 0, statistics = 0;
  std::vector<std::string> kept;
  for (const Initializer& initializer : initializers) {
    trained += initializer.kind == Initializer::Kind::trained;
    values += initializer.kind == Initializer::Kind::trained ? initializer.elements : 0;
    statistics += initializer.kind == Initializer::Kind::statistics;
    if (initializer.kind == Initializer::Kind::kept) kept.push_back(printable(initializer.name));
  }
  std::string text = fmt::format("trained: {} of {} initializers, {} values", trained, initializers.size(),
                                 format_count(static_cast<double>(values)));
  if (statistics > 0) text += fmt::format("; kept up to date: {} statistics", statistics);
  if (kept.empty()) return text;
  const std::size_t told = std::min(kept.size(), most_names);
  text += fmt::format("; not: {}",
                      fmt::join(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(told), ", "));
  if (kept.size() > told) text += fmt::format(" and {} more", kept.size() - told);
  return text;
}

Model::Model(std::shared_ptr<const File> file) : file_(std::move(file)) {}

Model Model::open(const std::filesystem::path& path, const std::vector<std::string>& given) {
  const auto file = std::make_shared<File>();
  file->path = path.string();
  file->mapping = std::make_unique<MappedFile>(path);
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  file->external = std::make_unique<ExternalData>(folder);
  const Bytes bytes = model_in(*file, file->mapping->bytes());
  try {
    describe(*file, bytes, given);
  } catch (const Error& error) {
    throw error.in(file->path);
  }
  return Model(file);
}

Model Model::parse(std::span<const std::byte> bytes, const std::string& name,
                   const std::vector<std::string>& given) {
  const auto file = std::make_shared<File>();
  file->path = name;
  if (may_be_exported(bytes))
    model_in(*file, bytes);
  else
    file->copy.assign(bytes.begin(), bytes.end());
  file->external = std::make_unique<ExternalData>(std::filesystem::path());
  try {
    describe(*file, file->copy, given);
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
const std::vector<Port>& Model::defaults() const { return file_->defaults; }
const std::vector<Port>& Model::outputs() const { return file_->outputs; }

std::string Model::producer() const {
  const ModelProto& model = file_->model;
  return fmt::format("{}{}{}", model.producer_name, model.producer_version.empty() ? "" : " ",
                     model.producer_version);
}

graph::Graph Model::import(const ImportOptions& options) const {
  return import_with_initializers(options).graph;
}

Model::WithInitializers Model::import_with_initializers(const ImportOptions& options) const {
  Imported imported = import_file(*file_, options, ImportMode::whole);
  if (!imported.findings.importable()) refuse(*file_, imported.findings.unsupported);
  return {std::move(imported.graph), std::move(imported.findings.initializers)};
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
