// The table of subcommands, in the order `superstep --help` shows them.
#include "superstep/cli/command.h"

namespace superstep::cli {

void declare_advise(CLI::App& command);
void declare_answer(CLI::App& command);
void declare_sweep(CLI::App& command);
void declare_baseline(CLI::App& command);
void declare_bench(CLI::App& command);
void declare_compare(CLI::App& command);
void declare_compile(CLI::App& command);
void declare_complete(CLI::App& command);
void declare_completion(CLI::App& command);
void declare_crystal(CLI::App& command);
void declare_design(CLI::App& command);
void declare_doctor(CLI::App& command);
void declare_generate(CLI::App& command);
void declare_account(CLI::App& command);
void declare_graph(CLI::App& command);
void declare_infer(CLI::App& command);
void declare_list(CLI::App& command);
void declare_machine(CLI::App& command);
void declare_man(CLI::App& command);
void declare_demo(CLI::App& command);
void declare_md(CLI::App& command);
void declare_onnx(CLI::App& command);
void declare_openmp(CLI::App& command);
void declare_profile(CLI::App& command);
void declare_predict(CLI::App& command);
void declare_records(CLI::App& command);
void declare_report(CLI::App& command);
void declare_sample(CLI::App& command);
void declare_scale(CLI::App& command);
void declare_serve(CLI::App& command);
void declare_show(CLI::App& command);
void declare_stream(CLI::App& command);
void declare_train(CLI::App& command);
void declare_validate(CLI::App& command);
void declare_workflow(CLI::App& command);

const std::vector<Command>& commands() {
  static const std::vector<Command> table{
      {"list", "what there is: workloads, machines, operators, targets", declare_list, false},
      {"doctor", "what this program finds on this machine, and what would make it work or go faster",
       declare_doctor},
      {"generate", "make data from the physics of a workload", declare_generate},
      {"train", "train a model, with checkpoints, a log and an ONNX file at the end", declare_train},
      {"infer", "apply a trained model to a file, and measure its latency", declare_infer},
      {"serve", "answer requests over HTTP by trained models: batches, versions, metrics", declare_serve},
      {"stream", "a detector that is not there: frames at a rate, with faults of known counts",
       declare_stream},
      {"account", "the accounts of servers that shared a stream, as one: sums, gaps, what came twice",
       declare_account},
      {"demo", "an experiment that is not there, end to end: detector, server, pictures, learning",
       declare_demo},
      {"sample",
       "draw the posterior of a model's parameters: NUTS, HMC, forecasts that say how sure they are",
       declare_sample},
      {"crystal", "lattice constant and bulk modulus of a crystal by a trained force field", declare_crystal},
      {"complete", "a language model goes on with a text: safetensors, PyTorch or GGUF weights as they are",
       declare_complete},
      {"answer", "where in a text the answer to a question is: a trained bert-base-squad, or others' weights",
       declare_answer},
      {"profile", "where the time of a step goes: a page, a trace, shares of the floor", declare_profile},
      {"graph", "print a model's graph, before or after the passes", declare_graph, false},
      {"predict", "does a model fit an accelerator, how fast is it there, how sure is that", declare_predict},
      {"compile",
       "what the compiler of a device that is not there says of a model: bytes, fits or not, cycles",
       declare_compile},
      {"advise", "which machine, split, precision and batch for a model and a goal, ranked, with reasons",
       declare_advise},
      {"sweep", "predictions over a grid of machines, precisions, batches and replicas", declare_sweep},
      {"validate", "predictions beside published numbers, with their errors", declare_validate},
      {"baseline", "run the conventional method that a workload's model replaces", declare_baseline},
      {"workflow", "a whole study: data, networks, the conventional method, what comes of them, a page",
       declare_workflow},
      {"design", "find process settings whose response meets a target, in few expensive trials",
       declare_design},
      {"md", "molecular dynamics with a classical potential or a trained model: trajectory, means, a page",
       declare_md},
      {"onnx", "check and export ONNX files, and run the test suite of ONNX backends", declare_onnx},
      {"openmp", "C with OpenMP target constructs on modelled tiles: translated, run, counted, checked",
       declare_openmp, true, true},
      {"bench", "time primitives and workloads by one protocol", declare_bench},
      {"compare", "two sets of results side by side: which differences are beyond the noise",
       declare_compare},
      {"machine", "this machine, measured, as a machine file", declare_machine},
      {"records", "what was measured so far: list, show, export, import", declare_records},
      {"report", "a training run as one table and one page", declare_report},
      {"scale", "training over several ranks: efficiency, communication, waiting", declare_scale},
      {"show", "make a page of what is in an HDF5, npy or npz file, in weights or in an ONNX model",
       declare_show},
      {"completion", "a script that completes commands and options in your shell", declare_completion, false},
      {"man", "the manual pages, made of what --help says", declare_man, false},
  };
  return table;
}

}  // namespace superstep::cli
