#include "superstep/peaks/table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npz_writer.h"

namespace superstep::peaks {
namespace {

template <class Row>
struct Column {
  const char* name;
  ElementType type;
  const char* unit;
  const char* meaning;
  double (*value)(const Row& row);
};

using enum ElementType;

constexpr Column<Reflection> reflection_columns[] = {
    {"row", f64, "px", "mean over its frames, by intensity; 0 is the center of the first pixel",
     [](const Reflection& r) { return r.row; }},
    {"column", f64, "px", "in the same way", [](const Reflection& r) { return r.column; }},
    {"frame", f64, "frames", "mean of its frames, by intensity; the first is 0",
     [](const Reflection& r) { return r.frame; }},
    {"row_sigma", f64, "px", "standard deviation of the centroid by counting photons alone",
     [](const Reflection& r) { return r.row_sigma; }},
    {"column_sigma", f64, "px", "in the same way", [](const Reflection& r) { return r.column_sigma; }},
    {"frame_width", f64, "frames", "standard deviation of its intensity over the frames",
     [](const Reflection& r) { return r.frame_width; }},
    {"intensity", f64, "counts", "sum of its pixels above the background",
     [](const Reflection& r) { return r.intensity; }},
    {"maximum", f32, "counts", "its highest pixel above the background",
     [](const Reflection& r) { return double{r.maximum}; }},
    {"pixels", i64, "", "above the threshold, of all its frames",
     [](const Reflection& r) { return static_cast<double>(r.pixels); }},
    {"first_frame", i64, "", "", [](const Reflection& r) { return static_cast<double>(r.first_frame); }},
    {"last_frame", i64, "", "", [](const Reflection& r) { return static_cast<double>(r.last_frame); }},
    {"spots", i64, "", "spots of single frames that it is made of",
     [](const Reflection& r) { return static_cast<double>(r.spots); }},
    {"flags", u16, "",
     "sum of 1: beyond the frame's edge, 2: pixels without data, 4: parted from others, 8: in the first or "
     "last "
     "frame, 16: the method gave no place",
     [](const Reflection& r) { return static_cast<double>(r.flags); }}};

constexpr Column<FoundSpot> spot_columns[] = {
    {"row", f64, "px", "0 is the center of the first pixel", [](const FoundSpot& s) { return s.found_row; }},
    {"column", f64, "px", "in the same way", [](const FoundSpot& s) { return s.found_column; }},
    {"frame", i64, "", "the first is 0", [](const FoundSpot& s) { return static_cast<double>(s.frame); }},
    {"row_sigma", f64, "px", "standard deviation of the centroid by counting photons alone",
     [](const FoundSpot& s) { return s.row_sigma; }},
    {"column_sigma", f64, "px", "in the same way", [](const FoundSpot& s) { return s.column_sigma; }},
    {"intensity", f64, "counts", "sum of its pixels above the background",
     [](const FoundSpot& s) { return s.intensity; }},
    {"maximum", f32, "counts", "its highest pixel above the background",
     [](const FoundSpot& s) { return double{s.maximum}; }},
    {"maximum_row", i32, "px", "of that pixel",
     [](const FoundSpot& s) { return static_cast<double>(s.row); }},
    {"maximum_column", i32, "px", "of that pixel",
     [](const FoundSpot& s) { return static_cast<double>(s.column); }},
    {"pixels", i32, "", "above the threshold",
     [](const FoundSpot& s) { return static_cast<double>(s.pixels); }},
    {"flags", u16, "", "as of reflections", [](const FoundSpot& s) { return static_cast<double>(s.flags); }}};

// A table's column, whichever table it is of.
struct Filled {
  std::string name, unit, meaning;
  Tensor values;
};

template <class Row, std::size_t n>
std::vector<Filled> fill(const Column<Row> (&columns)[n], const std::vector<Row>& rows) {
  std::vector<Filled> filled;
  for (const Column<Row>& column : columns) {
    Tensor values(column.type, {static_cast<std::int64_t>(rows.size())});
    for (std::size_t i = 0; i < rows.size(); ++i)
      values.set(static_cast<std::int64_t>(i), column.value(rows[i]));
    filled.push_back({column.name, column.unit, column.meaning, std::move(values)});
  }
  return filled;
}

std::vector<Filled> reflections_of(const PeaksSettings& settings, const PeakTable& table) {
  const std::vector<Reflection>& rows = table.merged.reflections;
  std::vector<Filled> columns = fill(reflection_columns, rows);
  if (!settings.omega) return columns;
  const auto count = static_cast<std::int64_t>(rows.size());
  Filled omega{"omega", "degrees", "of the mean frame, its middle", Tensor(f64, {count})};
  for (std::size_t i = 0; i < rows.size(); ++i)
    omega.values.set(static_cast<std::int64_t>(i), settings.omega->at(rows[i].frame));
  columns.insert(columns.begin() + 3, std::move(omega));
  return columns;
}

std::vector<Filled> spots_of(const PeakTable& table) {
  std::vector<Filled> columns = fill(spot_columns, table.spots);
  const auto count = static_cast<std::int64_t>(table.spots.size());
  columns.push_back({"reflection", "", "the line of its reflection, the first is 0",
                     Tensor::from<std::int64_t>({count}, table.merged.of_spot)});
  return columns;
}

void write_hdf5(const std::filesystem::path& path, const nlohmann::json& about,
                const std::vector<std::pair<std::string, std::vector<Filled>>>& tables) {
  data::Hdf5Writer file(path);
  file.set_attribute("", "peaks", about.dump());
  for (const auto& [name, columns] : tables)
    for (const Filled& column : columns) {
      const std::string place = name + "/" + column.name;
      file.write(place, column.values);
      if (!column.unit.empty()) file.set_attribute(place, "unit", column.unit);
      if (!column.meaning.empty()) file.set_attribute(place, "meaning", column.meaning);
    }
  file.close();
}

void write_npz(const std::filesystem::path& path, const nlohmann::json& about,
               const std::vector<std::pair<std::string, std::vector<Filled>>>& tables) {
  data::NpzWriter file(path);
  file.set_comment(about.dump());
  for (const auto& [name, columns] : tables)
    for (const Filled& column : columns) file.write(name + "/" + column.name, column.values);
  file.close();
}

// Six digits behind the point of a pixel are a thousandth of what photons allow.
std::string text_of(const Tensor& values, std::int64_t at) {
  return is_floating(values.type()) ? fmt::format("{:.9g}", values.at(at))
                                    : fmt::format("{}", static_cast<std::int64_t>(values.at(at)));
}

void write_csv(const std::filesystem::path& path, const std::vector<Filled>& columns) {
  std::string text;
  for (const Filled& column : columns)
    text += fmt::format("{}{}{}", text.empty() ? "" : ",", column.name,
                        column.unit.empty() ? "" : "(" + column.unit + ")");
  text += "\n";
  for (std::int64_t i = 0; i < columns[0].values.element_count(); ++i)
    for (std::size_t k = 0; k < columns.size(); ++k)
      text += text_of(columns[k].values, i) + (k + 1 < columns.size() ? "," : "\n");
  write_file_atomically(path, text);
}

void write_json(const std::filesystem::path& path, nlohmann::json about,
                const std::vector<std::pair<std::string, std::vector<Filled>>>& tables) {
  for (const auto& [name, columns] : tables)
    for (const Filled& column : columns) {
      nlohmann::json& values = about[name][column.name] = nlohmann::json::array();
      for (std::int64_t i = 0; i < column.values.element_count(); ++i)
        is_floating(column.values.type()) ? values.push_back(column.values.at(i))
                                          : values.push_back(static_cast<std::int64_t>(column.values.at(i)));
    }
  write_file_atomically(path, about.dump(1) + "\n");
}

}  // namespace

void require_table_form(const std::filesystem::path& path) {
  for (const char* known : {".h5", ".npz", ".csv", ".json"})
    if (path.extension() == known) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}' is no form of tables", path.extension().string()), path.string(),
              "take .h5, .npz, .csv or .json");
}

