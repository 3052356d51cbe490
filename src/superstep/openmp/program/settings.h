// How a translated program runs, from its environment: SUPERSTEP_OMP_ON names the machine,
// SUPERSTEP_OMP_OPTIONS holds words with commas between them, SUPERSTEP_OMP_REPORT a file for what it all
// took (JSON), SUPERSTEP_OMP_PROFILE a folder for pages of the programs that were made.
#pragma once

#include <string>

#include "superstep/openmp/offload.h"

namespace superstep::openmp {

struct Settings {
  bsp::Device device;
  OffloadOptions offload;
  bool each = false;       // every region runs when it is launched, without a queue
  bool check = false;      // every region also on the host, and compared
  bool disabled = false;   // OMP_TARGET_OFFLOAD=disabled
  bool mandatory = false;  // what cannot run on the tiles is an error
  std::string report;      // a file; empty: none
  std::string profile;     // a folder for a page of each program; empty: none
};

// Throws Error (invalid_argument) for words that it does not know.
Settings settings_from_environment();

}  // namespace superstep::openmp
