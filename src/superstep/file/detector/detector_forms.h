// Sources of frames and volumes: one function a form, for the table in file/source/forms.cpp.
#pragma once

#include <filesystem>
#include <memory>

#include "superstep/file/source/request.h"

namespace superstep::data {

// A file of frames (EDF, CBF, IMG), or a folder of nothing but such, in the order of their names, numbers in
// them by value: `frames` [height, width], or the wanted array of as many elements.
bool holds_frames(const std::filesystem::path& path);
std::unique_ptr<SampleSource> open_frames(const std::filesystem::path& path, const SourceRequest& request);

// A volume of NIfTI-1 in one file (.nii, .nii.gz): `volume` [depth, height, width], a row a point in time;
// f32 where the file scales its numbers.
bool is_nifti(const std::filesystem::path& path);
std::unique_ptr<SampleSource> open_nifti(const std::filesystem::path& path, const SourceRequest& request);

// The pages of a TIFF: `images` [height, width] or [height, width, channels]; read as a whole.
bool is_tiff_stack(const std::filesystem::path& path);
std::unique_ptr<SampleSource> open_tiff_stack(const std::filesystem::path& path,
                                              const SourceRequest& request);

}  // namespace superstep::data
