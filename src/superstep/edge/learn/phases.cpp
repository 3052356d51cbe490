#include "superstep/edge/learn/phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/edge/learn/child.h"
#include "superstep/file/hdf5/hdf5.h"

namespace superstep::edge {
namespace {

constexpr double patience_for_labels = 600;  // s

template <class Use>
void for_middle(std::int64_t window, std::int64_t crop, const Use& use) {
  const std::int64_t size = std::min(window, crop), first = (window - size) / 2;
  for (std::int64_t y = first; y < first + size; ++y)
    for (std::int64_t x = first; x < first + size; ++x) use(static_cast<std::size_t>(y * window + x));
}

double wrapped(double angle) { return std::remainder(angle, 2 * std::numbers::pi); }

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

// Patterns and positions, as the reconstruction reads them; `probe` [1, n, n, 2] where one is known.
void write_measurement(const std::filesystem::path& path, const LearnScan& scan,
                       const std::optional<Tensor>& probe) {
  data::Hdf5Writer file(path);
  write_planes(file, "diff", scan.patterns, scan);
  file.write("position", positions_of(scan.positions));
  if (probe) file.write("probe", *probe);
  file.close();
}

// What a reconstruction says under the probe at each point, and its probe.
struct Reconstruction {
  std::vector<float> labels;
  Tensor probe;
  double error = 0;  // of the patterns, after the last pass
};

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

}  // namespace

std::vector<double> phase_errors(std::span<const float> answers, std::span<const LearnSample> samples,
                                 std::int64_t crop) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto label = samples[i].scan->label(samples[i].index);
    const auto answer = answers.subspan(i * label.size(), label.size());
    double sum = 0, count = 0;
    for_middle(samples[i].scan->window, crop, [&](std::size_t at) {
      sum += std::abs(wrapped(static_cast<double>(answer[at]) - static_cast<double>(label[at])));
      ++count;
    });
    errors.push_back(sum / count);
  }
  return errors;
}

double turn_between(std::span<const float> answers, const LearnScan& scan, std::int64_t crop) {
  std::complex<double> sum = 0;
  for (std::size_t i = 0; i < scan.size(); ++i) {
    const auto label = scan.label(i);
    for_middle(scan.window, crop, [&](std::size_t at) {
      sum += std::polar(1.0,
                        static_cast<double>(answers[i * label.size() + at]) - static_cast<double>(label[at]));
    });
  }
  return std::arg(sum);
}

void turn(LearnScan& scan, double angle) {
  for (float& value : scan.labels) value = static_cast<float>(wrapped(static_cast<double>(value) + angle));
}

void PhaseLesson::prepare(std::span<float> pattern) const {
  for (float& count : pattern) count = std::log1p(std::max(0.0f, count));
}

std::vector<double> PhaseLesson::errors(std::span<const float> answers,
                                        std::span<const LearnSample> samples) const {
  return phase_errors(answers, samples, settings_.crop);
}

nlohmann::json PhaseLesson::label(LearnScan& scan, Version& present, const Place& place) {
  write_measurement(place.work / "scan.h5", scan, probe_);
  const ChildOutcome outcome = run_child(
      {settings_.program.string(), "baseline", "ptychonn-128", "--input", (place.work / "scan.h5").string(),
       "--output", (place.work / "object.h5").string(), "--set",
       fmt::format("pixel={}", settings_.pixel * 1e9), "--set", fmt::format("passes={}", settings_.passes),
       "--threads", std::to_string(settings_.threads), "--quiet"},
      place.work / "label.log", {patience_for_labels, settings_.niceness}, place.should_pause,
      place.should_end);
  if (!outcome.done) throw Error(ErrorCode::io, "labels: " + outcome.why);
  Reconstruction found = read_reconstruction(place.work / "object.h5", scan, settings_.pixel);
  scan.labels = std::move(found.labels);
  scan.method = fmt::format("rPIE, {} passes", settings_.passes);
  if (!is_finite(scan.labels)) throw Error(ErrorCode::bad_file, "labels: the reconstruction is not finite");
  probe_ = found.probe;
  turn(scan, turn_between(answers_to(present, samples_of(scan), *this), scan, settings_.crop));
  return {{"fourier_error", found.error}, {"took", outcome.seconds}};
}

void PhaseLesson::write_training(const std::filesystem::path& path,
                                 std::span<const LearnSample> samples) const {
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

LearnScan PhaseLesson::read_labelled(const std::filesystem::path& path, std::int64_t most) const {
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

void PhaseLesson::write_labelled(const std::filesystem::path& path, const LearnScan& scan) const {
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
