#include "superstep/baseline/ptychography/ptycho_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "superstep/base/json.h"
#include "superstep/physics/fft.h"

namespace superstep::baseline {
namespace {

constexpr std::int64_t rows_at_once = 256;  // patterns read before they are turned into moduli

std::string first_of(const data::ArrayFile& file, std::initializer_list<const char*> names,
                     const char* what) {
  for (const char* name : names)
    if (file.contains(name)) return name;
  std::vector<std::string> wanted(names.begin(), names.end());
  throw Error(ErrorCode::bad_file, fmt::format("no {}: no data set {}", what, fmt::join(wanted, " or ")),
              file.path().string());
}

Error bad_data(const data::ArrayFile& file, std::string_view name, std::string message) {
  return Error(ErrorCode::bad_file, std::move(message),
               fmt::format("{}: data set '{}'", file.path().string(), name));
}

double read_pixel(const data::ArrayFile& file, double given) {
  if (given > 0) return given;
  if (!file.contains("pixel_size"))
    throw Error(ErrorCode::bad_file, "the file does not say how large a pixel of the object is",
                file.path().string(), "give it with --set pixel=NANOMETRES");
  const double pixel = file.read("pixel_size", ElementType::f64).at(0);
  if (!(pixel > 0) || !std::isfinite(pixel)) throw bad_data(file, "pixel_size", fmt::format("{} m", pixel));
  return pixel;
}

double read_threshold(const data::ArrayFile& file, double given) {
  if (given >= 0) return given;
  const auto attributes = file.attributes();
  const auto found = attributes.find("parameters");
  if (found == attributes.end() || !std::holds_alternative<std::string>(found->second)) return 0;
  const auto json = parse_json(std::get<std::string>(found->second));
  if (!json.is_object() || !json.contains("threshold") || !json["threshold"].is_number()) return 0;
  return std::max(0.0, json["threshold"].get<double>());
}

std::vector<std::complex<float>> polar_array(const Tensor& modulus, const Tensor& angle) {
  std::vector<std::complex<float>> values;
  const auto m = modulus.as<float>(), a = angle.as<float>();
  for (std::size_t i = 0; i < m.size(); ++i) values.push_back(std::polar(std::abs(m[i]), a[i]));
  return values;
}

}  // namespace

PtychoFile::PtychoFile(const std::filesystem::path& path, const Settings& settings)
    : file_(path),
      patterns_(first_of(file_, {"diff", "entry_1/data_1/data", "entry/data/data"}, "diffraction patterns")) {
  const std::int64_t any[] = {-1, -1, -1};
  const Shape shape = file_.require_shape(patterns_, any).shape;
  if (shape[1] != shape[2] || shape[1] % 2 != 0 || shape[1] < 2 || shape[1] > 4096 || shape[0] < 1)
    throw bad_data(
        file_, patterns_,
        fmt::format("patterns of shape {}: [points, n, n] with even n is needed", to_string(shape)));
  points_ = shape[0];
  n_ = static_cast<int>(shape[1]);
  pixel_ = read_pixel(file_, settings.pixel);
  threshold_ = read_threshold(file_, settings.threshold);
  read_positions();
  find_scans();
  const bool has_truth = file_.contains("object_amp") && file_.contains("object_phase");
  place_windows(!has_truth);
  if (has_truth) {
    const std::int64_t wanted[] = {-1, -1, -1};
    const Shape object = file_.require_shape("object_phase", wanted).shape;
    if (object[1] < height_ || object[2] < width_)
      throw bad_data(file_, "object_phase",
                     fmt::format("the windows need {} x {} px, the object has {} x {}", height_, width_,
                                 object[1], object[2]));
    height_ = static_cast<int>(object[1]);
    width_ = static_cast<int>(object[2]);
  }
}

void PtychoFile::read_positions() {
  const std::string name =
      first_of(file_, {"position", "entry_1/sample_1/geometry_1/translation"}, "scan positions");
  const bool cxi = name != "position";
  const std::int64_t wanted[] = {points_, cxi ? 3 : 2};
  const Tensor metres = file_.read(name, ElementType::f64, wanted);
  const auto values = metres.as<double>();
  for (std::int64_t point = 0; point < points_; ++point) {
    const auto at = static_cast<std::size_t>(point) * (cxi ? 3 : 2);
    const double y = values[at + (cxi ? 1 : 0)] / pixel_ - n_ / 2,
                 x = values[at + (cxi ? 0 : 1)] / pixel_ - n_ / 2;
    if (!(std::abs(y) < 1e6 && std::abs(x) < 1e6))
      throw bad_data(file_, name, fmt::format("point {} lies at ({:.6g}, {:.6g}) px", point, y, x));
    positions_.push_back({static_cast<int>(std::lround(y)), static_cast<int>(std::lround(x))});
  }
}

// Runs of equal `scan` numbers; the whole file where there are none.
void PtychoFile::find_scans() {
  std::vector<std::int64_t> number(static_cast<std::size_t>(points_), 0);
  if (file_.contains("scan")) {
    const std::int64_t wanted[] = {points_};
    const Tensor scan = file_.read("scan", ElementType::i64, wanted);
    number.assign(scan.as<std::int64_t>().begin(), scan.as<std::int64_t>().end());
  }
  for (std::int64_t point = 0; point < points_; ++point) {
    const std::int64_t here = number[static_cast<std::size_t>(point)];
    if (point == 0 || here != number[static_cast<std::size_t>(point - 1)]) scans_.push_back({point, 0, here});
    ++scans_.back().count;
  }
}

// The object's extents; where its origin is free, windows are moved to start at (0, 0).
void PtychoFile::place_windows(bool movable) {
  for (const Run& run : scans_) {
    const auto first = positions_.begin() + run.first, last = first + run.count;
    data::Position low = *first;
    for (auto at = first; at != last; ++at) low = {std::min(low.y, at->y), std::min(low.x, at->x)};
    if (!movable && (low.y < 0 || low.x < 0))
      throw bad_data(file_, "position",
                     fmt::format("a window starts at ({}, {}) px of the object", low.y, low.x));
    for (auto at = first; at != last; ++at) {
      if (movable) *at = {at->y - low.y, at->x - low.x};
      height_ = std::max(height_, at->y + n_);
      width_ = std::max(width_, at->x + n_);
    }
  }
  if (static_cast<double>(height_) * width_ > 1e9)
    throw bad_data(
        file_, "position",
        fmt::format("the scan spans {} x {} px; is the pixel of {} m right?", height_, width_, pixel_));
}

std::size_t PtychoFile::bytes_of_scan(int scan) const {
  return static_cast<std::size_t>(scans_[static_cast<std::size_t>(scan)].count) *
         static_cast<std::size_t>(n_) * static_cast<std::size_t>(n_) * sizeof(float);
}

void PtychoFile::read_modulus(const Run& run, PtychoScanData& scan) const {
  const auto pixels = static_cast<std::size_t>(n_) * static_cast<std::size_t>(n_);
  const auto targets = data::fft_shift_targets({n_, n_});
  scan.data.modulus.resize(static_cast<std::size_t>(run.count) * pixels);
  for (std::int64_t row = 0; row < run.count; row += rows_at_once) {
    const std::int64_t count = std::min(rows_at_once, run.count - row);
    const Tensor block = file_.read_rows(patterns_, ElementType::f32, run.first + row, count);
    const auto counts = block.as<float>();
    float* modulus = &scan.data.modulus[static_cast<std::size_t>(row) * pixels];
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const float value = counts[i / pixels * pixels + targets[i % pixels]];
      if (!std::isfinite(value))
        throw bad_data(file_, patterns_,
                       fmt::format("pattern {} holds a count of {}",
                                   run.first + row + static_cast<std::int64_t>(i / pixels), value));
      modulus[i] = std::sqrt(std::max(0.0f, value));
      scan.mean_counts += modulus[i] * modulus[i];
    }
  }
  scan.mean_counts /= static_cast<double>(run.count);
}

