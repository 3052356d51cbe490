// The table of subcommands, in the order `superstep --help` shows them.
#include "superstep/cli/command.h"

namespace superstep::cli {

void declare_advise(CLI::App& command);
void declare_answer(CLI::App& command);
void declare_sweep(CLI::App& command);
void declare_baseline(CLI::App& command);
void declare_bench(CLI::App& command);
void declare_compare(CLI::App& command);
void declare_compare_numerics(CLI::App& command);
void declare_compile(CLI::App& command);
void declare_complete(CLI::App& command);
void declare_completion(CLI::App& command);
void declare_convert(CLI::App& command);
void declare_crystal(CLI::App& command);
void declare_doctor(CLI::App& command);
void declare_generate(CLI::App& command);
void declare_graph(CLI::App& command);
void declare_infer(CLI::App& command);
void declare_info(CLI::App& command);
void declare_list(CLI::App& command);
void declare_machine(CLI::App& command);
void declare_man(CLI::App& command);
void declare_onnx(CLI::App& command);
void declare_peaks(CLI::App& command);
void declare_profile(CLI::App& command);
void declare_predict(CLI::App& command);
void declare_records(CLI::App& command);
void declare_report(CLI::App& command);
void declare_sample(CLI::App& command);
void declare_scale(CLI::App& command);
void declare_show(CLI::App& command);
void declare_train(CLI::App& command);
void declare_validate(CLI::App& command);
void declare_watch(CLI::App& command);

namespace {

std::vector<Command> of_models() {
  return {
      {"generate", "generate a workload's data from its physics", declare_generate},
      {"train", "train a model; writes checkpoints, a log and an ONNX file", declare_train},
      {"watch", "follow training runs: curves in the terminal, on a page, in TensorBoard and MLflow",
       declare_watch},
      {"infer", "apply a trained model to a file, and measure its latency", declare_infer},
      {"peaks", "find Bragg peaks in detector frames, and their centers by a network, fits or centroids",
       declare_peaks},
      {"answer", "find the answer to a question in a text (bert-base-squad)", declare_answer},
      {"complete", "continue a text with a language model (safetensors, PyTorch or GGUF weights)",
       declare_complete},
      {"sample", "sample the posterior of a model's parameters (NUTS, HMC), and forecast with uncertainty",
       declare_sample},
  };
}

std::vector<Command> of_servers() {
  return {
      {"serve", "serve trained models over HTTP and gRPC, with batching, versions and metrics", nullptr, true,
       false, "serve"},
      {"stream", "send the frames of a simulated detector at a given rate, with known faults", nullptr, true,
       false, "serve"},
      {"account", "add up what servers that shared a stream have answered; find gaps and duplicates", nullptr,
       true, false, "serve"},
      {"demo", "run a simulated experiment end to end: detector, server, live pictures, learning", nullptr,
       true, false, "serve"},
  };
}

std::vector<Command> of_studies() {
  return {
      {"baseline", "run the conventional method that a workload's model replaces", declare_baseline},
      {"workflow", "run a whole study: data, networks, the conventional method, a page of results", nullptr,
       true, false, "extra"},
      {"design", "find process settings whose response meets a target, in few expensive trials", nullptr,
       true, false, "extra"},
      {"md", "run molecular dynamics with a classical potential or a trained model", nullptr, true, false,
       "extra"},
      {"search", "search options of a training by successive halving, over several processes", nullptr, true,
       false, "extra"},
      {"crystal", "compute a crystal's lattice constant and bulk modulus with a trained force field",
       declare_crystal},
  };
}

std::vector<Command> of_accelerators() {
  return {
      {"predict", "predict whether a model fits an accelerator, how fast it runs there, and how sure that is",
       declare_predict},
      {"compile", "compile a model for an accelerator that is not there: memory, whether it fits, cycles",
       declare_compile},
      {"advise", "rank machines, splits, precisions and batch sizes for a model and a goal", declare_advise},
      {"place", "find where the tasks of a workflow go in a facility, and when its answer comes", nullptr,
       true, false, "extra"},
      {"run", "run the tasks of a workflow, with what is not here emulated", nullptr, true, false, "extra"},
      {"sweep", "predict over a grid of machines, precisions, batch sizes and replicas", declare_sweep},
      {"validate", "compare predictions with published measurements", declare_validate},
      {"machine", "measure this machine, and write it as a machine file", declare_machine},
      {"openmp", "run C programs with OpenMP target constructs on modeled tiles", nullptr, true, true,
       "extra"},
  };
}

std::vector<Command> of_measurements() {
  return {
      {"bench", "time primitives and workloads by one protocol", declare_bench},
      {"profile", "show where the time of a step goes: a page, a trace, shares of the hardware's limits",
       declare_profile},
      {"study", "repeat a paper's table or figure: published, predicted and measured here, on one page",
       nullptr, true, false, "extra"},
      {"scale", "measure training on several ranks: efficiency, communication, waiting", declare_scale},
      {"compare", "compare two sets of results: which differences are beyond the noise", declare_compare},
      {"compare-numerics", "compute a model in two machines' arithmetic, and say which node parts them",
       declare_compare_numerics},
      {"records", "list, show, export and import what was measured so far", declare_records},
      {"report", "write a training run as one table and one page", declare_report},
      {"graph", "print a model's graph, before or after the compiler's passes", declare_graph, false},
      {"onnx", "check and export ONNX files, and run the test suite of ONNX backends", declare_onnx},
      {"show", "make a page of data of any form (HDF5, pictures, tar, ...), weights or a model",
       declare_show},
      {"convert", "write data of any form as HDF5, npz, tar, TFRecord or JSON lines, checked",
       declare_convert},
  };
}

std::vector<Command> of_the_program() {
  return {
      {"list", "list workloads, machines, operators and targets", declare_list, false},
      {"info", "say what this program is: version, compiler, libraries, instruction sets, MPI, limits",
       declare_info},
      {"doctor", "check this machine: what would make the program work, or run faster", declare_doctor},
      {"completion", "print a script that completes commands and options in your shell", declare_completion,
       false},
      {"man", "print or write the manual pages", declare_man, false},
  };
}

struct CommandGroup {
  const char* title;  // over its commands in `superstep --help`
  std::vector<Command> commands;
};

// One after the other, each with its group.
std::vector<Command> all_commands() {
  const CommandGroup groups[] = {{"Train and use models", of_models()},
                                 {"Serve them", of_servers()},
                                 {"Study a problem", of_studies()},
                                 {"Predict accelerators", of_accelerators()},
                                 {"Measure and look inside", of_measurements()},
                                 {"About the program", of_the_program()}};
  std::vector<Command> all;
  for (const CommandGroup& group : groups)
    for (const Command& command : group.commands) {
      all.push_back(command);
      all.back().group = group.title;
    }
  return all;
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> all = all_commands();
  return all;
}

}  // namespace superstep::cli
