#include "superstep/baseline/ptychography/epie_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/baseline/ptychography/fourier_ring.h"
#include "superstep/physics/xray/ptycho_stitch.h"

namespace superstep::baseline {
namespace {

// Its rows are windows: [points, n, n], or with one channel between.
void require_windows(const data::ArrayFile& file, const char* name, std::int64_t points, int n) {
  const Shape shape = file.info(name).shape;
  const Shape plain{points, n, n}, with_channel{points, 1, n, n};
  if (shape != plain && shape != with_channel)
    throw Error(ErrorCode::bad_file,
                fmt::format("answers of shape {}, where the scans have {} patterns of {} x {}: {} is needed",
                            to_string(shape), points, n, n, to_string(with_channel)),
                data::place(file.path(), name));
}

double attribute_or(const data::ArrayFile& file, const char* name, double otherwise) {
  const auto attributes = file.attributes();
  const auto found = attributes.find(name);
  if (found == attributes.end() || !std::holds_alternative<double>(found->second)) return otherwise;
  const double value = std::get<double>(found->second);
  return std::isfinite(value) && value > 0 ? value : otherwise;
}

}  // namespace

PointAnswers::PointAnswers(const std::filesystem::path& path, std::int64_t points, int n)
    : file_(path), n_(n) {
  require_windows(file_, "phase", points, n);
  has_amplitude_ = file_.contains("amp");
  if (has_amplitude_) require_windows(file_, "amp", points, n);
  seconds_ = attribute_or(file_, "seconds_per_sample", 0);
}

std::vector<float> PointAnswers::rows(const char* name, std::int64_t first, std::int64_t count) const {
  const Tensor block = file_.read_rows(name, ElementType::f32, first, count);
  const auto values = block.as<float>();
  const auto window = values.size() / static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      throw Error(
          ErrorCode::bad_file,
          fmt::format("the answer to point {} holds {} at pixel ({}, {})",
                      first + static_cast<std::int64_t>(i / window), values[i],
                      i % window / static_cast<std::size_t>(n_), i % window % static_cast<std::size_t>(n_)),
          data::place(file_.path(), name));
  return {values.begin(), values.end()};
}

PointAnswers::Stitched PointAnswers::stitched(std::span<const data::Position> positions, std::int64_t first,
                                              int height, int width, int central, std::size_t from,
                                              std::size_t step) const {
  const auto count = static_cast<std::int64_t>(positions.size());
  const std::vector<float> phase = rows("phase", first, count);
  const std::vector<float> amplitude =
      has_amplitude_ ? rows("amp", first, count) : std::vector<float>(phase.size(), 1.0f);
  std::vector<float> cosine, sine;
  for (const float angle : phase) cosine.push_back(std::cos(angle)), sine.push_back(std::sin(angle));
  data::Stitcher modulus(height, width), real(height, width), imaginary(height, width);
  const auto window = static_cast<std::size_t>(n_) * static_cast<std::size_t>(n_);
  for (std::size_t point = from; point < positions.size(); point += step) {
    const auto add = [&](data::Stitcher& canvas, const std::vector<float>& values) {
      canvas.add(std::span(values).subspan(point * window, window), n_, positions[point].y,
                 positions[point].x, std::min(central, n_));
    };
    add(modulus, amplitude), add(real, cosine), add(imaginary, sine);
  }
  const data::Map moduli = modulus.mean(), re = real.mean(), im = imaginary.mean();
  Stitched result;
  std::complex<double> sum = 0;
  double hits = 0;
  for (std::size_t i = 0; i < moduli.values.size(); ++i) {
    const bool hit = modulus.hits()[i] > 0;
    result.hit.push_back(hit ? 1.0f : 0.0f);
    result.object.push_back(std::polar(std::abs(moduli.values[i]), std::atan2(im.values[i], re.values[i])));
    if (hit) sum += std::complex<double>(result.object.back()), ++hits;
  }
  const auto mean = static_cast<std::complex<float>>(hits > 0 ? sum / hits : 1.0);
  for (std::size_t i = 0; i < result.object.size(); ++i)
    if (result.hit[i] == 0) result.object[i] = mean;
  return result;
}

ObjectQuality quality_of(const ObjectComparison& comparison, std::span<const std::complex<float>> truth,
                         std::span<const float> area, int height, int width) {
  ObjectQuality quality{.phase_rms = comparison.phase_rms, .amplitude_rms = comparison.amplitude_rms};
  const Square square = largest_square(area, height, width);
  if (square.side < 8) return quality;
  const RingCorrelation rings = fourier_ring_correlation(tapered_phase(comparison.aligned, width, square),
                                                         tapered_phase(truth, width, square), square.side);
  quality.resolution = 1 / cut_off(rings, [](double) { return 0.5; }).value_or(0.5);
  return quality;
}

std::optional<std::size_t> EpieCourse::passes_to(double error) const {
  const auto found = std::ranges::find_if(errors, [&](double value) { return value <= error; });
  if (found == errors.end()) return std::nullopt;
  return static_cast<std::size_t>(found - errors.begin()) + 1;
}

std::string table_of(const EpieStart& start, const std::optional<ObjectQuality>& warm, double pixel) {
  TextTable table({"object", "passes", "time", "error", "passes to a common error", "time to it",
                   "phase rms (rad)", "resolution (nm)"});
  const auto quality = [&](std::vector<std::string> row, const std::optional<ObjectQuality>& of) {
    row.push_back(of ? fmt::format("{:.4f}", of->phase_rms) : "-");
    row.push_back(of && of->resolution > 0 ? fmt::format("{:.1f}", of->resolution * pixel * 1e9) : "-");
    table.add_row(row);
  };
  // What both reach, a tenth more.
  const double common = 1.1 * std::max(start.cold.errors.back(), start.warm.errors.back());
  const auto course = [&](const char* name, const EpieCourse& of, const std::optional<ObjectQuality>& found) {
    const std::size_t passes = of.passes_to(common).value_or(of.errors.size());
    quality({name, std::to_string(of.errors.size()), format_seconds(of.seconds.back()),
             fmt::format("{:.5f}", of.errors.back()), std::to_string(passes),
             format_seconds(of.seconds[passes - 1])},
            found);
  };
  quality({"the network's, stitched", "0",
           start.network_seconds > 0 ? format_seconds(start.network_seconds) : "-", "-", "-", "-"},
          start.network);
  course("from nothing", start.cold, start.from_nothing);
  course("from the network's", start.warm, warm);
  return table.to_string();
}

}  // namespace superstep::baseline
