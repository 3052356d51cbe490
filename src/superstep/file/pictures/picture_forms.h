// Sources of the forms that hold pictures: one function a form, for the table in file/source/forms.cpp.
//
// A picture becomes the wanted array of two or three axes, [height, width] or [channels, height, width]:
// resized by one factor so that it covers height x width, the middle taken (file/pictures/resample.h), of
// bytes as they are or, of floating point, divided by 255. Where nothing is wanted it is "image", bytes, as
// large as the first picture; another size is refused then, or brought to that one where the option "fit" is
// given.
#pragma once

#include <filesystem>
#include <memory>

#include "superstep/file/source/request.h"

namespace superstep::data {

// image, label, and part where the files say which train: of a folder a class, or of a table of paths
// (file/pictures/picture_list.h). The label is the wanted array of one whole number, else "label".
std::unique_ptr<SampleSource> open_class_folder(const std::filesystem::path& path,
                                                const SourceRequest& request);
std::unique_ptr<SampleSource> open_picture_table(const std::filesystem::path& path,
                                                 const SourceRequest& request);
// image alone: of a folder, and of one file.
std::unique_ptr<SampleSource> open_plain_pictures(const std::filesystem::path& path,
                                                  const SourceRequest& request);
std::unique_ptr<SampleSource> open_picture_file(const std::filesystem::path& path,
                                                const SourceRequest& request);
// image; mask: 1 where the mask's picture is not black (of a JPEG: from 128 on), else 0, the nearest pixel
// taken; patient: the number of the folder that they lie in; part
// as above.
std::unique_ptr<SampleSource> open_picture_pairs(const std::filesystem::path& path,
                                                 const SourceRequest& request);

}  // namespace superstep::data
