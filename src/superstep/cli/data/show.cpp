// superstep show: a page of what is in a file of arrays, in samples of any form, or in a model file.
#include "superstep/show/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/printable.h"
#include "superstep/base/progress.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/data/open_samples.h"
#include "superstep/cli/data/wanted_fields.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/cli/shared/onnx_text.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/show/model_file.h"

namespace superstep::cli {
namespace {

struct Arguments {
  std::string file, out;
  SampleOptions samples;
  show::ShowOptions options;
};

void print_model_file(const std::string& file) {
  const onnx::Model model = onnx::Model::open(file);
  print_model(model, false);
  print_open_extents(model, {});
  print_findings(model.check());
}

void print_table(const show::Shown& shown) {
  TextTable table({"data set", "shape", "type", "range", "unit", "meaning"});
  for (const show::ShownDataSet& set : shown.data_sets)
    table.add_row({printable(set.info.name), to_string(set.info.shape), set.info.type_name,
                   show::range_text(set), set.unit, set.meaning});
  if (!table.empty()) fmt::print("{}", table.to_string());
}

nlohmann::json describe(const show::ShownDataSet& set) {
  const show::Statistics& s = set.statistics;
  nlohmann::json json = {{"name", set.info.name},      {"shape", set.info.shape.extents()},
                         {"type", set.info.type_name}, {"unit", set.unit},
                         {"meaning", set.meaning},     {"looked_at", s.looked_at},
                         {"not_finite", s.not_finite}};
  if (!s.values.empty())
    json.update({{"low", s.low}, {"high", s.high}, {"mean", s.mean}, {"deviation", s.deviation}});
  return json;
}

void print_samples(const show::Shown& shown) {
  if (!shown.samples) return;
  constexpr std::size_t most_classes = 40;  // on a terminal: chosen
  const show::SampleFacts& facts = *shown.samples;
  TextTable table({"label", "class", "samples"});
  for (std::size_t i = 0; i < std::min(facts.classes.size(), most_classes); ++i)
    table.add_row({std::to_string(i), printable(facts.classes[i].name),
                   format_count(static_cast<double>(facts.classes[i].samples))});
  if (!table.empty()) fmt::print("{}", table.to_string());
  if (facts.classes.size() > most_classes)
    fmt::print("and {} classes more: they are on the page\n", facts.classes.size() - most_classes);
}

void print_wanted(const Arguments& arguments, const std::vector<WantedField>& fields,
                  const show::Shown& shown) {
  if (fields.empty()) return;
  TextTable table({"field", "a sample", "here", "meaning"});
  for (const WantedField& field : fields)
    table.add_row({field.array.name,
                   fmt::format("{} {}", superstep::name_of(field.array.type), to_string(field.array.row)),
                   verdict_on(field, shown), field.meaning});
  fmt::print("data of {}, of which a model needs its inputs, and a training its targets:\n{}",
             arguments.samples.workload, table.to_string());
}

nlohmann::json describe(const show::SampleFacts& facts) {
  nlohmann::json json = {{"form", facts.form},       {"files", facts.files},
                         {"samples", facts.samples}, {"sample_bytes", facts.sample_bytes},
                         {"not_read", facts.others}, {"notes", facts.notes}};
  if (facts.training >= 0) json["training"] = facts.training;
  for (const show::ClassCount& each : facts.classes)
    json["classes"].push_back({{"name", each.name}, {"samples", each.samples}});
  return json;
}

void write_json(const Arguments& arguments, const show::Shown& shown) {
  nlohmann::json sets = nlohmann::json::array();
  for (const show::ShownDataSet& set : shown.data_sets) sets.push_back(describe(set));
  record::Result result{.command = "show"};
  result.details = {{"file", arguments.file}, {"data_sets", std::move(sets)}};
  if (shown.samples) result.details["source"] = describe(*shown.samples);
  result.add("passed", static_cast<double>(shown.data_sets.size()), "");
  result.add("failed", static_cast<double>(shown.failures.size()), "");
  write_result(std::move(result));
}

// FILE.html in the folder where one is, or FILE-2.html and so on: what is there already stays.
std::string free_page_name(const std::filesystem::path& file) {
  std::string stem =
      (file.has_stem() ? file.stem() : std::filesystem::absolute(file).parent_path().stem()).string();
  // Of a pattern of names.
  std::ranges::replace_if(
      stem, [](char c) { return std::string_view("*?[]{}@,").contains(c); }, '_');
  std::string name = stem + ".html";
  std::error_code none;
  for (int i = 2; std::filesystem::exists(name, none); ++i) name = fmt::format("{}-{}.html", stem, i);
  return name;
}

void run(Arguments arguments) {
  if (arguments.out.empty()) {
    arguments.out = free_page_name(arguments.file);
    require_writable(arguments.out);
  }
  std::vector<WantedField> wanted;
  if (!arguments.samples.workload.empty()) wanted = wanted_fields(arguments.samples.workload);
  arguments.options.request = request_of(arguments.samples);
  if (!arguments.samples.tokenizer.empty())
    arguments.options.source = open_samples(arguments.file, arguments.samples);
  const show::Shown shown = show::show_file(arguments.file, arguments.options);
  shown.page.write(arguments.out);
  if (!common().json.empty()) write_json(arguments, shown);
  if (!is_quiet()) {
    if (show::is_shown_as_model(arguments.file)) print_model_file(arguments.file);
    if (!shown.summary.empty()) fmt::print("{}\n", printable_lines(shown.summary));
    print_table(shown);
    print_samples(shown);
    print_wanted(arguments, wanted, shown);
    fmt::print("written: {}\n", arguments.out);
  }
  if (shown.failures.empty()) return;
  const Error& first = shown.failures.front();
  throw Error(first.code(), first.message(), first.where(),
              fmt::format("{} could not be read; the page shows the others",
                          shown.failures.size() == 1 ? "this data set"
                                                     : std::to_string(shown.failures.size()) + " data sets"));
}

}  // namespace

void declare_show(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  command
      .add_option(
          "FILE", arguments->file,
          "samples (files, folders, patterns), weights (safetensors, PyTorch, GGUF), or an ONNX model")
      ->required();
  command
      .add_option("--out", arguments->out, "the page to write (default: FILE.html here, never over another)")
      ->type_name("PAGE.html");
  command.add_option("--data-set", arguments->options.only, "draw only this data set (may be repeated)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command.add_option("--pictures", arguments->options.pictures, "pictures a data set, about")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_sample_options(command, arguments->samples);
  add_operators_option(command);
  command.callback([arguments, &command] {
    refuse_given(command,
                 show::is_shown_as_samples(arguments->file)
                     ? ""
                     : "is of samples, and this is a file of arrays: what cannot be read is told",
                 {"--skip-broken"});
    refuse_given(command,
                 show::is_shown_as_model(arguments->file) ? "is of arrays, and the file is a model" : "",
                 {"--data-set", "--pictures", "--for", "--tokenizer"});
    run(*arguments);
  });
}

}  // namespace superstep::cli
