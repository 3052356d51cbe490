#include "superstep/edge/learn/peaks.h"

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/edge/learn/child.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/xray/bragg_patches.h"

namespace superstep::edge {
namespace {

constexpr double patience_for_labels = 600;  // s
constexpr std::int64_t values_of_label = 2;  // column and row, in patch sizes

void write_patches(const std::filesystem::path& path, std::span<const LearnSample> samples,
                   bool with_frames = false) {
  const std::int64_t count = static_cast<std::int64_t>(samples.size()), window = samples[0].scan->window;
  Tensor patches(ElementType::f32, {count, window, window});
  float* to = patches.as<float>().data();
  for (const LearnSample& sample : samples)
    to = std::ranges::copy(sample.scan->pattern(sample.index), to).out;
  data::Hdf5Writer file(path);
  file.write("patch", patches);
  if (!samples[0].scan->labels.empty()) {
    Tensor labels(ElementType::f32, {count, values_of_label});
    to = labels.as<float>().data();
    for (const LearnSample& sample : samples)
      to = std::ranges::copy(sample.scan->label(sample.index), to).out;
    file.write("ploc", labels);
  }
  if (with_frames) {
    Tensor frames(ElementType::u64, Shape{count});
    std::ranges::copy(samples[0].scan->numbers, frames.as<std::uint64_t>().begin());
    file.write("frame", frames);
    file.set_attribute("", "labels", samples[0].scan->method);
  }
  file.close();
}

bool is_inside(float value) { return value >= 0 && value <= 1; }

}  // namespace

void PeakLesson::prepare(std::span<float> pattern) const { data::scale_to_unit(pattern); }

std::vector<double> PeakLesson::errors(std::span<const float> answers,
                                       std::span<const LearnSample> samples) const {
  std::vector<double> errors;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto label = samples[i].scan->label(samples[i].index);
    const auto apart = [&](std::size_t axis) {
      return static_cast<double>(answers[2 * i + axis]) - static_cast<double>(label[axis]);
    };
    errors.push_back(std::hypot(apart(0), apart(1)) * static_cast<double>(samples[i].scan->window));
  }
  return errors;
}

nlohmann::json PeakLesson::label(LearnScan& scan, Version&, const Place& place) {
  write_patches(place.work / "peaks.h5", samples_of(scan));
  const ChildOutcome outcome =
      run_child({settings_.program.string(), "baseline", "braggnn", "--input",
                 (place.work / "peaks.h5").string(), "--output", (place.work / "fits.h5").string(), "--set",
                 "method=rotated", "--threads", std::to_string(settings_.threads), "--quiet"},
                place.work / "label.log", {patience_for_labels, settings_.niceness}, place.should_pause,
                place.should_end);
  if (!outcome.done) throw Error(ErrorCode::io, "labels: " + outcome.why);
  const data::Hdf5File file(place.work / "fits.h5");
  const std::int64_t count = static_cast<std::int64_t>(scan.size()), pairs[] = {count, values_of_label},
                     each[] = {count};
  const Tensor found = file.read("ploc", ElementType::f32, pairs),
               converged = file.read("converged", ElementType::boolean, each);
  scan.labels.assign(found.as<float>().begin(), found.as<float>().end());
  scan.method = "fits of rotated pseudo-Voigt peaks";
  std::vector<bool> kept;
  for (std::size_t i = 0; i < scan.size(); ++i)
    kept.push_back(converged.as<bool>()[i] && std::ranges::all_of(scan.label(i), is_inside));
  const auto left_out = std::ranges::count(kept, false);
  scan.keep(kept);
  return {{"left_out", left_out}, {"took", outcome.seconds}};
}

void PeakLesson::write_training(const std::filesystem::path& path,
                                std::span<const LearnSample> samples) const {
  write_patches(path, samples);
}

LearnScan PeakLesson::read_labelled(const std::filesystem::path& path, std::int64_t most) const {
  const data::Hdf5File file(path);
  const std::int64_t any[] = {-1, -1, -1};
  const Shape shape = file.require_shape("patch", any).shape;
  const std::int64_t count = std::min(most, shape[0]), same[] = {shape[0], shape[1], shape[1]},
                     pairs[] = {shape[0], values_of_label};
  file.require_shape("patch", same);
  file.require_shape("ploc", pairs);
  LearnScan scan{.name = path.stem().string(), .window = shape[1], .method = "the file's own"};
  const Tensor patches = file.read_rows("patch", ElementType::f32, 0, count),
               labels = file.read_rows("ploc", ElementType::f32, 0, count);
  scan.patterns.assign(patches.as<float>().begin(), patches.as<float>().end());
  scan.labels.assign(labels.as<float>().begin(), labels.as<float>().end());
  for (std::int64_t i = 0; i < count; ++i) scan.numbers.push_back(static_cast<std::uint64_t>(i));
  if (!file.contains("frame")) return scan;
  const std::int64_t each[] = {shape[0]};  // what was kept aside stays aside
  const Tensor frames = file.read("frame", ElementType::u64, each);
  std::ranges::copy_n(frames.as<std::uint64_t>().begin(), count, scan.numbers.begin());
  return scan;
}

void PeakLesson::write_labelled(const std::filesystem::path& path, const LearnScan& scan) const {
  write_patches(path, samples_of(scan), true);
}

}  // namespace superstep::edge
