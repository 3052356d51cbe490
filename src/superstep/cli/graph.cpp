// superstep graph WORKLOAD: the graph as text or as a picture, and what the passes make of it.
#include <fmt/format.h>

#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/graph_passes.h"
#include "superstep/cli/shared/model_options.h"
#include "superstep/graph/text.h"
#include "superstep/target/pjrt/stablehlo/program.h"

namespace superstep::cli {
namespace {

struct Arguments {
  GraphRequest request;
  std::string format = "text", out, dump;
  bool training = false, passes = false, bisect = false;
};

constexpr const char* examples =
    "Examples:\n"
    "  superstep graph braggnn                                       the model as it is described\n"
    "  superstep graph braggnn --on cpu --mode train --passes        what each pass on the way to the plan "
    "changes\n"
    "  superstep graph braggnn --on cpu --mode train --after decompose\n"
    "  superstep graph mine.onnx --on gc200 --skip simplify --passes\n"
    "  superstep graph braggnn --on cpu --mode train --bisect        does a pass change what is computed?\n"
    "  superstep graph mlp --format dot --out mlp.dot && dot -Tsvg mlp.dot -o mlp.svg\n"
    "  superstep graph braggnn --mode train --format stablehlo --out step.mlir     what a PJRT plug-in "
    "compiles\n"
    "Without --on, --after, --skip or --dump the graph is that of the model (with --mode train: of its\n"
    "training step); with them what the target plans. A pass that cannot be left out says why.";

bool runs_passes(const Arguments& arguments) {
  const GraphRequest& request = arguments.request;
  return arguments.passes || arguments.bisect || !request.on.empty() || !request.after.empty() ||
         !request.skip.empty() || !arguments.dump.empty();
}

std::string text_of(const graph::Graph& graph, const Arguments& arguments) {
  if (arguments.format == "dot") return graph::to_dot(graph);
  if (arguments.format == "stablehlo") return target::stablehlo::write_program(graph).text;
  return graph::to_text(graph, {.data = !arguments.out.empty()});
}

void write_graph(const graph::Graph& graph, const Arguments& arguments) {
  const std::string text = text_of(graph, arguments);
  if (arguments.out.empty())
    fmt::print("{}", text);
  else
    write_file_atomically(arguments.out, text);
}

void show_graph(Arguments arguments) {
  if (arguments.training) arguments.request.mode = "train";
  if (arguments.format == "stablehlo" && arguments.request.on.empty()) arguments.request.on = "pjrt";
  arguments.request.dump = arguments.dump;
  if (!arguments.dump.empty()) make_folder(arguments.dump);
  if (arguments.bisect && arguments.request.batch == 0) arguments.request.batch = 2;
  PassList list = passes_of(arguments.request, runs_passes(arguments));
  if (arguments.bisect) return print_bisection(list, arguments.request);
  const graph::Graph graph = run_listed(std::move(list), arguments.request, arguments.passes);
  if (!arguments.passes || !arguments.out.empty()) write_graph(graph, arguments);
}

void declare_passes(CLI::App& command, Arguments& a) {
  command
      .add_option("--on", a.request.on,
                  "the target whose passes run: superstep list targets; onnx: those of an export")
      ->type_name("TARGET");
  command.add_flag("--passes", a.passes, "list the passes, with what each changed, instead of the graph");
  command.add_option("--after", a.request.after, "the graph after this pass (its last run)")
      ->type_name("PASS");
  command.add_option("--skip,--without", a.request.skip, "leave a pass out; may be repeated")
      ->type_name("PASS")
      ->allow_extra_args(false);
  command.add_flag(
      "--bisect", a.bisect,
      "evaluate the graph on random data after every pass, to find the pass that changes its results");
  command.add_option("--dump", a.dump, "write the graph after every pass that changed it")->type_name("DIR");
  command
      .add_option("--parts", a.request.parts,
                  "for a batch of so many parts that take their statistics together")
      ->type_name("N")
      ->check(positive())
      ->capture_default_str();
  command
      .add_option("--recompute", a.request.recompute,
                  "share of the operations that the backward pass may do again, to keep less: 0.05")
      ->type_name("SHARE")
      ->check(not_negative());
}

}  // namespace

void declare_graph(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  GraphRequest& request = arguments->request;
  command.add_option("workload", request.workload, "superstep list workloads, or a model file (.onnx)")
      ->required();
  command.add_option("--mode", request.mode, "train: forward, backward and optimizer as one graph; infer")
      ->check(CLI::IsMember({"train", "infer"}))
      ->capture_default_str();
  command.add_flag("--train-step", arguments->training, "the same as --mode train");
  command.add_option("--precision", request.precision, "f32, bf16, f16 or int8")
      ->check(CLI::IsMember({"f32", "bf16", "f16", "int8"}))
      ->capture_default_str();
  command.add_option("--batch", request.batch, "samples (default: 1, or what a file fixes; to bisect 2)")
      ->type_name("N")
      ->check(positive());
  declare_passes(command, *arguments);
  command
      .add_option("--format", arguments->format,
                  "text, dot for Graphviz, or stablehlo: the program for PJRT plug-ins")
      ->check(CLI::IsMember({"text", "dot", "stablehlo"}))
      ->capture_default_str();
  command
      .add_option("--out", arguments->out,
                  "write the graph to a file; text then has all tensors and can be parsed back")
      ->type_name("FILE");
  add_set_option(command, request.model_options);
  add_bound_option(command, request.bounds);
  add_operators_option(command);
  add_shape_option(command, request.shapes);
  add_loss_option(command, request.loss);
  command.footer(examples);
  command.callback([arguments] { show_graph(*arguments); });
}

}  // namespace superstep::cli
