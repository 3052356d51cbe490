#include "superstep/show/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "superstep/base/json.h"
#include "superstep/base/text.h"
#include "superstep/file/form.h"
#include "superstep/file/weights/foreign_model.h"
#include "superstep/show/layout.h"
#include "superstep/show/marks.h"
#include "superstep/show/model_file.h"
#include "superstep/show/open_array_file.h"
#include "superstep/show/pictures.h"
#include "superstep/show/tables.h"

namespace superstep::show {
namespace {

using Infos = std::vector<data::DataSetInfo>;

// The work on one file: every step notes the data sets that fail and goes on.
struct Work {
  const ArrayFile& file;
  ShowOptions options;
  Infos infos;
  Shown shown;
  std::set<std::string> texts;  // data sets of bytes that are texts
};

// Is there a column or table of as many rows? Then these rows are samples, and so are the pictures.
bool has_table_of_rows(const Infos& infos, std::int64_t rows) {
  return std::ranges::any_of(
      infos, [&](const data::DataSetInfo& info) { return is_table(info) && info.shape[0] == rows; });
}

std::optional<PictureLayout> layout_of(const Work& work, const data::DataSetInfo& info) {
  if (!info.type || info.shape.rank() == 0 || work.texts.contains(info.name)) return {};
  return picture_layout(info.shape, *info.type, info.complex, has_table_of_rows(work.infos, info.shape[0]));
}

template <class Step>
bool attempt(Work& work, Step&& step) {
  try {
    step();
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_file && error.code() != ErrorCode::unsupported) throw;
    work.shown.failures.push_back(error);
    return false;
  }
}

Infos chosen(const Infos& infos, const std::vector<std::string>& only, const std::filesystem::path& path) {
  if (only.empty()) return infos;
  std::vector<std::string> known;
  for (const auto& info : infos) known.push_back(info.name);
  Infos kept;
  for (const std::string& name : only) {
    const auto found = std::ranges::find(infos, name, &data::DataSetInfo::name);
    if (found == infos.end())
      throw Error(ErrorCode::invalid_argument, "the file has no data set '" + name + "'", path.string(),
                  unknown_name_hint(name, known));
    kept.push_back(*found);
  }
  return kept;
}

void look_at_data_sets(Work& work, const Infos& infos) {
  for (const data::DataSetInfo& info : infos)
    attempt(work, [&] {
      const auto attributes = work.file.attributes(info.name);
      ShownDataSet shown{info, attribute_text(attributes, "unit"), attribute_text(attributes, "meaning"), {}};
      if (info.type) shown.statistics = look_at(work.file, info);
      if (is_padded_text(work.file, info)) work.texts.insert(info.name);
      work.shown.data_sets.push_back(std::move(shown));
    });
}

std::string other_attributes(const ArrayFile& file, const std::string& name) {
  std::string text;
  for (const auto& [key, value] : file.attributes(name))
    if (key != "unit" && key != "meaning")
      text += fmt::format("{}{} = {}", text.empty() ? "" : "; ", key, to_text(value));
  return text;
}

std::string missing_text(const Statistics& statistics) {
  return statistics.not_finite == 0 ? "" : format_count(static_cast<double>(statistics.not_finite));
}

// Columns that would be empty for every data set are left out.
void add_table_without_empty_columns(page::Page& page, const std::vector<std::string>& header,
                                     const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::string> kept_header;
  std::vector<std::vector<std::string>> kept(rows.size());
  for (std::size_t c = 0; c < header.size(); ++c) {
    if (std::ranges::all_of(rows, [&](const auto& row) { return row[c].empty(); })) continue;
    kept_header.push_back(header[c]);
    for (std::size_t r = 0; r < rows.size(); ++r) kept[r].push_back(rows[r][c]);
  }
  page.table(kept_header, kept);
}

void add_overview(Work& work) {
  std::vector<std::vector<std::string>> rows;
  bool sampled = false;
  for (const ShownDataSet& set : work.shown.data_sets) {
    const Statistics& s = set.statistics;
    const bool numbers = !s.values.empty();
    rows.push_back({set.info.name, to_string(set.info.shape), set.info.type_name, range_text(set),
                    numbers ? fmt::format("{:.4g}", s.mean) : "",
                    numbers ? fmt::format("{:.4g}", s.deviation) : "", missing_text(s), set.unit, set.meaning,
                    other_attributes(work.file, set.info.name)});
    sampled = sampled || s.sampled;
  }
  if (rows.empty()) return;
  work.shown.page.heading("Data sets");
  add_table_without_empty_columns(
      work.shown.page,
      {"name", "shape", "type", "range", "mean", "deviation", "not finite", "unit", "meaning", "attributes"},
      rows);
  if (sampled)
    work.shown.page.paragraph(
        work.shown.samples ? "Ranges, means and histograms of what must be decoded are those of about a "
                             "thousand samples at most, spread evenly over all."
                           : "Ranges, means and histograms of data sets of more than four million values are "
                             "those of blocks spread evenly over them.");
}

// "name = value" in lines; an object of JSON, as generators store their settings, a line for each entry.
void add_lines(const std::string& name, const nlohmann::json& value, std::string& lines) {
  if (value.is_object())
    for (const auto& [key, entry] : value.items()) add_lines(name + "." + key, entry, lines);
  else
    lines += name + " = " + (value.is_string() ? value.get<std::string>() : value.dump()) + "\n";
}

void add_file_attributes(Work& work) {
  std::string lines;
  for (const auto& [name, attribute] : work.file.attributes("")) {
    const std::string text = to_text(attribute);
    const auto parsed = parse_json(text);
    add_lines(name, parsed.is_object() ? parsed : nlohmann::json(text), lines);
  }
  if (lines.empty()) return;
  work.shown.page.heading("Attributes of the file").preformatted(lines);
}

void add_pictures(Work& work) {
  std::optional<PeakMarks> marks;
  if (!attempt(work, [&] { marks.emplace(work.file, work.infos); })) marks.emplace(work.file, Infos());
  for (const ShownDataSet& set : work.shown.data_sets) {
    const auto layout = layout_of(work, set.info);
    if (!layout) continue;
    work.shown.page.heading(set.info.name);
    if (!set.meaning.empty()) work.shown.page.paragraph(set.meaning);
    work.shown.page.begin_row().begin_column();
    attempt(work, [&] {
      const PictureGroup group = draw_pictures(work.file, set.info, *layout, set.statistics, set.unit, *marks,
                                               work.options.pictures);
      if (!group.remark.empty()) work.shown.page.paragraph(group.remark);
      work.shown.page.pictures(group.pictures);
    });
    work.shown.page.end_column();
    add_histogram(work.shown.page, set);
    work.shown.page.end_row();
  }
}

// Tables by their number of rows, which is what tells which belong together.
void add_tables(Work& work) {
  std::map<std::int64_t, std::vector<const ShownDataSet*>> by_rows;
  for (const ShownDataSet& set : work.shown.data_sets)
    if (is_table(set.info) && !layout_of(work, set.info) && !work.texts.contains(set.info.name))
      by_rows[set.info.shape[0]].push_back(&set);
  for (const auto& [rows, tables] : by_rows) {
    if (rows == 0) continue;
    work.shown.page.heading(
        fmt::format("Tables of {} row{}", format_count(static_cast<double>(rows)), rows == 1 ? "" : "s"));
    attempt(work, [&] { add_first_rows(work.shown.page, work.file, tables); });
    work.shown.page.begin_row();
    for (const ShownDataSet* table : tables) add_histogram(work.shown.page, *table);
    if (tables.size() == 1) add_curve(work.shown.page, *tables.front());
    work.shown.page.end_row();
  }
}

void add_the_rest(Work& work) {
  for (const ShownDataSet& set : work.shown.data_sets) {
    const bool text = work.texts.contains(set.info.name);
    const bool drawn = !text && (is_table(set.info) || layout_of(work, set.info));
    if (drawn || set.info.shape.element_count() == 0) continue;
    if (set.info.type && set.statistics.values.size() < 3) continue;  // the overview shows it
    if (!set.info.type && set.info.type_name != "string") continue;
    work.shown.page.heading(set.info.name);
    if (!set.meaning.empty()) work.shown.page.paragraph(set.meaning);
    if (text)
      attempt(work, [&] { add_padded_text(work.shown.page, work.file, set.info); });
    else if (set.info.type)
      add_histogram(work.shown.page, set);
    else
      attempt(work, [&] { add_strings(work.shown.page, work.file, set.info); });
  }
}

void add_failures(Work& work) {
  if (work.shown.failures.empty()) return;
  work.shown.page.heading("What could not be read");
  for (const Error& error : work.shown.failures) work.shown.page.paragraph(error.what());
}

// Classes with their samples.
void add_sample_facts(Work& work) {
  if (!work.shown.samples) return;
  const SampleFacts& facts = *work.shown.samples;
  if (facts.classes.empty()) return;
  std::vector<std::vector<std::string>> rows;
  for (const ClassCount& each : facts.classes) {
    rows.push_back({std::to_string(rows.size()), each.name, format_count(static_cast<double>(each.samples))});
    if (facts.training >= 0) {
      rows.back().push_back(format_count(static_cast<double>(each.training)));
      rows.back().push_back(format_count(static_cast<double>(each.samples - each.training)));
    }
  }
  std::vector<std::string> header = {"label", "class", "samples"};
  if (facts.training >= 0) header.insert(header.end(), {"to train", "to validate"});
  work.shown.page.heading("Classes").table(header, rows);
}

std::string about(const std::filesystem::path& path, const ArrayFile& file, std::size_t data_sets) {
  if (file.sample_facts())
    return fmt::format("{}, {} array{} a sample", path.string(), data_sets, data_sets == 1 ? "" : "s");
  std::error_code ignored;
  const auto size = std::filesystem::file_size(path, ignored);
  return fmt::format("{}, {}, {} data set{}", path.string(), format_bytes(static_cast<double>(size)),
                     data_sets, data_sets == 1 ? "" : "s");
}

}  // namespace

