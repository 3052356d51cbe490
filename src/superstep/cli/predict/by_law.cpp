#include "superstep/cli/predict/by_law.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/predict/language.h"
#include "superstep/cli/predict/law_words.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/lab/primitive/prediction.h"
#include "superstep/lab/processor/prediction.h"
#include "superstep/lab/validate/tables/question.h"
#include "superstep/machine/machine.h"
#include "superstep/machine/rates/intervals.h"
#include "superstep/machine/rates/kept.h"
#include "superstep/machine/rates/machines.h"
#include "superstep/machine/rates/models.h"

namespace superstep::cli {
namespace {

constexpr std::string_view language_prefix = "llm:", by_kernels = "kernel-by-kernel";

bool is_language(const std::string& workload) { return workload.starts_with(language_prefix); }

// Whether primitives on a machine are the laws': of GPUs, built in or known by their sheets. Machines of
// other styles have models of their own.
bool is_of_kernels(const std::string& machine) {
  for (const machine::Machine& one : machine::machines())
    if (one.id() == machine) return name_of(one.style()) == by_kernels;
  return machine::sheets().contains(machine);
}

// A collective beyond the links of one machine is the ring and the tree of its file.
bool within_links(const LawQuestion& asked) {
  if (!lab::names_collective(asked.workload)) return true;
  return static_cast<double>(asked.units) <= machine::facts_named(asked.machine).facts.units_joined;
}

// How tables write what the command calls f16, f32 and the like.
std::string type_of(const std::string& precision, const std::string& otherwise) {
  if (precision.empty()) return otherwise;
  if (precision == "f16" || precision == "f32") return "fp" + precision.substr(1);
  return precision == "mixed" ? "amp" : precision;
}

// A name that can be nothing but a network's, and is none: the nearest is named, of some thousand.
void refuse_unknown_network(const std::string& workload) {
  const std::string name = workload.starts_with("onnx:") ? workload.substr(5) : workload;
  if (!name.starts_with("timm/") && !name.starts_with("torchvision/")) return;
  const std::size_t at = name.find('@');
  const std::string plain = name.substr(0, at);
  const std::vector<std::string> known = machine::known_networks();
  if (std::ranges::find(known, plain) == known.end()) {
    const std::string hint = unknown_name_hint(plain, known);
    throw Error(
        ErrorCode::invalid_argument, "no network of this name is known", workload,
        hint.starts_with("did you mean") ? hint : "names are those of timm 1.0.31 and torchvision 0.29.2");
  }
  const std::string size = at == std::string::npos ? "1" : name.substr(at + 1);
  const bool digits = !size.empty() && size.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || size.size() > 6 || size.find_first_not_of('0') == std::string::npos)
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no size of pictures", size), workload,
                plain + "@224");
}

// This computer as a sheet, by what was measured of it.
machine::SheetFacts this_processor() {
  const machine::Machine here = lab::this_computer(thread_count(), [](const std::string& what) {
    if (!common().quiet) tell(what + "\n");
  });
  return {machine::facts_of(here), here.file(), true};
}

void predict_network(const LawQuestion& asked, const machine::SheetFacts& sheet) {
  refuse_unmeasured_stack("network", asked.stack);
  const lab::RowQuestion row{.workload = asked.workload,
                             .mode = asked.training ? "train" : "infer",
                             .software = asked.stack.empty() ? "pytorch" : asked.stack,
                             .precision = type_of(asked.precision, "amp"),
                             .units = std::max<std::int64_t>(1, asked.units),
                             .micro_batch = std::max<std::int64_t>(1, asked.batch)};
  const lab::TableCall call = lab::call_of(row, sheet.facts);
  const machine::LawAnswer answer = machine::answer_by_law(call.law, sheet.facts, row.software);
  LawReport report(sheet, answer);
  report.say("predicted: {} ({}) on {} x {}, {} by {}, micro-batch {}", asked.workload, row.mode, row.units,
             sheet.facts.name, row.precision, row.software, row.micro_batch);
  const auto samples = static_cast<double>(row.micro_batch * row.units);
  report.add_rate("throughput", samples, "samples/s");
  report.add_time("step_time", 1);
  report.finish(asked.workload, call.law,
                {{"stack", row.software},
                 {"precision", row.precision},
                 {"mode", row.mode},
                 {"micro_batch", row.micro_batch},
                 {"units", row.units}});
}

// Values of a message in words: "64.5M".
std::string with_values(const std::string& workload) {
  const double values = lab::names_collective(workload) ? lab::values_of_message(workload) : 0;
  return values > 0 ? fmt::format("allreduce-{:.0f}", values) : workload;
}

