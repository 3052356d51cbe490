// Pictures of an image-like data set.
#pragma once

#include <string>
#include <vector>

#include "superstep/page/page.h"
#include "superstep/show/array_file.h"
#include "superstep/show/layout.h"
#include "superstep/show/marks.h"
#include "superstep/show/statistics.h"

namespace superstep::show {

struct PictureGroup {
  std::vector<page::Picture> pictures;
  std::string remark;  // which samples, how they are coloured, how far they are reduced
};

// About `wanted` pictures, of samples spread evenly over the data set; volumes as their central slices,
// complex numbers as amplitude and phase. Where the largest value is far above the mean, colours are
// logarithmic. Throws Error that names the data set when it cannot be read.
PictureGroup draw_pictures(const ArrayFile& file, const data::DataSetInfo& info, const PictureLayout& layout,
                           const Statistics& statistics, const std::string& unit, const PeakMarks& marks,
                           int wanted);

}  // namespace superstep::show
