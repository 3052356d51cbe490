#include "superstep/physics/xray/ptycho.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "superstep/base/system/interrupt.h"

namespace superstep::data {
namespace {

enum Purpose : std::uint32_t { noise = 1, object, probe, path, detector };

// A drifting sample is a strip that this many scans look at, one after another.
constexpr std::uint64_t scans_a_strip = 32;

ScanPath make_path(const PtychoSettings& settings, RandomStream random) {
  return settings.path == PtychoSettings::Path::raster
             ? raster_scan(random, settings.grid, settings.rows, settings.columns)
             : spiral_scan(random, settings.grid, settings.spiral_points);
}

Map columns_of(const Map& strip, int first, int width) {
  Map part(strip.height, width);
  for (int y = 0; y < strip.height; ++y)
    std::copy_n(&strip.values[static_cast<std::size_t>(y) * strip.width + first], width,
                &part.values[static_cast<std::size_t>(y) * width]);
  return part;
}

Map make_thickness(const PtychoSettings& settings, std::uint64_t seed, std::uint64_t scan,
                   const ScanPath& path) {
  if (settings.drift == 0) {
    RandomStream random(seed, scan, Purpose::object);
    return thickness_map(random, path.height, path.width);
  }
  RandomStream random(seed, scan / scans_a_strip, Purpose::object);
  const int length = path.width + settings.drift * static_cast<int>(scans_a_strip - 1);
  return columns_of(thickness_map(random, path.height, length),
                    settings.drift * static_cast<int>(scan % scans_a_strip), path.width);
}

void draw_probe(PtychoScan& scan, const PtychoSettings& settings, RandomStream random) {
  scan.photons = draw_log_uniform(random, settings.photons);
  scan.width = draw_uniform(random, settings.width);
  const bool zone_plate = settings.probe == PtychoSettings::ProbeModel::zone_plate;
  if (zone_plate) {
    scan.defocus = draw_uniform(random, settings.defocus);
    scan.central_stop = draw_uniform(random, settings.central_stop);
  }
  const int n = settings.grid.window;
  scan.probe = zone_plate ? zone_plate_probe(n, {scan.width, scan.central_stop, scan.defocus})
                          : gaussian_probe(n, scan.width);
  scale(scan.probe, std::sqrt(scan.photons));
}

// Copies the n x n window at `at` of a picture with rows of `width` values.
void copy_window(const std::vector<float>& picture, int width, Position at, int n, std::byte* out) {
  const std::size_t row = static_cast<std::size_t>(n) * sizeof(float);
  for (int y = 0; y < n; ++y)
    std::memcpy(out + static_cast<std::size_t>(y) * row,
                &picture[static_cast<std::size_t>(at.y + y) * width + static_cast<std::size_t>(at.x)], row);
}

template <class T>
void put(std::byte* out, std::initializer_list<T> values) {
  std::memcpy(out, values.begin(), values.size() * sizeof(T));
}

std::vector<Field> make_fields(std::int64_t n) {
  return {{"diff", ElementType::f32, {n, n}, "counts", "diffraction pattern, frequency zero at (n/2, n/2)"},
          {"amp", ElementType::f32, {n, n}, "", "amplitude of the object in the window"},
          {"phase", ElementType::f32, {n, n}, "rad", "phase of the object in the window"},
          {"position", ElementType::f64, {2}, "m", "(y, x) of window pixel (n/2, n/2) in the object"},
          {"scan", ElementType::u32, {}, "", "which scan: the group to split by"},
          {"point", ElementType::u32, {}, "", "which point of the scan"},
          {"photons", ElementType::f32, {}, "", "sum of |probe|^2"},
          {"probe_width", ElementType::f32, {}, "px", "full width at half maximum of the probe"},
          {"probe_defocus", ElementType::f32, {}, "waves", "path difference of pupil edge and center"},
          {"probe_stop", ElementType::f32, {}, "", "radius of the central stop / of the pupil"}};
}

void put_row(Tensor& rows, std::uint64_t row, const void* values) {
  const std::size_t bytes = rows.byte_count() / static_cast<std::size_t>(rows.shape()[0]);
  std::memcpy(rows.bytes() + row * bytes, values, bytes);
}

nlohmann::json to_json(const Range& range) { return {range.low, range.high}; }

}  // namespace

PtychoScan make_ptycho_scan(const PtychoSettings& settings, std::uint64_t seed, std::uint64_t scan) {
  scan += static_cast<std::uint64_t>(settings.first);
  PtychoScan made;
  made.path = make_path(settings, RandomStream(seed, scan, Purpose::path));
  made.object = transmission(make_thickness(settings, seed, scan, made.path), settings.material);
  for (const auto& value : made.object) {
    made.amplitude.push_back(std::abs(value));
    made.phase.push_back(std::arg(value));
  }
  draw_probe(made, settings, RandomStream(seed, scan, Purpose::probe));
  RandomStream random(seed, 0, Purpose::detector);
  made.detector = make_detector(random, settings.grid.window, settings.dead_fraction, settings.threshold);
  return made;
}

PtychoGenerator::PtychoGenerator(std::string name, const PtychoSettings& settings)
    : name_(std::move(name)), settings_(settings), fields_(make_fields(settings.grid.window)) {
  if (settings.grid.window % 2 != 0)
    throw Error(ErrorCode::invalid_argument, "the window needs an even number of pixels", name_);
}

std::shared_ptr<const PtychoScan> PtychoGenerator::scan(std::uint64_t seed, std::uint64_t scan) const {
  constexpr std::size_t kept = 3;  // threads that work in order stand at most at the border of two scans
  std::lock_guard lock(mutex_);    // held while a scan is made: the others would only make it again
  const Key key{seed, scan};
  const auto found =
      std::find_if(recent_.begin(), recent_.end(), [&](auto& entry) { return entry.first == key; });
  if (found != recent_.end()) {
    recent_.splice(recent_.begin(), recent_, found);
  } else {
    recent_.emplace_front(key, std::make_shared<const PtychoScan>(make_ptycho_scan(settings_, seed, scan)));
    if (recent_.size() > kept) recent_.pop_back();
  }
  return recent_.front().second;
}

void PtychoGenerator::pattern(std::uint64_t seed, std::uint64_t index, std::span<float> counts) const {
  const auto points = static_cast<std::uint64_t>(settings_.points());
  const std::shared_ptr<const PtychoScan> made = scan(seed, index / points);
  const int n = settings_.grid.window;
  thread_local std::vector<std::complex<float>> wave;
  thread_local std::vector<float> intensity;
  wave.resize(made->probe.size());
  intensity.resize(made->probe.size());
  exit_wave<float>(made->probe, n, made->object, made->path.width, made->path.positions[index % points],
                   wave);
  far_field_intensity<float>(wave, n, intensity);
  RandomStream random(seed, index + static_cast<std::uint64_t>(settings_.first) * points, Purpose::noise);
  count_photons(random, intensity, made->detector, counts);
}

void PtychoGenerator::sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const {
  const auto points = static_cast<std::uint64_t>(settings_.points());
  const auto scan_index = index / points, point = index % points;
  const std::shared_ptr<const PtychoScan> scan = this->scan(seed, scan_index);
  const Position at = scan->path.positions[point];
  const int n = settings_.grid.window, width = scan->path.width;
  pattern(seed, index, {reinterpret_cast<float*>(out[0]), scan->probe.size()});
  copy_window(scan->amplitude, width, at, n, out[1]);
  copy_window(scan->phase, width, at, n, out[2]);
  put<double>(out[3], {(at.y + n / 2) * settings_.pixel, (at.x + n / 2) * settings_.pixel});
  put<std::uint32_t>(out[4], {static_cast<std::uint32_t>(scan_index)});
  put<std::uint32_t>(out[5], {static_cast<std::uint32_t>(point)});
  const double drawn[] = {scan->photons, scan->width, scan->defocus, scan->central_stop};
  for (std::size_t i = 0; i < std::size(drawn); ++i) put<float>(out[6 + i], {static_cast<float>(drawn[i])});
}

std::map<std::string, Tensor> PtychoGenerator::shared_arrays(std::uint64_t seed) const {
  std::map<std::string, Tensor> arrays = scan_arrays_;
  const std::int64_t n = settings_.grid.window;
  arrays["dead"] = Tensor::from<std::uint8_t>({n, n}, scan(seed, 0)->detector.dead);
  arrays["pixel_size"] = Tensor::scalar(settings_.pixel);
  arrays["wavelength"] = Tensor::scalar(settings_.material.wavelength());
  return arrays;
}

nlohmann::json PtychoGenerator::parameters() const {
  const bool raster = settings_.path == PtychoSettings::Path::raster;
  const bool zone_plate = settings_.probe == PtychoSettings::ProbeModel::zone_plate;
  nlohmann::json json{{"window", settings_.grid.window},
                      {"scan", raster ? "raster" : "spiral"},
                      {"points", settings_.points()},
                      {"step", settings_.grid.step},
                      {"jitter", settings_.grid.jitter},
                      {"pixel", settings_.pixel},
                      {"photons", to_json(settings_.photons)},
                      {"probe", zone_plate ? "zone-plate" : "gaussian"},
                      {"width", to_json(settings_.width)},
                      {"defocus", to_json(settings_.defocus)},
                      {"central_stop", to_json(settings_.central_stop)},
                      {"dead_fraction", settings_.dead_fraction},
                      {"threshold", settings_.threshold},
                      {"energy_kev", settings_.material.energy_kev},
                      {"delta", settings_.material.delta},
                      {"beta_over_delta", settings_.material.beta_over_delta},
                      {"max_phase", settings_.material.max_phase},
                      {"drift", settings_.drift},
                      {"first", settings_.first}};
  if (raster) json.update({{"rows", settings_.rows}, {"columns", settings_.columns}});
  return json;
}

void PtychoGenerator::write(const WriteRequest& request) const {
  const auto points = static_cast<std::uint64_t>(settings_.points());
  const auto scans = std::max<std::uint64_t>(1, (request.samples + points - 1) / points);
  const auto first = scan(request.seed, 0);
  const std::int64_t n = settings_.grid.window, count = static_cast<std::int64_t>(scans);
  Tensor amplitude(ElementType::f32, {count, first->path.height, first->path.width});
  Tensor phase(ElementType::f32, amplitude.shape()), probes(ElementType::f32, {count, n, n, 2});
  request.pool->parallel_for(count, [&](std::int64_t item, int) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "no file was written");
    const auto index = static_cast<std::uint64_t>(item);
    const PtychoScan made = make_ptycho_scan(settings_, request.seed, index);
    put_row(amplitude, index, made.amplitude.data());
    put_row(phase, index, made.phase.data());
    put_row(probes, index, made.probe.data());
  });
  PtychoGenerator with_scans(name_, settings_);
  with_scans.scan_arrays_ = {{"object_amp", amplitude}, {"object_phase", phase}, {"probe", probes}};
  with_scans.Generator::write(request);
}

}  // namespace superstep::data