nlohmann::json describe(const PeaksSettings& settings, const PeakTable& table) {
  nlohmann::json about{
      {"frames", settings.frames.string()},
      {"dark", settings.correction.dark.string()},
      {"flat", settings.correction.flat.string()},
      {"mask", settings.correction.mask.string()},
      {"threshold", to_text(settings.find.threshold)},
      {"least_pixels", settings.find.least_pixels},
      {"contrast", settings.find.contrast},
      {"part", settings.find.part},
      {"valley", settings.find.valley},
      {"clean", settings.find.clean},
      {"patch", table.patch},
      {"method", method_names()[static_cast<std::size_t>(settings.locator.method)]},
      {"run", settings.locator.run.string()},
      {"merge", settings.merge},
      {"shape", {table.frames, table.height, table.width}},
  };
  if (settings.omega) about["omega"] = {{"start", settings.omega->start}, {"step", settings.omega->step}};
  return about;
}

void write_table(const std::filesystem::path& path, const nlohmann::json& about,
                 const PeaksSettings& settings, const PeakTable& table) {
  require_table_form(path);
  const std::vector<std::pair<std::string, std::vector<Filled>>> tables{
      {"reflections", reflections_of(settings, table)}, {"spots", spots_of(table)}};
  if (path.extension() == ".h5") return write_hdf5(path, about, tables);
  if (path.extension() == ".npz") return write_npz(path, about, tables);
  if (path.extension() == ".csv") return write_csv(path, tables[0].second);
  write_json(path, about, tables);
}

}  // namespace superstep::peaks
