// The command that retrieves the crystals of a file by HIO and ER with shrink-wrap.
#pragma once

#include <optional>
#include <vector>

#include "superstep/baseline/baseline.h"
#include "superstep/baseline/ptychography/autophase_answers.h"
#include "superstep/baseline/ptychography/phase_alignment.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/page/page.h"

namespace superstep::baseline {

// Reads `diff` [samples, n, n, n], magnitudes with frequency zero at n/2, and, where there are such, the
// labels `amp` and `phase` [samples, n/2, n/2, n/2]. Every crystal is retrieved from several random starts
// and the one with the lowest chi2 is kept: written as `amp`, `phase` [samples, n/2, n/2, n/2] and `chi2`
// [samples], aligned with the labels or else centred. With files of answers (option start) the answers and
// what a retrieval makes of them stand beside it in the table and on the page.
Report run_phase_retrieval(const Request& request, const Options& options);
std::vector<OptionSpec> phase_retrieval_options();

// One retrieved crystal.
struct CrystalResult {
  std::int64_t sample = 0;
  double chi2 = 0, seconds = 0;    // seconds of processor time, all starts together
  std::vector<double> start_chi2;  // of every start
  Field object, truth;             // middle half of the grid along every axis; truth is empty without labels
  std::optional<ShapeComparison> comparison;
  bool twin = false;
  std::optional<ComparedCrystal> compared;  // with answers at hand
};

// The middle half of a cube of `n` voxels a side.
Field middle_cube(const Field& field, std::size_t n);

// Modulus and phase in the three planes through the middle of a cube of `n` voxels a side, with bars of
// their colours; `which` begins the captions.
void add_object_slices(std::vector<page::Picture>& pictures, const Field& field, int n,
                       const std::string& which);

// The surface at half the modulus of each cube [n, n, n], in the colours of its phase, one turn around z; all
// of one size, with a bar of the colours. A cube that nowhere has half the modulus shows empty ground.
struct NamedCube {
  std::string caption;
  Field field;
};
std::vector<page::Picture> turning_crystals(std::span<const NamedCube> cubes, int n);

// A page with slices and surfaces of the first crystal, true and retrieved. `n` is the side of result.object;
// `answers` are the names of what it was compared with, and `table` what came of that.
void write_retrieval_page(const std::filesystem::path& path, const CrystalResult& result, int n,
                          std::span<const CrystalAnswers> answers, const std::string& table);

}  // namespace superstep::baseline
