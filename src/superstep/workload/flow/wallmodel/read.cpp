// Tables of points near a wall: CSV and HDF5.
#include <fmt/format.h>

#include <numeric>
#include <optional>

#include "superstep/file/check.h"
#include "superstep/file/csv.h"
#include "superstep/file/form.h"
#include "superstep/file/source/array_file.h"
#include "superstep/physics/flow/wall_flow.h"
#include "superstep/physics/flow/wall_generator.h"
#include "superstep/workload/flow/wallmodel/wallmodel.h"

namespace superstep::workload {
namespace {

using data::wall_features;

[[noreturn]] void refuse_width(const std::filesystem::path& path, std::int64_t found, std::int64_t wanted) {
  throw Error(ErrorCode::bad_file,
              fmt::format("has {} features per point, the model takes {}", found, wanted), path.string(),
              fmt::format("choose the model by --set stencil=N, {} features each", wall_features));
}

// A table of text, one row a point: columns as `superstep generate wallmodel --out NAME.csv` names them.
class TableOfPoints {
 public:
  TableOfPoints(const std::filesystem::path& path, std::int64_t width) : table_(path), path_(path) {
    for (std::int64_t k = 0; k < width / wall_features; ++k)
      for (const std::string& name : data::wall_feature_names())
        features_.push_back(table_.column(k > 0 ? fmt::format("{}_{}", name, k) : name));
    for (const char* name : {"x", "y", "z"})
      if (table_.has_column(name)) position_.push_back(table_.column(name));
    if (position_.size() < 3) position_.clear();
    if (table_.has_column("tau")) stress_.push_back(table_.column("tau"));
    if (table_.has_column("snapshot")) snapshot_ = table_.column("snapshot");
  }

  Fields read() {
    std::int64_t rows = 0;
    for (; table_.next(); ++rows) {
      for (const std::size_t column : features_) add(x_, column);
      for (const std::size_t column : stress_) add(tau_, column);
      for (const std::size_t column : position_) add(place_, column);
      group_.push_back(static_cast<std::int32_t>(snapshot_ ? table_.integer(*snapshot_) : rows));
    }
    if (rows == 0) throw Error(ErrorCode::bad_file, "has no points", path_.string());
    Fields fields;
    fields.emplace("features", Tensor::from<float>({rows, static_cast<std::int64_t>(features_.size())}, x_));
    fields.emplace("snapshot", Tensor::from<std::int32_t>({rows}, group_));
    if (!stress_.empty()) fields.emplace("tau", Tensor::from<float>({rows}, tau_));
    if (!position_.empty()) fields.emplace("position", Tensor::from<float>({rows, 3}, place_));
    return fields;
  }

 private:
  void add(std::vector<float>& values, std::size_t column) const {
    values.push_back(static_cast<float>(table_.number(column)));
  }

  data::CsvReader table_;
  const std::filesystem::path& path_;
  std::vector<std::size_t> features_, position_, stress_;  // columns; none where it is not there
  std::optional<std::size_t> snapshot_;
  std::vector<float> x_, tau_, place_;
  std::vector<std::int32_t> group_;
};

Fields read_arrays(const std::filesystem::path& path, std::int64_t width) {
  const data::ArrayFile file(path);
  const std::int64_t any[] = {-1, -1};
  Fields fields;
  const Tensor features = file.read("features", ElementType::f32, any);
  if (features.shape()[1] != width) refuse_width(path, features.shape()[1], width);
  const std::int64_t rows = features.shape()[0], row[] = {rows}, place[] = {rows, 3};
  if (rows == 0) throw Error(ErrorCode::bad_file, "has no points", path.string());
  fields.emplace("features", features);
  if (file.contains("tau")) fields.emplace("tau", file.read("tau", ElementType::f32, row));
  if (file.contains("position")) fields.emplace("position", file.read("position", ElementType::f32, place));
  std::vector<std::int32_t> own(static_cast<std::size_t>(rows));
  std::iota(own.begin(), own.end(), 0);
  fields.emplace("snapshot", file.contains("snapshot") ? file.read("snapshot", ElementType::i32, row)
                                                       : Tensor::from<std::int32_t>({rows}, own));
  return fields;
}

}  // namespace

Fields read_wall_points(const TaskSettings& settings, std::int64_t width) {
  const std::filesystem::path& path = settings.data;
  Fields fields =
      data::is_text(path, {".csv", ".tsv"}) ? TableOfPoints(path, width).read() : read_arrays(path, width);
  for (const char* name : {"features", "tau"})
    if (fields.contains(name)) data::require_finite(fields.at(name), data::place(path, name));
  if (settings.labels_required && !fields.contains("tau"))
    throw Error(ErrorCode::bad_file, "has no stresses ('tau') to learn from", path.string());
  return fields;
}

}  // namespace superstep::workload
