#include "superstep/edge/stream/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "superstep/run/user/arrays.h"

namespace superstep::edge {

SeriesResults::SeriesResults(Settings settings)
    : settings_(std::move(settings)), files_(settings_.files), number_(settings_.first_number - 1) {}

void SeriesResults::add(std::uint64_t frame, std::uint64_t version, const std::vector<ServedPort>& ports,
                        const std::vector<Tensor>& outputs, std::int64_t rows) {
  ports_ = ports;
  values_.resize(ports.size());
  for (std::int64_t row = 0; row < rows; ++row) rows_.push_back({frame, version, rows_.size()});
  bytes_ += static_cast<std::size_t>(rows) * (sizeof frame + sizeof version);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    values_[i].append(reinterpret_cast<const char*>(outputs[i].bytes()), outputs[i].byte_count());
    bytes_ += outputs[i].byte_count();
  }
}

std::filesystem::path SeriesResults::next_file() {
  std::filesystem::path file;
  do file = settings_.folder / fmt::format("{}-{:04}.h5", settings_.series, ++number_);
  while (std::filesystem::exists(file));
  return file;
}

data::NamedTensors SeriesResults::sorted(std::vector<std::uint64_t>& numbers) const {
  std::vector<Row> order = rows_;
  std::ranges::stable_sort(order, {}, &Row::frame);
  const auto count = static_cast<std::int64_t>(order.size());
  data::NamedTensors arrays;
  Tensor frames(ElementType::u64, Shape{count}), versions(ElementType::u64, Shape{count});
  for (std::size_t i = 0; i < order.size(); ++i) {
    frames.as<std::uint64_t>()[i] = order[i].frame;
    versions.as<std::uint64_t>()[i] = order[i].version;
    if (numbers.empty() || numbers.back() != order[i].frame) numbers.push_back(order[i].frame);
  }
  arrays["frame"] = frames;
  arrays["version"] = versions;
  for (std::size_t port = 0; port < ports_.size(); ++port) {
    std::vector<std::int64_t> extents = ports_[port].shape.extents();
    extents.insert(extents.begin(), count);
    Tensor values(ports_[port].element, Shape(std::move(extents)));
    const std::size_t row = ports_[port].row_bytes();
    for (std::size_t i = 0; i < order.size(); ++i)
      std::memcpy(values.bytes() + i * row, values_[port].data() + order[i].at * row, row);
    const bool taken = arrays.contains(ports_[port].name);
    arrays[taken ? "output_" + ports_[port].name : ports_[port].name] = values;
  }
  return arrays;
}

void SeriesResults::flush() {
  if (rows_.empty()) return;
  std::vector<std::uint64_t> frames;
  const data::NamedTensors arrays = sorted(frames);
  const int before = number_;
  const std::filesystem::path file = next_file();
  const std::string name = file.filename().string();
  if (settings_.before) settings_.before(name, number_, frames);
  try {
    run::write_arrays(file, arrays);
  } catch (...) {
    if (!settings_.before) number_ = before;  // else nobody but this file may have what was announced
    throw;
  }
  files_.push_back(file.string());
  rows_.clear();
  values_.assign(ports_.size(), {});
  bytes_ = 0;
  if (settings_.after) settings_.after(name, number_, frames);
}

}  // namespace superstep::edge
