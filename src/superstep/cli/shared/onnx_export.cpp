// superstep onnx export WORKLOAD: a model or its training step as an ONNX file.
#include "superstep/cli/shared/onnx_export.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/bytes_at.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/cli/shared/outcome.h"
#include "superstep/run/serve/export.h"

namespace superstep::cli {
namespace {

struct Arguments {
  run::ExportSettings settings;
  std::string weights, out, with;
};

constexpr const char* examples =
    "Examples:\n"
    "  superstep onnx export braggnn --weights run/ --out braggnn.onnx\n"
    "  superstep onnx export braggnn --with train-step --out step.onnx     forward, backward and optimizer\n"
    "  superstep onnx export mine.onnx --with train-step --loss mse --out step.onnx\n"
    "A training step gives the loss and, for every state NAME, its next value as NAME.next: feed these back\n"
    "as the inputs NAME to train in any ONNX runtime. It is of one batch, the workload's own or --batch.";

void export_model(Arguments arguments) {
  arguments.settings.weights = arguments.weights;
  arguments.settings.out = arguments.out;
  arguments.settings.training_step = arguments.with == "train-step";
  run::export_onnx(arguments.settings);
  const double bytes = bytes_at(arguments.out);
  if (!common().quiet) fmt::print("written to {}: {} bytes\n", arguments.out, format_count(bytes));
  write_result(
      command_result("onnx export", arguments.settings.model.workload,
                     {{"out", arguments.out}, {"with", arguments.with}, {"batch", arguments.settings.batch}},
                     {{.name = "file_size", .value = bytes, .unit = "B", .samples = {}}}));
}

}  // namespace

void declare_onnx_export(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  run::TrainSettings& model = arguments->settings.model;
  command.add_option("workload", model.workload, "a workload, or a model file (.onnx)")->required();
  command.add_option("--out", arguments->out, "the file to write")->type_name("FILE")->required();
  command.add_option("--with", arguments->with, "train-step: the whole step instead of the model")
      ->check(CLI::IsMember({"train-step"}))
      ->type_name("WHAT");
  command
      .add_option("--weights", arguments->weights,
                  "the folder of a training run, or weights that others wrote (default: initial weights)")
      ->type_name("PATH");
  command
      .add_option("--batch", arguments->settings.batch,
                  "fix the batch (default: left open; of a training step the workload's own)")
      ->type_name("N")
      ->check(positive());
  command
      .add_option("--opset", arguments->settings.opset, "operator set (default: the smallest that will do)")
      ->type_name("N")
      ->check(CLI::Range(13, 27));
  command
      .add_option(
          "--optimizer", model.optimizer,
          "sgd, adam, adamw, adamax, rmsprop or lamb, with constants: adamw:weight_decay=0.01,beta2=0.95")
      ->type_name("NAME[:NAME=X,...]");
  add_loss_option(command, model.loss);
  add_bound_option(command, model.bounds);
  add_operators_option(command);
  add_shape_option(command, model.shapes);
  add_train_option(command, model.train);
  add_freeze_option(command, model.freeze);
  add_set_option(command, model.model_options);
  command.add_option("--seed", model.seed, "seed of initial weights")
      ->type_name("N")
      ->check(whole_number_from(0))
      ->capture_default_str();
  command.footer(examples);
  command.callback([arguments, &command] {
    refuse_given(command, arguments->with.empty() ? "is of a training step: --with train-step" : "",
                 {"--optimizer", "--loss", "--train", "--freeze"});
    refuse_given(command, arguments->weights.empty() ? "" : "is of initial weights, and --weights gives them",
                 {"--seed"});
    export_model(*arguments);
  });
}

}  // namespace superstep::cli
