#include "superstep/run/train/input_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "superstep/base/encoding/sha256.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/run/serve/sound.h"

namespace superstep::run {
namespace {

using nlohmann::json;

constexpr const char* schema = "superstep-inputs/1";
// Some thousand samples have the range of millions within the tenth that is allowed beyond it; no more are
// filled at once than fit beside a training (both chosen).
constexpr std::int64_t most_samples = 4096;
constexpr std::size_t most_bytes = std::size_t{32} << 20;

std::size_t bytes_of(const std::vector<InputPort>& ports) {
  std::size_t bytes = 0;
  for (const InputPort& port : ports)
    bytes += static_cast<std::size_t>(port.row.element_count()) * size_in_bytes(port.type);
  return std::max<std::size_t>(1, bytes);
}

std::int64_t repeated_of(std::span<const Tensor> tensors, std::int64_t samples) {
  std::set<std::string> seen;
  for (std::int64_t i = 0; i < samples; ++i) {
    Sha256 hash;
    for (const Tensor& tensor : tensors) {
      const std::size_t row = tensor.byte_count() / static_cast<std::size_t>(samples);
      hash.add({tensor.bytes() + static_cast<std::size_t>(i) * row, row});
    }
    seen.insert(hash.hexadecimal());
  }
  return samples - static_cast<std::int64_t>(seen.size());
}

std::vector<std::int64_t> spread_indices(std::int64_t count, std::int64_t wanted) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(std::min(count, wanted)));
  for (std::size_t i = 0; i < indices.size(); ++i)
    indices[i] = static_cast<std::int64_t>(i) * count / static_cast<std::int64_t>(indices.size());
  return indices;
}

}  // namespace

std::vector<InputPort> row_inputs(const Model& model) {
  if (model.fixed_batch() > 0 || model.one_a_call()) return {};
  const graph::Graph graph = model.inference()(1);
  std::vector<InputPort> ports;
  for (const graph::ValueId id : graph.inputs()) {
    const std::vector<std::int64_t>& extents = graph.type(id).shape.extents();
    if (extents.empty() || extents[0] != 1) return {};
    ports.push_back({graph.value(id).name, graph.type(id).element,
                     Shape(std::vector<std::int64_t>(extents.begin() + 1, extents.end()))});
  }
  return ports;
}

std::vector<Tensor> filled_inputs(const Task& task, const std::vector<InputPort>& ports,
                                  std::span<const std::int64_t> indices, ThreadPool& pool) {
  std::vector<Tensor> tensors;
  for (const InputPort& port : ports) {
    std::vector<std::int64_t> extents = port.row.extents();
    extents.insert(extents.begin(), static_cast<std::int64_t>(indices.size()));
    tensors.emplace_back(port.type, Shape(std::move(extents)));
  }
  task.fill_inputs(indices, tensors, pool);
  return tensors;
}

std::vector<std::string> InputSurvey::findings() const {
  std::vector<std::string> lines;
  if (samples < 2) return lines;
  if (not_finite > 0)
    lines.push_back(fmt::format("{} of {} training samples hold NaN or infinity", not_finite, samples));
  if (repeated == samples - 1) {
    lines.push_back(fmt::format("all {} training samples that were looked at are the same", samples));
    return lines;
  }
  if (repeated > 0)
    lines.push_back(fmt::format("{} of {} training samples are another one again", repeated, samples));
  for (const InputRange& range : ranges)
    if (range.low == range.high)
      lines.push_back(fmt::format("the training samples' '{}' is {:g} everywhere", range.name, range.low));
  return lines;
}

InputSurvey survey_inputs(const Task& task, const Model& model, std::int64_t count, ThreadPool& pool) {
  const std::vector<InputPort> ports = row_inputs(model);
  const bool any_floats =
      std::ranges::any_of(ports, [](const InputPort& port) { return is_floating(port.type); });
  if (!any_floats || count == 0) return {};
  const auto fitting = static_cast<std::int64_t>(std::max<std::size_t>(2, most_bytes / bytes_of(ports)));
  const std::vector<std::int64_t> indices = spread_indices(count, std::min(most_samples, fitting));
  const std::vector<Tensor> tensors = filled_inputs(task, ports, indices, pool);
  InputSurvey survey{.samples = static_cast<std::int64_t>(indices.size())};
  for (std::size_t i = 0; i < ports.size(); ++i) {
    survey.not_finite = std::max(survey.not_finite, rows_not_finite(tensors[i]));
    if (!is_floating(ports[i].type)) continue;
    const auto [low, high] = finite_range(tensors[i]);
    if (low <= high) survey.ranges.push_back({ports[i].name, low, high});
  }
  survey.repeated = repeated_of(tensors, survey.samples);
  return survey;
}

void write_input_ranges(const std::filesystem::path& folder, const InputSurvey& survey) {
  if (survey.ranges.empty()) return;
  json inputs = json::object();
  for (const InputRange& range : survey.ranges)
    inputs[range.name] = {{"low", range.low}, {"high", range.high}};
  write_file_atomically(folder / "inputs.json",
                        json{{"schema", schema}, {"samples", survey.samples}, {"inputs", inputs}}.dump(
                            2, ' ', false, json::error_handler_t::replace) +
                            "\n");
}

std::vector<InputRange> read_input_ranges(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "inputs.json";
  if (!std::filesystem::is_regular_file(file)) return {};
  const json found = parse_json(read_text_file(file));
  if (!found.is_object() || found.value("schema", json()) != schema || !found.contains("inputs") ||
      !found["inputs"].is_object())
    return {};
  std::vector<InputRange> ranges;
  for (const auto& [name, range] : found["inputs"].items()) {
    const bool good = range.is_object() && range.contains("low") && range["low"].is_number() &&
                      range.contains("high") && range["high"].is_number();
    if (good) ranges.push_back({name, range["low"].get<double>(), range["high"].get<double>()});
  }
  return ranges;
}

OutsideOfRanges count_outside(const Task& task, const Model& model, const std::vector<InputRange>& ranges,
                              ThreadPool& pool) {
  const std::vector<InputPort> ports = ranges.empty() ? std::vector<InputPort>() : row_inputs(model);
  if (ports.empty()) return {};
  const auto piece = static_cast<std::int64_t>(std::max<std::size_t>(1, most_bytes / bytes_of(ports)));
  std::vector<std::int64_t> outside(ports.size());
  for (std::int64_t first = 0; first < task.size(); first += piece) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(std::min(piece, task.size() - first)));
    std::iota(indices.begin(), indices.end(), first);
    const std::vector<Tensor> tensors = filled_inputs(task, ports, indices, pool);
    for (std::size_t i = 0; i < ports.size(); ++i)
      for (const InputRange& range : ranges)
        if (range.name == ports[i].name) outside[i] += rows_outside(tensors[i], range.least(), range.most());
  }
  const auto most = std::ranges::max_element(outside);
  return {*most, ports[static_cast<std::size_t>(most - outside.begin())].name};
}

}  // namespace superstep::run
