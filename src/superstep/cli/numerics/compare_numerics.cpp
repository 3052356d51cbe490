// superstep compare-numerics: a model in two arithmetics, and which node parts them.
#include "superstep/lab/numerics/compare_numerics.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/file/source/paths.h"

namespace superstep::cli {
namespace {

struct Arguments {
  lab::NumericsQuestion question;
  std::vector<std::string> data;
  std::string weights, page;
  bool all_nodes = false;
};

constexpr const char* examples =
    "Examples:\n"
    "  superstep compare-numerics braggnn --with gc200-16.16      which layer suffers from sums in f16\n"
    "  superstep compare-numerics braggnn --of a100-tf32 --with gc200 --train 200 --seeds 3\n"
    "  superstep compare-numerics model.onnx --with groq --page numerics.html\n"
    "  superstep compare-numerics braggnn --weights run/ --with 'f32;conv2*=e4m3'\n"
    "superstep list numerics has the names, and what of a machine is published.";

void compare(Arguments& arguments) {
  lab::NumericsQuestion& question = arguments.question;
  question.threads = thread_count();
  question.weights = arguments.weights;
  if (!arguments.data.empty()) question.model.data = data::joined_names(arguments.data);
  if (!question.weights.empty() && question.steps > 0)
    throw Error(ErrorCode::invalid_argument, "trainings begin with initial weights", "--weights",
                "leave --train or --weights out");
  const lab::NumericsComparison found = lab::compare_numerics(question);
  if (!common().json.empty()) write_file_atomically(common().json, lab::to_json(found).dump(2) + "\n");
  if (!arguments.page.empty()) lab::write_page(found, arguments.page);
  if (!common().quiet) fmt::print("{}", lab::to_text(found, arguments.all_nodes));
}

}  // namespace

void declare_compare_numerics(CLI::App& command) {
  const auto a = std::make_shared<Arguments>();
  run::TrainSettings& model = a->question.model;
  command
      .add_option("workload", model.workload,
                  "what to compute: superstep list workloads, or a model file (.onnx)")
      ->required();
  command
      .add_option("--of", a->question.of, "the arithmetic to hold the other against: superstep list numerics")
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option("--with", a->question.with,
                  "the other arithmetic; 'NAME;PATTERN=NAME' has nodes in a third")
      ->type_name("NAME")
      ->required();
  command.add_option("--weights", a->weights, "a training run's folder, or weights that others wrote")
      ->type_name("PATH");
  add_data_option(command, "--data", a->data, "samples: files, folders, patterns (default: generated)");
  add_repeated(command, "--set", model.model_options, "name=value of an option of the model; may be repeated",
               "NAME=VALUE");
  add_shape_option(command, model.shapes);
  add_operators_option(command);
  command.add_option("--batch", a->question.batch, "samples that the nodes are compared on")
      ->type_name("N")
      ->check(positive())
      ->default_str("32");
  command.add_option("--train", a->question.steps, "train in both, in step, for so many steps")
      ->type_name("STEPS")
      ->check(positive());
  command
      .add_option("--seeds", a->question.seeds, "with --train: so many times, with other weights and batches")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--samples", model.samples, "with --train: generate so many samples")
      ->type_name("N")
      ->check(positive());
  command.add_option("--seed", model.seed, "the seed of weights, samples and their order")
      ->capture_default_str();
  command
      .add_option("--page", a->page,
                  "write the network as a page, colored by where the difference comes from")
      ->type_name("FILE");
  command.add_flag("--all-nodes", a->all_nodes, "list nodes that compute nothing, or alike, too");
  command.footer(examples);
  command.callback([a] { compare(*a); });
}

}  // namespace superstep::cli
