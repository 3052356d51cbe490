// Centres of diffraction peaks that belong to the pictures of a file: `ploc` beside `patch`, and `peak_row`,
// `peak_col`, `peak_fidx` beside `frames`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "superstep/page/page.h"
#include "superstep/show/array_file.h"

namespace superstep::show {

class PeakMarks {
 public:
  // Reads no more than a few million peaks. A file without peaks has no marks; throws Error when their
  // data sets cannot be read.
  PeakMarks(const ArrayFile& file, const std::vector<data::DataSetInfo>& infos);

  // Marks on sample `index` of the data set, in its own pixels; at most 400.
  std::vector<page::Mark> on(const std::string& data_set, std::int64_t index) const;

 private:
  void add_patches(const ArrayFile& file, const std::vector<data::DataSetInfo>& infos,
                   const data::DataSetInfo& patches);
  void add_frames(const ArrayFile& file, const std::vector<data::DataSetInfo>& infos,
                  const data::DataSetInfo& frames);

  std::map<std::string, std::multimap<std::int64_t, page::Mark>> marks_;  // by data set and sample
};

}  // namespace superstep::show