void predict_primitive_by_law(const LawQuestion& asked, const machine::SheetFacts& sheet) {
  const std::string workload = with_values(asked.workload);
  const bool collective = workload.find('-') != std::string::npos && workload.find('_') == std::string::npos;
  const lab::RowQuestion row{.workload = workload,
                             .mode = collective ? "collective" : "infer",
                             .precision = type_of(asked.precision, collective ? "fp32" : "fp16"),
                             .units = std::max<std::int64_t>(1, asked.units)};
  if (collective && row.units < 2)
    throw Error(ErrorCode::invalid_argument, "is between two devices at least", asked.workload, "--units N");
  const double bytes = collective ? 0 : lab::operand_values(workload) * machine::bytes_of_type(row.precision);
  if (sheet.facts.memory > 0 && bytes > sheet.facts.memory)
    throw Error(ErrorCode::unsupported,
                fmt::format("does not fit {}: it needs {} and there are {}", sheet.facts.name,
                            format_bytes(bytes), format_bytes(sheet.facts.memory)),
                asked.workload, "a smaller shape, or a lower --precision");
  const lab::TableCall call = lab::call_of(row, sheet.facts);
  LawReport report(sheet, machine::answer_by_law(call.law, sheet.facts));
  if (collective)
    report.say("predicted: {} ({} of each device) between {} x {}", asked.workload,
               format_bytes(call.law.bytes), row.units, sheet.facts.name);
  else
    report.say("predicted: {} (forward) on {}, {}", asked.workload, sheet.facts.name, row.precision);
  report.add_time("time", 1);
  if (call.law.flops > 0) {
    report.add_rate("flops_rate", call.law.flops, "FLOP/s");
    report.add_rate("compute_utilization", call.law.peak_seconds, "");
  } else {
    report.add_rate(collective ? "bus_rate" : "memory_rate", call.law.bytes, "B/s");
  }
  report.finish(asked.workload, call.law, {{"precision", row.precision}, {"units", row.units}});
}

}  // namespace

void refuse_unmeasured_stack(const std::string& law, const std::string& stack) {
  if (stack.empty()) return;
  const std::vector<std::string> known = machine::measured_software(law);
  if (std::ranges::find(known, stack) != known.end()) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("nothing of {} was measured by '{}'", law, stack),
              "--stack", "there are " + join(known, ", "));
}

void add_language_options(CLI::App& command, LanguageArguments& to) {
  constexpr std::int64_t most_tokens = 1 << 24;
  constexpr int most_units = 1 << 16;
  command
      .add_option("--tokens-in", to.tokens_in, "tokens of a prompt, or of a sequence in training (llm:NAME)")
      ->check(CLI::Range(std::int64_t{1}, most_tokens))
      ->type_name("N");
  command.add_option("--tokens-out", to.tokens_out, "tokens that a request makes (llm:NAME)")
      ->check(CLI::Range(std::int64_t{1}, most_tokens))
      ->type_name("N");
  command.add_option("--concurrency", to.concurrency, "requests at the same time (llm:NAME)")
      ->check(CLI::Range(std::int64_t{1}, most_tokens))
      ->type_name("N");
  command.add_option("--tensor-parallel", to.tensor_parallel, "units that share every layer (llm:NAME)")
      ->check(CLI::Range(1, most_units))
      ->type_name("N");
  command.add_option("--pipeline-parallel", to.pipeline_parallel, "stages, of as many units each (llm:NAME)")
      ->check(CLI::Range(1, most_units))
      ->type_name("N");
}

bool law_answers(const CLI::App& command, const LawQuestion& asked) {
  refuse_unknown_network(asked.workload);
  if (is_language(asked.workload) || lab::law_knows_network(asked.workload)) return true;
  // Kernels one by one, their constants and stacks are the machine files' models'.
  for (const char* option : {"--explain", "--provenance", "--stack"})
    if (command.count(option) > 0) return false;
  return lab::law_knows_primitive(asked.workload) && is_of_kernels(asked.machine) && within_links(asked);
}

void predict_by_law(const CLI::App& command, const LawQuestion& asked) {
  refuse_given(
      command, "means nothing to a law of few constants",
      {"--pipeline", "--replicas", "--accumulate", "--device-iterations", "--loaders", "--sample-seconds",
       "--input-type", "--recompute", "--largest", "--scaling", "--shape", "--bound", "--set",
       "--approximate", "--measure", "--explain", "--provenance", "--extrapolate"});
  const machine::SheetFacts sheet =
      asked.machine == "cpu" ? this_processor() : machine::facts_named(asked.machine);
  if (is_language(asked.workload)) return predict_language(command, asked, sheet);
  refuse_given(command, "is of language models: llm:NAME",
               {"--tokens-in", "--tokens-out", "--concurrency", "--tensor-parallel", "--pipeline-parallel"});
  if (lab::law_knows_network(asked.workload)) return predict_network(asked, sheet);
  refuse_given(command, asked.training ? "train: gradients of primitives are rows of their own" : "",
               {"--mode"});
  refuse_given(command, "has no meaning for a primitive, whose shape says it all",
               {"--batch", "--micro-batch", "--stack"});
  predict_primitive_by_law(asked, sheet);
}

}  // namespace superstep::cli
