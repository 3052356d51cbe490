#include "superstep/edge/learn/scan.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/file/hdf5/hdf5.h"

namespace superstep::edge {
namespace {

Tensor tensor_of(std::span<const float> values, Shape shape) {
  Tensor tensor(ElementType::f32, std::move(shape));
  std::ranges::copy(values, tensor.as<float>().begin());
  return tensor;
}

Tensor positions_of(const std::vector<std::pair<double, double>>& positions) {
  Tensor tensor(ElementType::f64, Shape{static_cast<std::int64_t>(positions.size()), 2});
  std::int64_t at = 0;
  for (const auto& [y, x] : positions) {
    tensor.set(at++, y);
    tensor.set(at++, x);
  }
  return tensor;
}

void write_planes(data::Hdf5Writer& file, const char* name, std::span<const float> values,
                  const LearnScan& scan) {
  file.write(name, tensor_of(values, {static_cast<std::int64_t>(scan.size()), scan.window, scan.window}));
}

}  // namespace

bool LearnScan::is_held_out(std::size_t i) const {
  double y = 0, x = 0;
  for (const auto& position : positions) y += position.first, x += position.second;
  const double count = static_cast<double>(positions.size());
  const double angle = std::atan2(positions[i].first - y / count, positions[i].second - x / count);
  constexpr double sector = 2 * std::numbers::pi / 10;
  return angle >= 0 && angle < sector;
}

void write_measurement(const std::filesystem::path& path, const LearnScan& scan,
                       const std::optional<Tensor>& probe) {
  data::Hdf5Writer file(path);
  write_planes(file, "diff", scan.patterns, scan);
  file.write("position", positions_of(scan.positions));
  if (probe) file.write("probe", *probe);
  file.close();
}

Reconstruction read_reconstruction(const std::filesystem::path& path, const LearnScan& scan, double pixel) {
  const data::Hdf5File file(path);
  const std::int64_t any[] = {1, -1, -1}, probes[] = {1, scan.window, scan.window, 2};
  const Tensor phase = file.read("object_phase", ElementType::f32, any);
  const std::int64_t height = phase.shape()[1], width = phase.shape()[2];
  std::int64_t top = INT64_MAX, left = INT64_MAX;
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (const auto& [y, x] : scan.positions) {
    places.emplace_back(std::llround(y / pixel), std::llround(x / pixel));
    top = std::min(top, places.back().first), left = std::min(left, places.back().second);
  }
  Reconstruction result{.labels = {}, .probe = file.read("probe", ElementType::f32, probes)};
  const std::span<const float> values = phase.as<float>();
  for (const auto& [y, x] : places) {
    if (y - top + scan.window > height || x - left + scan.window > width)
      throw Error(ErrorCode::bad_file, "the object is smaller than the scan", path.string());
    for (std::int64_t row = 0; row < scan.window; ++row)
      for (std::int64_t column = 0; column < scan.window; ++column)
        result.labels.push_back(
            values[static_cast<std::size_t>((y - top + row) * width + x - left + column)]);
  }
  const Tensor errors = file.read("fourier_error", ElementType::f64);
  result.error = errors.element_count() > 0 ? errors.at(errors.element_count() - 1) : 0;
  return result;
}

void write_training(const std::filesystem::path& path, std::span<const LearnSample> samples) {
  const std::int64_t count = static_cast<std::int64_t>(samples.size()), window = samples[0].scan->window;
  Tensor patterns(ElementType::f32, {count, window, window}),
      labels(ElementType::f32, {count, window, window}), groups(ElementType::u32, {count});
  float *to = patterns.as<float>().data(), *to_label = labels.as<float>().data();
  for (std::int64_t i = 0; i < count; ++i) {
    const LearnSample& sample = samples[static_cast<std::size_t>(i)];
    to = std::ranges::copy(sample.scan->pattern(sample.index), to).out;
    to_label = std::ranges::copy(sample.scan->label(sample.index), to_label).out;
    groups.set(i, static_cast<double>(i));
  }
  data::Hdf5Writer file(path);
  file.write("diff", patterns);
  file.write("phase", labels);
  file.write("scan", groups);
  file.close();
}

LearnScan read_labelled(const std::filesystem::path& path, std::int64_t most) {
  const data::Hdf5File file(path);
  const std::int64_t any[] = {-1, -1, -1};
  const Shape shape = file.require_shape("diff", any).shape;
  const std::int64_t count = std::min(most, shape[0]), same[] = {shape[0], shape[1], shape[1]},
                     pairs[] = {shape[0], 2};
  file.require_shape("diff", same);
  file.require_shape("phase", same);
  file.require_shape("position", pairs);
  LearnScan scan{.name = path.stem().string(), .window = shape[1], .method = "the file's own"};
  const Tensor patterns = file.read_rows("diff", ElementType::f32, 0, count),
               labels = file.read_rows("phase", ElementType::f32, 0, count),
               positions = file.read_rows("position", ElementType::f64, 0, count);
  scan.patterns.assign(patterns.as<float>().begin(), patterns.as<float>().end());
  scan.labels.assign(labels.as<float>().begin(), labels.as<float>().end());
  for (std::int64_t i = 0; i < count; ++i) {
    scan.numbers.push_back(static_cast<std::uint64_t>(i));
    scan.positions.emplace_back(positions.at(2 * i), positions.at(2 * i + 1));
  }
  return scan;
}

void write_labelled(const std::filesystem::path& path, const LearnScan& scan) {
  data::Hdf5Writer file(path);
  write_planes(file, "diff", scan.patterns, scan);
  write_planes(file, "phase", scan.labels, scan);
  file.write("position", positions_of(scan.positions));
  Tensor frames(ElementType::u64, Shape{static_cast<std::int64_t>(scan.size())});
  std::ranges::copy(scan.numbers, frames.as<std::uint64_t>().begin());
  file.write("frame", frames);
  file.set_attribute("", "labels", scan.method);
  file.close();
}

}  // namespace superstep::edge
