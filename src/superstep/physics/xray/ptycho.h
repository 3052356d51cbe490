// Ptychography data: a coherent probe is stepped over a sample, and at each point a detector counts the
// photons of the far field. The networks that learn from it map one diffraction pattern to amplitude and
// phase of the sample in the window under the probe (M. Cherukara et al., Appl. Phys. Lett. 117, 044103,
// 2020; A. Babu et al., Nat. Commun. 14, 7059, 2023).
//
// A scan is a group: its object, probe and path are a function of (seed, scan); sample `index` is point
// index % points of scan index / points.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include "superstep/base/option_range.h"
#include "superstep/physics/generator.h"
#include "superstep/physics/xray/ptycho_diffraction.h"
#include "superstep/physics/xray/ptycho_object.h"
#include "superstep/physics/xray/ptycho_probe.h"
#include "superstep/physics/xray/ptycho_scan.h"

namespace superstep::data {

struct PtychoSettings {
  enum class Path { raster, spiral } path = Path::raster;
  enum class ProbeModel { zone_plate, gaussian } probe = ProbeModel::zone_plate;
  ScanGrid grid;
  int rows = 161, columns = 161;  // of a raster
  int spiral_points = 963;
  double pixel = 10e-9;     // m, of the object
  Range photons{1e4, 1e7};  // a pattern: sum |P|^2, log-uniform, one draw a scan
  Range width{5, 10};       // px, of the probe
  Range defocus{0.1, 0.5};  // waves
  Range central_stop{0.2, 0.5};
  double dead_fraction = 1e-3;  // of detector pixels
  double threshold = 3;         // counts
  Material material;
  int drift = 0;  // px a scan along x, of one slowly drifting sample; 0: a new sample every scan
  int first = 0;  // scans of the seed that are passed over: a file that goes on where another one ended

  int points() const { return path == Path::raster ? rows * columns : spiral_points; }
};

// Everything that the points of a scan share.
struct PtychoScan {
  ScanPath path;
  std::vector<std::complex<float>> object;  // path.height x path.width
  std::vector<float> amplitude, phase;      // of the object; phase in rad, in (-pi, 0]
  ComplexField probe;                       // n x n, sum |P|^2 = photons
  Detector detector;                        // the same for all scans of a seed
  double photons = 0, width = 0, defocus = 0, central_stop = 0;
};
PtychoScan make_ptycho_scan(const PtychoSettings& settings, std::uint64_t seed, std::uint64_t scan);

class PtychoGenerator : public Generator {
 public:
  PtychoGenerator(std::string name, const PtychoSettings& settings);

  std::string_view name() const override { return name_; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }
  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override;
  std::map<std::string, Tensor> shared_arrays(std::uint64_t seed) const override;
  nlohmann::json parameters() const override;
  // .h5, with `object_amp`, `object_phase` [scans, H, W] and `probe` [scans, n, n, 2] of the scans that the
  // samples belong to.
  void write(const WriteRequest& request) const override;

  // The counts of a sample alone: window x window values.
  void pattern(std::uint64_t seed, std::uint64_t index, std::span<float> counts) const;
  const PtychoSettings& settings() const { return settings_; }
  // The scan, from a small cache. Thread-safe.
  std::shared_ptr<const PtychoScan> scan(std::uint64_t seed, std::uint64_t scan) const;

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;

  std::string name_;
  PtychoSettings settings_;
  std::vector<Field> fields_;
  std::map<std::string, Tensor> scan_arrays_;  // filled by write() for the file at hand
  mutable std::mutex mutex_;
  mutable std::list<std::pair<Key, std::shared_ptr<const PtychoScan>>> recent_;  // newest first
};

// Entries of the table of generators.
GeneratorEntry ptychonn_64_generator();
GeneratorEntry ptychonn_128_generator();
// Their options, and what they say.
std::vector<OptionSpec> ptycho_options(int window, const char* scan);
PtychoSettings read_ptycho_settings(const Options& options);

}  // namespace superstep::data
