// Ptychographic scans as files hold them: those that are generated here, CXI files, and plain HDF5 files
// with patterns at /entry/data/data.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "superstep/baseline/ptychography/epie.h"
#include "superstep/file/source/array_file.h"

namespace superstep::baseline {

struct PtychoScanData {
  PtychoData data;
  std::optional<data::ComplexField> probe;                // the file's own, scaled to photons
  std::optional<std::vector<std::complex<float>>> truth;  // the object, height x width, of a generated file
  double mean_counts = 0;                                 // a pattern
};

class PtychoFile {
 public:
  struct Settings {
    double pixel = 0;       // m, of the object; 0: the file's `pixel_size`
    double threshold = -1;  // counts; below 0: the file's parameter, or none
  };
  // Reads everything but the patterns. Data sets, the first found of each line:
  //   patterns   diff | entry_1/data_1/data | entry/data/data                          [points, n, n]
  //   positions  position [points, 2] (y, x) | entry_1/sample_1/geometry_1/translation [points, 3] (x, y, z)
  //   optional   scan [points], dead [n, n], probe [scans, n, n, 2], object_amp and object_phase [scans, H,
  //   W]
  // Positions are in m and rounded to whole pixels; without a true object they may have any origin.
  // Throws Error naming file and data set.
  PtychoFile(const std::filesystem::path& path, const Settings& settings);

  std::int64_t points() const { return points_; }  // of all scans
  std::int64_t first_point(int scan) const { return scans_[static_cast<std::size_t>(scan)].first; }
  int scan_count() const { return static_cast<int>(scans_.size()); }
  int window() const { return n_; }
  int height() const { return height_; }  // of the object that holds all windows of every scan
  int width() const { return width_; }
  double pixel() const { return pixel_; }  // m
  std::size_t bytes_of_scan(int scan) const;
  PtychoScanData read_scan(int scan) const;  // thread-safe

 private:
  struct Run {
    std::int64_t first = 0, count = 0, index = 0;  // rows of the file; row of the arrays that scans share
  };
  void read_positions();
  void find_scans();
  void place_windows(bool movable);
  void read_modulus(const Run& run, PtychoScanData& scan) const;

  data::ArrayFile file_;
  std::string patterns_;
  int n_ = 0, height_ = 0, width_ = 0;
  double pixel_ = 0, threshold_ = 0;
  std::int64_t points_ = 0;
  std::vector<data::Position> positions_;
  std::vector<Run> scans_;
};

}  // namespace superstep::baseline
