// The command that reconstructs every scan of a file by ePIE or rPIE.
#pragma once

#include <optional>
#include <vector>

#include "superstep/base/function_ref.h"
#include "superstep/baseline/baseline.h"
#include "superstep/baseline/ptychography/epie_compare.h"
#include "superstep/baseline/ptychography/epie_halves.h"
#include "superstep/baseline/ptychography/epie_start.h"
#include "superstep/baseline/ptychography/ptycho_file.h"

namespace superstep::baseline {

// With answers of a network to start from (option start) every scan is reconstructed twice, from them and
// from nothing, and `stitched_amp`, `stitched_phase` [scans, H, W] are written too.
//
// With halves=yes every scan is reconstructed twice more, from every second point, and what the halves agree
// on is told: a resolution without the truth (epie_halves.h).
//
// Reads the scans of request.input (see PtychoFile), writes `object_amp`, `object_phase` [scans, H, W],
// `probe` [scans, n, n, 2], `fourier_error` [scans, passes] and `passes_done` [scans], and reports the time
// a scan and, for generated files, how close the objects come to the true ones. request.picture may be a
// page (.html) or the pictures of the first scan's object alone (.png).
//
// When the user asks to stop, the passes done so far are written as if there were no more, and then an
// Error (interrupted) says how many they were; with no pass done nothing is written.
Report run_epie(const Request& request, const Options& options);
// The same; `after_pass` is called after every pass with the scan and the error, from one thread at a time.
Report run_epie(const Request& request, const Options& options,
                FunctionRef<void(int scan, double error)> after_pass);
std::vector<OptionSpec> epie_options();

// One reconstructed scan.
struct EpieResult {
  int scan = 0, points = 0;
  double seconds = 0;                              // without reading
  std::vector<double> errors;                      // of every pass
  std::vector<std::complex<float>> object, truth;  // truth is empty where the file has none
  data::ComplexField probe;
  std::vector<float> area;                     // 1 where the scan put light
  std::optional<ObjectComparison> comparison;  // with the truth
  std::optional<ObjectQuality> quality;        // the same and its resolution
  std::optional<EpieStart> start;              // where it began with a network's answers
  // Of two reconstructions from every second point, and of the network's answers to them, where asked for.
  std::optional<HalvesAgreement> halves, network_halves;
};

}  // namespace superstep::baseline
