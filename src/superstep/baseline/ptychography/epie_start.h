// What a network says of every point of a scan, stitched to one object, and how a reconstruction that begins
// with it goes beside one that begins with nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "superstep/baseline/ptychography/epie.h"
#include "superstep/baseline/ptychography/epie_compare.h"
#include "superstep/file/source/array_file.h"

namespace superstep::baseline {

// Windows under the probe as `superstep infer --output` writes them: `phase` [points, 1, n, n] in rad and, of
// a network that says it, `amp`; [points, n, n] as well.
class PointAnswers {
 public:
  // Of all points of a file of patterns [points, n, n]. Throws Error (bad_file) naming the file and what of
  // it is not so.
  PointAnswers(const std::filesystem::path& path, std::int64_t points, int n);

  double seconds_per_point() const { return seconds_; }  // that the network took; 0 where the file is silent

  struct Stitched {
    std::vector<std::complex<float>>
        object;              // height x width; where there was no answer, the mean of the others
    std::vector<float> hit;  // 1 where there was one
  };
  // The middles, `central` pixels a side, of the windows of points first, first + 1, ... at `positions`.
  // Angles are averaged on the circle, moduli as they are; without `amp` the modulus is 1. Throws Error
  // (bad_file) naming the point whose answer is not finite. `from` and `step`: of these points, those that
  // are taken.
  Stitched stitched(std::span<const data::Position> positions, std::int64_t first, int height, int width,
                    int central, std::size_t from = 0, std::size_t step = 1) const;

 private:
  std::vector<float> rows(const char* name, std::int64_t first, std::int64_t count) const;

  data::ArrayFile file_;
  int n_;
  bool has_amplitude_ = false;
  double seconds_ = 0;
};

// Beside the truth.
struct ObjectQuality {
  double phase_rms = 0, amplitude_rms = 0;  // as compare_objects has them
  double resolution =
      0;  // pixels a period: where the rings of the phases fall below 0.5; 2 where they never do
};
ObjectQuality quality_of(const ObjectComparison& comparison, std::span<const std::complex<float>> truth,
                         std::span<const float> area, int height, int width);

// One reconstruction, pass by pass.
struct EpieCourse {
  std::vector<double> errors, seconds;  // of the pass; since the first began, without looking at the result
  std::vector<double> phase_rms;        // rad, after every pass; empty without the truth

  // The first pass (from 1) with an error of at most `error`; nothing where there is none.
  std::optional<std::size_t> passes_to(double error) const;
};

// The stitched object of one scan, and the course that begins with nothing.
struct EpieStart {
  PointAnswers::Stitched stitched;
  double network_seconds = 0;                          // for all points; 0 where not known
  std::optional<ObjectQuality> network, from_nothing;  // with the truth
  EpieCourse cold, warm;
};

// A line a way: the network alone, from nothing, from the network. `pixel` in m.
std::string table_of(const EpieStart& start, const std::optional<ObjectQuality>& warm, double pixel);

}  // namespace superstep::baseline
