// superstep onnx check FILE, superstep onnx test DIR: what of an ONNX file is supported, and the test suite
// of ONNX's backends.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/cli/shared/onnx_export.h"
#include "superstep/cli/shared/onnx_text.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/lab/onnx_suite/suite.h"
#include "superstep/onnx/model.h"
#include "superstep/run/user/prospects.h"
#include "superstep/target/target.h"

namespace superstep::cli {
namespace {

// --- check

struct CheckArguments {
  std::string file;
  std::vector<std::string> shapes, symbols, bounds, train, freeze;
  bool metadata = false;
};

std::int64_t parse_extent(const std::string& text, const std::string& option) {
  std::size_t used = 0;
  std::int64_t value = -1;
  try {
    value = std::stoll(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used != text.size() || text.empty() || value < -1)
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not an extent", text), option);
  return value;
}

std::pair<std::string, std::string> name_and_value(const std::string& text, const std::string& option) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not NAME=VALUE", text), option);
  return {text.substr(0, equals), text.substr(equals + 1)};
}

onnx::ImportOptions import_options(const CheckArguments& arguments) {
  onnx::ImportOptions options{.parameters_as_state = true,
                              .choice = {.train = arguments.train, .freeze = arguments.freeze}};
  for (const std::string& text : arguments.shapes) {
    const auto [name, value] = name_and_value(text, "--shape");
    std::vector<std::int64_t>& extents = options.shapes[name];
    for (const std::string& extent : split(value, ','))
      if (!value.empty()) extents.push_back(parse_extent(extent, "--shape"));
  }
  for (const std::string& text : arguments.bounds) options.bounds.push_back(run::bound_from(text));
  for (const std::string& text : arguments.symbols) {
    const auto [name, value] = name_and_value(text, "--symbol");
    options.symbols[name] = parse_extent(value, "--symbol");
  }
  return options;
}

nlohmann::json to_json(const onnx::Port& port) {
  nlohmann::json extents = nlohmann::json::array();
  for (const onnx::Extent& extent : port.extents)
    if (extent.value >= 0)
      extents.push_back(extent.value);
    else
      extents.push_back(onnx::to_string(extent));
  return {{"name", port.name}, {"type", port.type}, {"extents", extents}, {"doc", port.doc}};
}

nlohmann::json to_json(const std::vector<onnx::Port>& ports) {
  nlohmann::json array = nlohmann::json::array();
  for (const onnx::Port& port : ports) array.push_back(to_json(port));
  return array;
}

nlohmann::json check_json(const onnx::Model& model, const onnx::Findings& findings) {
  nlohmann::json operators = nlohmann::json::object(), unsupported = nlohmann::json::array();
  for (const onnx::OperatorCount& count : findings.operators) operators[count.op] = count.count;
  for (const onnx::Finding& finding : findings.unsupported)
    unsupported.push_back({{"where", finding.where},
                           {"operator", finding.op},
                           {"opset", finding.opset},
                           {"reason", finding.reason}});
  return {{"file", model.path()},
          {"producer", model.producer()},
          {"ir_version", model.ir_version()},
          {"opsets", model.opsets()},
          {"inputs", to_json(model.inputs())},
          {"outputs", to_json(model.outputs())},
          {"metadata", model.metadata()},
          {"operators", operators},
          {"unsupported", unsupported}};
}

// The way of the other commands: as a model that is served, trained and written.
run::UserModel as_user_model(const CheckArguments& arguments) {
  run::UserModelSettings settings{.file = arguments.file,
                                  .shapes = arguments.shapes,
                                  .bounds = arguments.bounds,
                                  .loss = {},
                                  .choice = {.train = arguments.train, .freeze = arguments.freeze},
                                  .data = {}};
  settings.shapes.insert(settings.shapes.end(), arguments.symbols.begin(), arguments.symbols.end());
  return run::UserModel(std::move(settings));
}

nlohmann::json to_json(const run::UserModel& model, const run::Prospects& prospects) {
  nlohmann::json initializers = nlohmann::json::object();
  for (const onnx::Initializer& initializer : model.initializers())
    initializers[initializer.name] = initializer.kind == onnx::Initializer::Kind::trained      ? "trained"
                                     : initializer.kind == onnx::Initializer::Kind::statistics ? "statistics"
                                                                                               : "kept";
  return {{"batch", model.fixed_batch()},         {"one_sample_a_call", model.one_a_call()},
          {"initializers", initializers},         {"no_serving", prospects.no_serving},
          {"no_training", prospects.no_training}, {"no_open_batch", prospects.no_open_batch},
          {"no_file", prospects.no_file}};
}

std::string batch_text(const run::UserModel& model) {
  if (model.one_a_call()) return "one sample a call";
  if (model.fixed_batch() == 0) return "any batch";
  return fmt::format("batches of {}{}{}", model.fixed_batch(), model.why_fixed().empty() ? "" : ": ",
                     model.why_fixed());
}

void print_prospects(const run::UserModel& model, const run::Prospects& prospects) {
  fmt::print("  infer: {}\n",
             prospects.no_serving.empty() ? batch_text(model) : "no: " + prospects.no_serving);
  fmt::print("  {}\n", onnx::to_string(model.initializers()));
  fmt::print("  train: {}\n", prospects.no_training.empty() ? "yes" : "no: " + prospects.no_training);
  const bool fixed = model.fixed_batch() > 0 || !prospects.no_open_batch.empty();
  fmt::print("  export: {}\n", !prospects.no_file.empty() ? "no: " + prospects.no_file
                               : !fixed                   ? "any batch"
                               : model.fixed_batch() > 0
                                   ? batch_text(model)
                                   : "a fixed batch (--batch): " + prospects.no_open_batch);
}

// What is found of a file that can be imported; what is in the way of serving it is a finding, too.
nlohmann::json prospects_json(const CheckArguments& arguments, onnx::Findings& findings) {
  try {
    const run::UserModel model = as_user_model(arguments);
    const run::Prospects prospects = run::prospects_of(model);
    if (!common().quiet) print_prospects(model, prospects);
    return to_json(model, prospects);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument) throw;
    findings.unsupported.push_back({.where = "model", .op = {}, .opset = 0, .reason = error.what()});
    if (!common().quiet) fmt::print("  cannot be used: {}\n", error.what());
  }
  return nlohmann::json::object();
}

void check(const CheckArguments& arguments) {
  const onnx::Model model = onnx::Model::open(arguments.file);
  const onnx::ImportOptions options = import_options(arguments);
  onnx::Findings findings = model.check(options);
  if (!common().quiet) {
    print_model(model, arguments.metadata);
    print_open_extents(model, options);
    print_findings(findings);
  }
  nlohmann::json prospects = nlohmann::json::object();
  if (findings.importable()) prospects = prospects_json(arguments, findings);
  nlohmann::json config = check_json(model, findings);
  config["use"] = std::move(prospects);
  write_result(
      command_result("onnx check", arguments.file, std::move(config),
                     {{.name = "importable", .value = findings.importable() ? 1.0 : 0.0, .unit = ""},
                      {.name = "parameters", .value = static_cast<double>(findings.parameters), .unit = ""},
                      {.name = "nodes", .value = static_cast<double>(findings.nodes), .unit = ""},
                      {.name = "flops", .value = findings.flops, .unit = "FLOP"},
                      {.name = "bytes", .value = findings.bytes, .unit = "B"}}));
  if (!findings.importable())
    throw Error(ErrorCode::unsupported,
                fmt::format("cannot be imported: {} findings", findings.unsupported.size()), arguments.file);
}

// --- test

struct TestArguments {
  std::string folder, on = "reference", filter;
  bool verbose = false;
  lab::CaseOptions tolerance;
};

std::vector<std::string> target_names(const std::string& on) {
  if (on == "all") return {"reference", "cpu"};
  target::find_target(on);
  return {on};
}

std::vector<std::filesystem::path> chosen_cases(const TestArguments& arguments) {
  std::vector<std::filesystem::path> cases = lab::find_cases(arguments.folder);
  std::erase_if(cases, [&](const auto& path) {
    return path.filename().string().find(arguments.filter) == std::string::npos;
  });
  if (cases.empty()) throw Error(ErrorCode::not_found, "no case has this in its name", arguments.filter);
  return cases;
}

void print_case(const lab::CaseResult& result) {
  const char* note = result.types_only ? "types and shapes alone: random" : "";
  fmt::print("{:<7} {:<9} {}{}{}\n", lab::name_of(result.outcome), result.target, result.name,
             result.reason.empty() && !*note ? "" : ": ", result.reason.empty() ? note : result.reason);
}

void print_summary(const std::string& target, const std::vector<lab::CaseResult>& results) {
  const lab::SuiteCounts counts = lab::count(results);
  fmt::print("{}: {} passed, {} failed, {} skipped: {:.1f} % of the cases on numbers\n", target,
             counts.passed, counts.failed, counts.skipped, 100 * counts.share());
  fmt::print(
      "  {} compared by types and shapes alone (random), {} computed whole at import (a shape needs them)\n",
      counts.types_only, counts.folded_whole);
}

nlohmann::json cases_json(const std::vector<lab::CaseResult>& results) {
  nlohmann::json array = nlohmann::json::array();
  for (const lab::CaseResult& result : results)
    array.push_back({{"name", result.name},
                     {"target", result.target},
                     {"outcome", lab::name_of(result.outcome)},
                     {"reason", result.reason},
                     {"types_only", result.types_only}});
  return array;
}

std::vector<lab::CaseResult> run_on(const std::string& target, const TestArguments& arguments,
                                    const std::vector<std::filesystem::path>& cases) {
  lab::CaseOptions options = arguments.tolerance;
  options.target = target;
  Progress progress(target, static_cast<double>(cases.size()), "cases");
  double finished = 0;
  return lab::run_cases(cases, options, thread_count(), [&](const lab::CaseResult& result) {
    if (arguments.verbose) print_case(result);
    progress.update(++finished, result.name);
  });
}

void test(const TestArguments& arguments) {
  const std::vector<std::filesystem::path> cases = chosen_cases(arguments);
  std::vector<lab::CaseResult> all;
  for (const std::string& target : target_names(arguments.on)) {
    const std::vector<lab::CaseResult> results = run_on(target, arguments, cases);
    if (!common().quiet) print_summary(target, results);
    all.insert(all.end(), results.begin(), results.end());
  }
  if (!common().quiet) {
    if (const TextTable skips = lab::skip_table(all); !skips.empty()) fmt::print("\n{}", skips.to_string());
    if (const TextTable failures = lab::failure_table(all); !failures.empty())
      fmt::print("\n{}", failures.to_string());
  }
  const lab::SuiteCounts counts = lab::count(all);
  write_result(
      command_result("onnx test", arguments.folder,
                     {{"on", arguments.on},
                      {"relative", arguments.tolerance.relative},
                      {"absolute", arguments.tolerance.absolute},
                      {"cases", cases_json(all)}},
                     {{.name = "passed", .value = static_cast<double>(counts.passed), .unit = ""},
                      {.name = "failed", .value = static_cast<double>(counts.failed), .unit = ""},
                      {.name = "skipped", .value = static_cast<double>(counts.skipped), .unit = ""}}));
  if (counts.failed > 0)
    throw Error(ErrorCode::unsupported, fmt::format("{} cases failed", counts.failed), arguments.folder);
}

void declare_check(CLI::App& app) {
  const auto arguments = std::make_shared<CheckArguments>();
  CLI::App* command =
      app.add_subcommand("check", "what a file holds, and everything in it that is not supported");
  command->add_option("file", arguments->file, "an ONNX file")->required();
  add_bound_option(*command, arguments->bounds);
  add_operators_option(*command);
  command
      ->add_option("--shape", arguments->shapes,
                   "extents of an input, as in x=1,3,224,224; -1: as the file says")
      ->type_name("NAME=EXTENTS")
      ->allow_extra_args(false);
  command->add_option("--symbol", arguments->symbols, "a symbolic extent, as in batch=4 (default: 1)")
      ->type_name("NAME=N")
      ->allow_extra_args(false);
  command
      ->add_option("--train", arguments->train,
                   "as in superstep train: initializers to train beside the weights")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_option("--freeze", arguments->freeze, "as in superstep train: initializers not to train")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_flag("--metadata", arguments->metadata, "print the file's metadata too");
  command->fallthrough();
  command->callback([arguments] { check(*arguments); });
}

void declare_test(CLI::App& app) {
  const auto arguments = std::make_shared<TestArguments>();
  CLI::App* command = app.add_subcommand("test", "run cases of ONNX's backend test suite");
  command->add_option("folder", arguments->folder, "a case, or a folder with cases at any depth")->required();
  command->add_option("--on", arguments->on, "a target, or all")->capture_default_str();
  command->add_option("--filter", arguments->filter, "cases with this in their name")->type_name("TEXT");
  command->add_option("--relative", arguments->tolerance.relative, "tolerance relative to what is expected")
      ->type_name("X")
      ->check(not_negative())
      ->capture_default_str();
  command->add_option("--absolute", arguments->tolerance.absolute, "tolerance beside that")
      ->type_name("X")
      ->check(not_negative())
      ->capture_default_str();
  command->add_flag("--verbose", arguments->verbose, "a line for each case");
  command->fallthrough();
  command->callback([arguments] { test(*arguments); });
}

constexpr const char* examples =
    "Examples:\n"
    "  superstep onnx check model.onnx --shape x=1,3,224,224\n"
    "  superstep onnx test /usr/include/onnx/backend/test/data --on all\n"
    "A result y is right when |y - expected| <= absolute + relative |expected|; ONNX's own runner has 1e-7\n"
    "and 1e-3.";

}  // namespace

void declare_onnx(CLI::App& command) {
  command.require_subcommand(1);
  command.footer(examples);
  declare_check(command);
  declare_test(command);
  CLI::App* exporter =
      command.add_subcommand("export", "write a model, or its training step, as an ONNX file");
  exporter->fallthrough();
  declare_onnx_export(*exporter);
}

}  // namespace superstep::cli
