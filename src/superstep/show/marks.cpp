#include "superstep/show/marks.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace superstep::show {
namespace {

constexpr std::int64_t most_peaks = std::int64_t{1} << 22;
constexpr std::size_t most_marks = 400;  // in one picture: more hide what they mark

using Infos = std::vector<data::DataSetInfo>;

std::string_view group_of(std::string_view name) { return name.substr(0, name.rfind('/') + 1); }

std::string_view last_name(std::string_view name) { return name.substr(name.rfind('/') + 1); }

// The numeric data set `name` in the group of `beside`, of `columns` columns (0: rank 1).
const data::DataSetInfo* find(const Infos& infos, const data::DataSetInfo& beside, std::string_view name,
                              std::int64_t columns) {
  const std::string path = std::string(group_of(beside.name)) + std::string(name);
  const auto found = std::ranges::find(infos, path, &data::DataSetInfo::name);
  if (found == infos.end() || !found->type || found->complex) return nullptr;
  const bool fits =
      columns == 0 ? found->shape.rank() == 1 : found->shape.rank() == 2 && found->shape[1] == columns;
  return fits ? &*found : nullptr;
}

Tensor read_rows(const ArrayFile& file, const data::DataSetInfo& info, std::int64_t rows) {
  const std::vector<std::int64_t> first(static_cast<std::size_t>(info.shape.rank()));
  std::vector<std::int64_t> count = info.shape.extents();
  count[0] = rows;
  return file.read_block(info, ElementType::f64, first, count);
}

page::Mark mark(page::Mark::Shape shape, double column, double row, const char* label) {
  return {shape, column, row, "#ff5c5c", label};
}

}  // namespace

PeakMarks::PeakMarks(const ArrayFile& file, const Infos& infos) {
  for (const data::DataSetInfo& info : infos) {
    if (last_name(info.name) == "patch" && info.shape.rank() >= 3) add_patches(file, infos, info);
    if (last_name(info.name) == "frames" && info.shape.rank() == 3) add_frames(file, infos, info);
  }
}

// `ploc` is (column, row) counted from the centre of the patch's first pixel, in patch sizes.
void PeakMarks::add_patches(const ArrayFile& file, const Infos& infos, const data::DataSetInfo& patches) {
  const data::DataSetInfo* const centers = find(infos, patches, "ploc", 2);
  if (!centers) return;
  const std::int64_t rows = std::min({centers->shape[0], patches.shape[0], most_peaks});
  const auto width = static_cast<double>(patches.shape[patches.shape.rank() - 1]);
  const auto height = static_cast<double>(patches.shape[patches.shape.rank() - 2]);
  const Tensor values = read_rows(file, *centers, rows);
  auto& marks = marks_[patches.name];
  for (std::int64_t i = 0; i < rows; ++i)
    marks.emplace(
        i, mark(page::Mark::Shape::plus, values.at(2 * i) * width, values.at(2 * i + 1) * height, "ploc"));
}

void PeakMarks::add_frames(const ArrayFile& file, const Infos& infos, const data::DataSetInfo& frames) {
  const auto* const rows = find(infos, frames, "peak_row", 0);
  const auto* const columns = find(infos, frames, "peak_col", 0);
  const auto* const indices = find(infos, frames, "peak_fidx", 0);
  if (!rows || !columns || !indices) return;
  const std::int64_t count = std::min({rows->shape[0], columns->shape[0], indices->shape[0], most_peaks});
  const Tensor row = read_rows(file, *rows, count), column = read_rows(file, *columns, count),
               index = read_rows(file, *indices, count);
  auto& marks = marks_[frames.name];
  for (std::int64_t i = 0; i < count; ++i)
    if (const double frame = index.at(i); frame >= 0 && frame < static_cast<double>(frames.shape[0]))
      marks.emplace(static_cast<std::int64_t>(frame),
                    mark(page::Mark::Shape::circle, column.at(i), row.at(i), "peak_row, peak_col"));
}

std::vector<page::Mark> PeakMarks::on(const std::string& data_set, std::int64_t index) const {
  const auto marks = marks_.find(data_set);
  if (marks == marks_.end()) return {};
  std::vector<page::Mark> found;
  const auto [begin, end] = marks->second.equal_range(index);
  for (auto at = begin; at != end && found.size() < most_marks; ++at)
    if (std::isfinite(at->second.x) && std::isfinite(at->second.y)) found.push_back(at->second);
  return found;
}

}  // namespace superstep::show