std::string range_text(const ShownDataSet& data_set) {
  const Statistics& s = data_set.statistics;
  if (s.values.empty()) return "";
  const double low = s.low + 0.0, high = s.high + 0.0;  // no minus zero
  return low == high ? fmt::format("{:.6g}", low) : fmt::format("{:.6g} to {:.6g}", low, high);
}

Shown show_file(const std::filesystem::path& path, const ShowOptions& options) {
  // A model of Keras in HDF5 is a file of arrays as others are.
  if (data::form_of(path) != data::FileForm::hdf5 && !is_shown_as_model(path))
    data::refuse_foreign_model(path);
  const auto file =
      options.source ? sample_arrays_of(options.source) : open_array_file(path, options.request);
  Work work{*file, options, file->data_sets(), {{}, {}, page::Page(path.filename().string())}, {}};
  const Infos infos = chosen(work.infos, options.only, path);
  work.shown.summary = file->summary();
  if (file->sample_facts()) work.shown.samples = *file->sample_facts();
  look_at_data_sets(work, infos);
  work.shown.page.paragraph(about(path, *file, infos.size()));
  if (!work.shown.summary.empty()) work.shown.page.paragraph(work.shown.summary);
  add_sample_facts(work);
  if (is_shown_as_model(path)) add_model(work.shown.page, path);
  add_file_attributes(work);
  add_overview(work);
  add_pictures(work);
  add_tables(work);
  add_the_rest(work);
  add_failures(work);
  return std::move(work.shown);
}

}  // namespace superstep::show