PtychoScanData PtychoFile::read_scan(int scan) const {
  const Run& run = scans_[static_cast<std::size_t>(scan)];
  PtychoScanData read;
  read.data = {
      n_, height_, width_,    {positions_.begin() + run.first, positions_.begin() + run.first + run.count},
      {}, {},      threshold_};
  read_modulus(run, read);
  if (file_.contains("dead")) {
    const std::int64_t wanted[] = {n_, n_};
    const Tensor dead = file_.read("dead", ElementType::u8, wanted);
    for (const std::size_t target : data::fft_shift_targets({n_, n_}))
      read.data.dead.push_back(dead.as<std::uint8_t>()[target]);
  }
  if (file_.contains("probe")) {
    const std::int64_t wanted[] = {-1, n_, n_, 2};
    file_.require_shape("probe", wanted);
    const Tensor probe = file_.read_rows("probe", ElementType::f32, run.index, 1);
    const auto* values = reinterpret_cast<const std::complex<float>*>(probe.bytes());
    read.probe.emplace(values, values + probe.element_count() / 2);
  }
  if (file_.contains("object_amp") && file_.contains("object_phase"))
    read.truth = polar_array(file_.read_rows("object_amp", ElementType::f32, run.index, 1),
                             file_.read_rows("object_phase", ElementType::f32, run.index, 1));
  return read;
}

}  // namespace superstep::baseline
