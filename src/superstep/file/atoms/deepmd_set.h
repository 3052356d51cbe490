// Training data in the layout of DeePMD-kit: a folder a system, with `type.raw` (an index into `type_map.raw`
// for each atom, the same in all frames), `nopbc` when there is no box, and sets `set.000`, `set.001`, ... of
// frames as NumPy arrays: coord [F,3N] A, box [F,9] A, energy [F] eV, force [F,3N] eV/A, virial [F,9] eV.
// Described in the format's documentation; mixed systems have real_atom_types.npy [F,N] in each set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/file/atoms/configuration.h"

namespace superstep::data {

struct DeepmdFrame {
  Configuration configuration;
  Labels labels;
};

class DeepmdWriter {
 public:
  // Makes the folder under a temporary name; close() gives it its own. `elements`: one an atom, the same in
  // every frame. Throws Error (invalid_argument) when something stands at `path` already.
  DeepmdWriter(std::filesystem::path path, std::span<const int> elements, bool periodic,
               std::int64_t frames_a_set = 1000);
  ~DeepmdWriter();
  DeepmdWriter(const DeepmdWriter&) = delete;
  DeepmdWriter& operator=(const DeepmdWriter&) = delete;
  // Energy and forces must be there; a virial may be missing from all frames.
  void write(const DeepmdFrame& frame);
  void close();

 private:
  void flush();

  std::filesystem::path path_, partial_;
  std::vector<int> elements_;
  bool periodic_, closed_ = false;
  std::int64_t frames_a_set_, sets_ = 0;
  std::vector<double> coord_, box_, energy_, force_, virial_;
};

// Reads a system's frames, set after set. Energies, forces and virials that are not there stay empty. Throws
// Error (not_found, bad_file) naming the file.
std::vector<DeepmdFrame> read_deepmd_system(const std::filesystem::path& folder);

}  // namespace superstep::data
