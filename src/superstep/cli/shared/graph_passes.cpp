#include "superstep/cli/shared/graph_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/progress.h"
#include "superstep/base/random.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/run/model.h"
#include "superstep/run/serve/calibrate.h"
#include "superstep/target/passes.h"
#include "superstep/transform/bisect.h"
#include "superstep/transform/pipeline.h"

namespace superstep::cli {
namespace {

using transform::Pass;

constexpr const char* plainest_target = "reference";  // runs the passes that all run, and no others
constexpr const char* as_onnx = "onnx";

void append(std::vector<Pass>& passes, std::vector<Pass> more) {
  std::ranges::move(more, std::back_inserter(passes));
}

// Random inputs: what becomes of a graph does not depend on the ranges that come out.
transform::RangeTable random_ranges(const run::Model& model, std::int64_t batch) {
  const auto fill = [](std::int64_t first, std::span<Tensor> inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      RandomStream random(static_cast<std::uint64_t>(first), i);
      for (std::int64_t k = 0; k < inputs[i].element_count(); ++k)
        inputs[i].set(
            k, is_floating(inputs[i].type()) ? random.uniform() : static_cast<double>(random.below(2)));
    }
  };
  return run::calibrate(target::find_target("cpu"), model.inference(),
                        {.samples = batch, .threads = thread_count(), .batch = batch, .products = {}}, fill);
}

void check_words(const GraphRequest& request) {
  const bool trains = request.mode == "train";
  if (request.precision == "int8" && trains)
    throw Error(ErrorCode::invalid_argument, "int8 is for serving", "--precision", "add --mode infer");
  if (request.on == as_onnx && request.precision != "f32" && request.precision != "int8")
    throw Error(ErrorCode::invalid_argument, "files are written in f32 and int8", "--precision");
}

std::size_t position_of(const std::vector<Pass>& passes, const GraphRequest& request) {
  std::vector<std::string> names;
  for (std::size_t i = passes.size(); i-- > 0;) {
    if (passes[i].name == request.after) return i;
    names.emplace_back(passes[i].name);
  }
  throw Error(ErrorCode::invalid_argument, "there is no such pass", request.after,
              unknown_name_hint(request.after, names));
}

std::string nodes_of(const transform::PassRecord& record) {
  return record.changed ? fmt::format("{} to {}", record.nodes_before, record.nodes_after) : "";
}

// A row a pass: those that ran with what they did, the others with why not.
void print_table(const std::vector<Pass>& passes, const transform::PipelineReport& report) {
  TextTable table({"#", "pass", "changed", "nodes", "time", "may be skipped", "what it does"});
  auto record = report.records.begin();
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const bool ran = record != report.records.end() && record->position == i;
    table.add_row({fmt::format("{}", i + 1), std::string(passes[i].name),
                   !ran              ? "skipped"
                   : record->changed ? "yes"
                                     : "no",
                   ran ? nodes_of(*record) : "", ran ? format_seconds(record->seconds) : "",
                   passes[i].required.empty() ? "yes" : "no", std::string(passes[i].summary)});
    if (ran) ++record;
  }
  fmt::print("{}", table.to_string());
}

std::string share(double value) {
  if (value == 0) return "0";
  return std::isinf(value) ? "everything" : fmt::format("{:.1e}", value);
}

}  // namespace

PassList passes_of(const GraphRequest& request, bool all) {
  check_words(request);
  const bool trains = request.mode == "train", bytes = request.precision == "int8";
  const run::Model model({.workload = request.workload,
                          .precision = bytes ? "f32" : request.precision,
                          .model_options = request.model_options,
                          .shapes = request.shapes,
                          .bounds = request.bounds,
                          .loss = request.loss,
                          .batch = request.batch});
  const std::int64_t batch =
      request.batch > 0 ? request.batch : std::max<std::int64_t>(model.fixed_batch(), 1);
  PassList list{model.as_described()(batch), {}};
  const target::PassTable table = target::pass_table(request.on.empty() ? plainest_target : request.on);
  if (bytes) {
    const target::Target& target =
        target::find_target(request.on.empty() || request.on == as_onnx ? "cpu" : request.on);
    list.passes = {run::quantization_for(target, random_ranges(model, batch))};
  } else {
    if (table.of_models) list.passes = table.of_models();
    const bool target = !request.on.empty() && request.on != as_onnx;
    append(list.passes, model.passes(trains, target ? &target::find_target(request.on) : nullptr));
  }
  if (all)
    append(list.passes,
           table.of_graphs({.parts_in_step = request.parts, .recompute_share = request.recompute}));
  return list;
}

graph::Graph run_listed(PassList list, const GraphRequest& request, bool listed) {
  transform::check_left_out(list.passes, request.skip);
  if (!request.after.empty()) {
    if (std::ranges::find(request.skip, request.after) != request.skip.end())
      throw Error(ErrorCode::invalid_argument, "is the pass that is left out", "--after " + request.after);
    const auto end = static_cast<std::ptrdiff_t>(position_of(list.passes, request)) + 1;
    list.passes.erase(list.passes.begin() + end, list.passes.end());
  }
  std::vector<std::string> skip;  // without names of passes behind the last one
  for (const Pass& pass : list.passes)
    if (std::ranges::find(request.skip, pass.name) != request.skip.end()) skip.emplace_back(pass.name);
  const auto report =
      transform::run_pipeline(list.graph, list.passes, {.disabled = skip, .dump_folder = request.dump});
  if (listed) print_table(list.passes, report);
  return std::move(list.graph);
}

void print_bisection(const PassList& list, const GraphRequest& request) {
  Progress line("evaluating", static_cast<double>(list.passes.size()), "passes");
  const transform::Bisection found = transform::bisect(
      list.graph, list.passes, {.disabled = request.skip, .progress = [&](std::size_t done, std::size_t) {
                                  if (interrupted())
                                    throw Error(ErrorCode::interrupted, "before every pass was tried");
                                  line.update(static_cast<double>(done));
                                }});
  line.finish();
  TextTable table({"#", "pass", "changed", "largest difference", "allowed", "where"});
  for (const transform::BisectStep& step : found.steps) {
    const bool fresh = step.changed && list.passes[step.position].rounding == Pass::other_results;
    table.add_row({fmt::format("{}", step.position + 1), step.pass, step.changed ? "yes" : "no",
                   !step.changed ? ""
                   : fresh       ? "other results"
                                 : share(step.difference),
                   !step.changed || fresh ? "" : share(step.allowed), step.where});
  }
  fmt::print("{}", table.to_string());
  if (const transform::BisectStep* wrong = found.wrong())
    throw Error(ErrorCode::bad_graph,
                fmt::format("changes {} by {} of its largest element, {} is allowed", wrong->where,
                            share(wrong->difference), share(wrong->allowed)),
                wrong->pass, "look at it with --after " + wrong->pass + ", do without it with --skip");
  fmt::print("No pass changes a result by more than it may.\n");
}

}  // namespace superstep::cli
