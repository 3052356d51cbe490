#include "superstep/study/form.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/machine/toml/toml_keys.h"
#include "superstep/run/model.h"
#include "superstep/run/train/until.h"
#include "superstep/study/built_in.h"
#include "superstep/study/known.h"

namespace superstep::study {
namespace {

using machine::Keys;

const std::vector<std::string> ways{"bench", "train", "scale", "all-reduce", "nothing", "quality"};

constexpr std::array all_columns{Column{"workload"},
                                 Column{"mode"},
                                 Column{"machine"},
                                 Column{"units", true},
                                 Column{"framework"},
                                 Column{"precision"},
                                 Column{"micro_batch", true},
                                 Column{"global_batch", true},
                                 Column{"replicas", true},
                                 Column{"pipeline_stages", true},
                                 Column{"grad_accum", true},
                                 Column{"loaders", true},
                                 Column{"sample_us", true},
                                 Column{"tokens_in", true},
                                 Column{"tokens_out", true},
                                 Column{"metric"},
                                 Column{"unit"},
                                 Column{"note"}};

bool is_count(const std::string& word) {
  return !word.empty() && word.size() <= 12 && word != "0" &&
         std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

void require_known(const Keys& keys, const Column& column, const std::string& word) {
  if (column.counts && !is_count(word)) keys.refuse(column.name, "must be a whole number, 1 or more");
  if (column.name == "workload" && !is_workload(word))
    keys.refuse(column.name, fmt::format("'{}' is no workload", word),
                unknown_name_hint(word, names_of_workloads()));
  const std::vector<std::string> known = known_values(column.name);
  if (!known.empty() && std::ranges::find(known, word) == known.end())
    keys.refuse(column.name, fmt::format("'{}' is none of {}", word, join(known, ", ")),
                unknown_name_hint(word, known));
}

constexpr std::size_t most_cells = 400;  // of a grid: a table that people read, and hours that nobody meant

Grid grid_of(Keys keys) {
  Grid grid{.lists = {}, .where = keys.where()};
  std::size_t cells = 1;
  for (const Column& column : all_columns) {
    std::vector<std::string> words = keys.list(column.name);
    for (const std::string& word : words) require_known(keys, column, word);
    if (words.empty()) continue;
    cells *= words.size();
    if (cells > most_cells) keys.refuse(column.name, fmt::format("makes more than {} cells", most_cells));
    grid.lists.emplace_back(column.name, std::move(words));
  }
  for (const char* needed : {"workload", "mode", "machine", "metric", "unit"})
    if (!keys.has(needed)) keys.refuse(needed, "is missing");
  keys.refuse_others();
  return grid;
}

std::vector<std::string> workloads_of(Keys& keys) {
  std::vector<std::string> names = keys.list("workload");
  for (const std::string& name : names) require_known(keys, {"workload"}, name);
  return names;
}

void require_gradient(Keys& keys, const Measure& measure) {
  if (measure.way != Way::train) keys.refuse("gradient", "is of trainings: with = \"train\"");
  try {
    const run::Model any({.workload = "mlp", .gradient = measure.gradient});
  } catch (const Error& error) {
    keys.refuse("gradient", error.what());
  }
}

// What `superstep study quality` is asked beside a model and its batches.
void take_quality(Keys& keys, Measure& measure) {
  measure.until = keys.text("until", measure.way == Way::quality);
  measure.rate_rule = keys.one_of("rate_rule", {"none", "sqrt", "linear"});
  measure.epochs = keys.number("epochs", 0);
  if (measure.way != Way::quality) {
    for (const char* key : {"until", "rate_rule", "epochs"})
      if (keys.has(key)) keys.refuse(key, "is of trainings to a quality: with = \"quality\"");
    return;
  }
  for (const char* key : {"samples", "epochs"})
    if (!keys.has(key)) keys.refuse(key, "is missing: trainings to a quality have so many");
  if (measure.workloads.size() != 1)
    keys.refuse("workload", "must name the one model that is trained to a quality");
  try {
    const run::Until until = run::parse_until(measure.until);
    const run::Model model({.workload = measure.workloads.front(), .model_options = measure.options});
    run::check_until(until, model.workload());
  } catch (const Error& error) {
    keys.refuse("until", error.what());
  }
}

Price price_of(Keys keys) {
  Price price{.machine = keys.one_of("machine", names_of_machines(), true),
              .source = keys.text("source", true),
              .dollars = keys.number("dollars", 0)};
  if (price.dollars <= 0) keys.refuse("dollars", "must be a number above zero, of one unit");
  keys.refuse_others();
  return price;
}

// A throughput for a price is of machines that have one.
void require_prices(Keys& keys, const Study& study) {
  for (const Grid& grid : study.grids) {
    std::vector<std::string> machines;
    bool priced = false;
    for (const auto& [column, words] : grid.lists) {
      if (column == "machine") machines = words;
      priced |= column == "metric" && std::ranges::find(words, "throughput_per_price") != words.end();
    }
    for (const std::string& machine : machines)
      if (priced && std::ranges::find(study.prices, machine, &Price::machine) == study.prices.end())
        keys.refuse("price",
                    fmt::format("is missing: [[price]] of {} is what {} needs", machine, grid.where));
  }
}

Measure measure_of(Keys keys) {
  Measure measure;
  const std::string way = keys.one_of("with", ways, true);
  measure.way = static_cast<Way>(std::ranges::find(ways, way) - ways.begin());
  measure.workloads = workloads_of(keys);
  measure.notes = keys.list("note");
  measure.why = keys.text("why", measure.way == Way::nothing);
  measure.workload = keys.text("instead");
  if (!measure.workload.empty() && !is_workload(measure.workload))
    keys.refuse("instead", fmt::format("'{}' is no workload", measure.workload),
                unknown_name_hint(measure.workload, names_of_workloads()));
  measure.precision = keys.one_of("precision", {"f32", "bf16"});
  measure.quantity = keys.text("quantity");
  measure.batch = keys.count("batch");
  measure.most_batch = keys.count("most_batch");
  measure.steps = keys.count("steps");
  measure.samples = keys.count("samples");
  measure.seeds = static_cast<int>(std::min<std::int64_t>(keys.count("seeds", 1), 1000));
  measure.factor = keys.number("factor", 1);
  measure.least = keys.number("least", 1);
  measure.options = keys.list("options");
  for (const std::string& option : measure.options)
    if (option.find('=') == std::string::npos) keys.refuse("options", "must be a list of name=value");
  measure.gradient = keys.text("gradient");
  if (!measure.gradient.empty()) require_gradient(keys, measure);
  if (measure.way == Way::train && measure.steps == 0)
    keys.refuse("steps", "is missing: a training has so many");
  take_quality(keys, measure);
  keys.refuse_others();
  return measure;
}

Execution execution_of(Keys keys) {
  Execution execution;
  execution.workloads = workloads_of(keys);
  execution.batch = keys.count("batch");
  execution.most_batch = keys.count("most_batch");
  execution.least = keys.number("least", 1);
  keys.refuse_others();
  return execution;
}

Drawing drawing_of(Keys keys) {
  std::vector<std::string> names;
  for (const Column& column : all_columns) names.emplace_back(column.name);
  Drawing drawing{.metric = keys.one_of("metric", known_values("metric")),
                  .x = keys.one_of("x", names),
                  .series = keys.one_of("series", names),
                  .log_x = keys.flag("log_x"),
                  .log_y = keys.flag("log_y")};
  const auto x = std::ranges::find(all_columns, drawing.x, &Column::name);
  if (!drawing.x.empty() && !x->counts && drawing.x != "workload")
    keys.refuse("x",
                "must be a column of numbers, or workload, of which square products (gemm_1024) have one");
  keys.refuse_others();
  return drawing;
}

std::string name_in(const std::string& where) { return std::filesystem::path(where).stem().string(); }

}  // namespace

std::span<const Column> columns() { return all_columns; }

const char* name_of(Way way) {
  return way == Way::engine ? "engine" : ways[static_cast<std::size_t>(way)].c_str();
}

Study parse_study(std::string_view text, const std::string& where) {
  const toml::table table = machine::users_toml(text, where);
  Keys keys(table, where, "a study");
  Study study{.name = name_in(where),
              .title = keys.text("title", true),
              .paper = keys.text("paper"),
              .place = keys.text("place"),
              .shows = keys.text("shows", true),
              .unpublished = keys.text("unpublished"),
              .minutes = keys.number("minutes", 1),
              .published = keys.list("published"),
              .rows = keys.text("rows")};
  for (const toml::table* grid : keys.tables("cells"))
    study.grids.push_back(grid_of(Keys(*grid, where, "[[cells]]")));
  for (const toml::table* measure : keys.tables("measure"))
    study.measures.push_back(measure_of(Keys(*measure, where, "[[measure]]")));
  for (const toml::table* execution : keys.tables("execute"))
    study.executions.push_back(execution_of(Keys(*execution, where, "[[execute]]")));
  for (const toml::table* price : keys.tables("price"))
    study.prices.push_back(price_of(Keys(*price, where, "[[price]]")));
  require_prices(keys, study);
  for (const toml::table* drawing : keys.tables("plot"))
    study.drawing = drawing_of(Keys(*drawing, where, "[plot]"));
  keys.refuse_others();
  if (study.published.empty() && study.rows.empty() && study.grids.empty())
    keys.refuse("cells", "is missing: a study has published rows or cells");
  if (!study.rows.empty() && study.rows.is_relative())
    study.rows = std::filesystem::path(where).parent_path() / study.rows;
  return study;
}

const std::vector<Study>& studies() {
  static const std::vector<Study> all = [] {
    std::vector<Study> read;
    for (const BuiltIn& file : study_files())
      read.push_back(parse_study(file.text, fmt::format("studies/{}.toml", file.id)));
    return read;
  }();
  return all;
}

std::string_view text_of(const std::string& name) {
  std::vector<std::string> names;
  for (const BuiltIn& file : study_files()) {
    if (file.id == name) return file.text;
    names.emplace_back(file.id);
  }
  throw Error(ErrorCode::invalid_argument, "there is no such study", name, unknown_name_hint(name, names));
}

Study find_study(const std::string& name_or_file) {
  if (name_or_file.ends_with(".toml")) return parse_study(read_text_file(name_or_file), name_or_file);
  return parse_study(text_of(name_or_file), fmt::format("studies/{}.toml", name_or_file));
}

}  // namespace superstep::study
