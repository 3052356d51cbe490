// superstep graph WORKLOAD: the graph as text or as a picture, and what the passes make of it.
#include <fmt/format.h>

#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/standard_streams.h"
#include "superstep/cli/command.h"
#include "superstep/graph/text.h"
#include "superstep/run/user_model.h"
#include "superstep/transform/pipeline.h"
#include "superstep/transform/training_step.h"
#include "superstep/workload/workload.h"

namespace superstep::cli {
namespace {

struct Arguments {
  std::string workload, format = "text", out, dump;
  std::int64_t batch = 1;
  bool training = false, passes = false;
  std::vector<std::string> settings, without;
};

constexpr const char* examples =
    "Examples:\n"
    "  superstep graph braggnn\n"
    "  superstep graph braggnn --train-step --passes --dump passes/     the graph after every pass that "
    "changed it\n"
    "  superstep graph mlp --format dot --out mlp.dot && dot -Tsvg mlp.dot -o mlp.svg";

graph::Graph build(const Arguments& arguments) {
  if (run::is_model_file(arguments.workload))
    throw Error(ErrorCode::invalid_argument, "graphs of model files are not printed", arguments.workload,
                "superstep onnx check says what a file holds");
  const workload::Workload& workload = workload::find_workload(arguments.workload);
  graph::Graph graph = workload::build_model(workload, arguments.batch, arguments.settings);
  if (!arguments.training) return graph;
  return transform::make_training_step(graph, workload.training.loss, workload.training.optimizer);
}

void print_graph(const Arguments& arguments) {
  graph::Graph graph = build(arguments);
  if (arguments.passes || !arguments.dump.empty() || !arguments.without.empty()) {
    if (!arguments.dump.empty()) make_folder(arguments.dump);
    const auto report = transform::run_pipeline(
        graph, transform::standard_passes(), {.disabled = arguments.without, .dump_folder = arguments.dump});
    if (!common().quiet) tell(report.to_string());
  }
  const std::string text = arguments.format == "dot"
                               ? graph::to_dot(graph)
                               : graph::to_text(graph, {.data = !arguments.out.empty()});
  if (arguments.out.empty())
    fmt::print("{}", text);
  else
    write_file_atomically(arguments.out, text);
}

}  // namespace

void declare_graph(CLI::App& command) {
  const auto arguments = std::make_shared<Arguments>();
  command.add_option("workload", arguments->workload, "superstep list workloads")->required();
  command.add_option("--batch", arguments->batch, "samples")
      ->type_name("N")
      ->check(positive())
      ->capture_default_str();
  command.add_flag("--train-step", arguments->training, "forward, backward and optimiser as one graph");
  command.add_flag("--passes", arguments->passes,
                   "run the passes every target runs first, and say what they changed");
  command.add_option("--without", arguments->without, "leave a pass out; may be repeated")
      ->type_name("PASS")
      ->allow_extra_args(false);
  command.add_option("--dump", arguments->dump, "write the graph after every pass that changed it")
      ->type_name("DIR");
  command.add_option("--format", arguments->format, "text, or dot for Graphviz")
      ->check(CLI::IsMember({"text", "dot"}))
      ->capture_default_str();
  command
      .add_option("--out", arguments->out,
                  "write to a file; text then has all tensors and can be parsed back")
      ->type_name("FILE");
  command.add_option("--set", arguments->settings, "name=value of an option of the model; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command.footer(examples);
  command.callback([arguments] { print_graph(*arguments); });
}

}  // namespace superstep::cli
