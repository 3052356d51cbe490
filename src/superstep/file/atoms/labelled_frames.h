// Frames of atoms with energies and forces, from any of the files that hold such: a DeePMD-kit folder, or a
// folder of several; extended XYZ; a database of ASE; HDF5 as `superstep generate deepmd` writes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "superstep/file/atoms/deepmd_set.h"

namespace superstep::data {

struct LabelledFrames {
  std::vector<DeepmdFrame> frames;
  std::vector<std::int64_t> trajectory;  // of each frame; the frame's number where the file does not say
  std::vector<std::string> place;        // where each was read: "frames.xyz, frame 3"
};

// Labels that are not there stay empty. `limit`: the first so many frames; 0: all. Throws Error (not_found,
// bad_file) that names the file.
LabelledFrames read_labelled_frames(const std::filesystem::path& path, std::int64_t limit = 0);

}  // namespace superstep::data
