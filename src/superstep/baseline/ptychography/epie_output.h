// What the reconstruction of a file's scans leaves behind: a file, a table, metrics.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "superstep/base/text.h"
#include "superstep/baseline/ptychography/epie_run.h"
#include "superstep/file/hdf5/hdf5.h"

namespace superstep::baseline {

// The file of objects and probes; nothing where no path is given. Passes that were not done have the error
// NaN, and `passes_done` says how many each scan has had: 0 for one that was not begun.
class EpieOutput {
 public:
  // `stitched`: there are objects of a network, too.
  EpieOutput(const std::filesystem::path& path, const PtychoFile& file, int scans, int passes, bool stitched);
  void add(const EpieResult& result);
  void close();

 private:
  void write_object(const std::string& name, int scan, const std::vector<std::complex<float>>& object);

  std::unique_ptr<data::Hdf5Writer> writer_;
  std::int64_t height_, width_;
  int passes_;
};

class EpieSummary {
 public:
  EpieSummary()
      : table_({"scan", "points", "passes", "time", "error", "phase rms (rad)", "amplitude rms",
                "resolution (px)"}) {}
  void add(const EpieResult& result);
  int scans() const { return scans_; }
  // Over the scans added; there must be one.
  Report report(double wall_seconds, double pixel) const;

 private:
  TextTable table_;
  double seconds_ = 0, fourier_ = 0, phase_squares_ = 0, amplitude_squares_ = 0, worst_phase_ = 0,
         pixels_ = 0, points_ = 0, updates_ = 0, resolution_ = 0;
  int scans_ = 0, compared_ = 0;
  struct Halves {
    double resolution = 0, phase_squares = 0;
    int scans = 0;
    void add(const std::optional<HalvesAgreement>& agreement);
    void append(std::vector<Metric>& metrics, const char* whose, double pixel) const;
    std::string line(const char* what, double pixel) const;  // empty of no scan
  };
  Halves halves_, network_halves_;
  // Of the first scan that began with a network's answers.
  std::optional<EpieStart> start_;
  std::optional<ObjectQuality> warm_;
};

}  // namespace superstep::baseline
