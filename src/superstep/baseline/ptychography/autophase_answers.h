// Crystals that are known already, by a network or refined, beside retrievals that begin from random numbers
// and from those answers: quality, and seconds until it is the same.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/text.h"
#include "superstep/baseline/baseline.h"
#include "superstep/baseline/ptychography/phase_alignment.h"
#include "superstep/file/source/array_file.h"

namespace superstep::baseline {

// Processor time of the calling thread: what a start costs on a machine that others use too.
double thread_seconds();

// An object with what is known of it.
struct CrystalQuality {
  double chi2 = 0;
  double overlap = 0;  // |<object, truth>| / (|object| |truth|), aligned; 0 without the truth
  std::optional<ShapeComparison> shape;  // with the truth
};
CrystalQuality quality_of_crystal(const Field& object, double chi2, const Field& truth, const Shape& shape);

// A retrieval on its way: after so many seconds of its thread, without those of looking at it, an object
// inside its support had this chi2 and, where the truth is known and somebody asked, this overlap with it.
struct RetrievalTrace {
  std::vector<double> seconds, chi2, overlap;

  // Until it was as good as that: by the overlap, or where that is not known by chi2, which a support that is
  // too loose makes small. Nothing where it never was.
  std::optional<double> seconds_to(const CrystalQuality& quality) const;
};

// `amp` and `phase` [samples, 1, n/2, n/2, n/2] as `superstep infer --output` writes them, or without the
// axis of one channel, as this command's own output has them.
class CrystalAnswers {
 public:
  // For patterns [samples, n, n, n]. Throws Error (bad_file) naming the file and what of it is not so.
  CrystalAnswers(const std::filesystem::path& path, std::int64_t samples, std::int64_t n);

  const std::string& name() const { return name_; }  // the file's, without its ending
  double seconds_per_crystal() const {
    return seconds_;
  }  // that it took to find one; 0 where the file is silent

  // In the middle of a pattern's grid. Throws Error (bad_file) naming the crystal that is not finite or
  // empty.
  Field object(std::int64_t sample) const;

 private:
  data::ArrayFile file_;
  std::string name_;
  std::int64_t n_;
  double seconds_ = 0;
};

// An answer, as it is and as what a retrieval makes of it.
struct AnswerResult {
  CrystalQuality own, continued;
  RetrievalTrace trace;  // of the retrieval
};

// One crystal of the comparison.
struct ComparedCrystal {
  std::vector<CrystalQuality> starts;  // of the random ones
  std::vector<RetrievalTrace> traces;  // the same
  std::vector<AnswerResult> answers;   // of each file
};

// The means over crystals, a line a way.
class AnswerSummary {
 public:
  explicit AnswerSummary(std::span<const CrystalAnswers> answers);
  void add(const ComparedCrystal& crystal);
  std::string table() const;
  std::vector<Metric> metrics() const;

 private:
  struct Way {
    std::string name;
    double crystals = 0, compared = 0, chi2 = 0, overlap = 0, iou = 0, phase_rms = 0, ssim = 0, seconds = 0;
    std::vector<double> reached, seconds_to;  // of each file's quality: how often, and the sum of the seconds

    void add(const CrystalQuality& quality, double taken);
    void add_time_to(std::size_t file, std::optional<double> taken);
  };
  std::vector<std::string> row_of(const Way& way) const;

  std::vector<std::string> names_;
  std::vector<double> own_seconds_;
  std::vector<Way> ways_;  // each file's answers; the first random start; the best; from each file's answers
};

}  // namespace superstep::baseline
