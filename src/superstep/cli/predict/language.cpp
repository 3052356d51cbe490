#include "superstep/cli/predict/language.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/cli/predict/law_words.h"
#include "superstep/cli/shared/heeded_options.h"
#include "superstep/machine/rates/call.h"
#include "superstep/machine/rates/intervals.h"

namespace superstep::cli {
namespace {

using machine::ModelFacts;
using machine::Request;

constexpr std::int64_t usual_tokens = 512;  // of a prompt and of an answer that nobody says the length of

const ModelFacts& model_of(const std::string& workload) {
  const std::string name = workload.substr(workload.find(':') + 1);
  const ModelFacts* model = machine::known_language_model(name);
  if (!model)
    throw Error(ErrorCode::invalid_argument, "no shape is known of this language model", workload,
                unknown_name_hint(name, machine::known_language_models()));
  return *model;
}

std::string type_of(const std::string& precision, const char* otherwise) {
  if (precision.empty()) return otherwise;
  return precision == "f16" || precision == "f32" ? "fp" + precision.substr(1) : precision;
}

// "trtllm" is a short name.
std::string stack_of(const std::string& stack, const char* otherwise) {
  if (stack.empty()) return otherwise;
  return stack == "trtllm" ? "tensorrt-llm" : stack;
}

void refuse_unknown_rates(const machine::MachineFacts& machine, const std::string& type) {
  if (machine.peak(type) > 0 && machine.memory_rate > 0 && machine.memory > 0) return;
  throw Error(ErrorCode::unsupported, "no peak, memory or memory rate is known of it", machine.id,
              "superstep list machines");
}

// The least number of units in tensor parallelism that weights and one sequence fit on; 0: none up to 4,096.
int least_units(const machine::MachineFacts& machine, const ModelFacts& model, Request request) {
  constexpr int most = 4096;
  for (int units = 1; units <= most; units *= 2) {
    request.units = units;
    if (machine::sequences_held(machine, model, request) >= 1) return units;
  }
  return 0;
}

void refuse_too_large(const machine::MachineFacts& machine, const ModelFacts& model, const Request& request,
                      const std::string& workload) {
  const double units = request.units * request.stages;
  const int least = least_units(machine, model, request);
  throw Error(
      ErrorCode::unsupported,
      fmt::format("does not fit {:.0f} x {}: weights take {}, a sequence {}, and there are {}", units,
                  machine.name, format_bytes(machine::weight_bytes(request.type) * model.all_weights()),
                  format_bytes(machine::sequence_bytes(model, request)),
                  format_bytes(machine.memory * units)),
      workload,
      least > 0 ? fmt::format("nearest: --tensor-parallel {}, or a narrower --precision", least)
                : std::string("no number of these units holds it"));
}

Request request_of(const LawQuestion& asked) {
  const LanguageArguments& language = asked.language;
  const auto given = [](std::int64_t value, std::int64_t otherwise) {
    return static_cast<double>(value > 0 ? value : otherwise);
  };
  Request request{.batch = given(std::max(language.concurrency, asked.batch), 1),
                  .in = given(language.tokens_in, usual_tokens),
                  .out = given(language.tokens_out, usual_tokens),
                  .units = given(language.tensor_parallel, 1),
                  .stages = given(language.pipeline_parallel, 1),
                  .software = stack_of(asked.stack, "vllm"),
                  .type = type_of(asked.precision, "fp16")};
  if (!asked.stack.empty()) refuse_unmeasured_stack("generation", request.software);
  request.in_turn = request.software == "llama.cpp";
  return request;
}

void predict_requests(const LawQuestion& asked, const machine::SheetFacts& sheet, const ModelFacts& model) {
  const Request request = request_of(asked);
  refuse_unknown_rates(sheet.facts, request.type);
  const double held = machine::sequences_held(sheet.facts, model, request);
  if (held < 1) refuse_too_large(sheet.facts, model, request, asked.workload);
  const machine::LawCall whole = machine::request_call(sheet.facts, model, request);
  Request first = request;
  first.what = Request::What::first_token;
  const double first_seconds =
      machine::answer_by_law(machine::request_call(sheet.facts, model, first), sheet.facts).seconds;
  const machine::LawAnswer answer = machine::answer_by_law(whole, sheet.facts, request.software);
  LawReport report(sheet, answer);
  report.say("predicted: {} on {:.0f} x {}, {} by {}: {:.0f} at a time, {:.0f} tokens in, {:.0f} out{}",
             asked.workload, request.units * request.stages, sheet.facts.name, request.type, request.software,
             request.batch, request.in, request.out,
             request.stages > 1 ? fmt::format(", {:.0f} stages", request.stages) : "");
  report.say("memory: weights {}, a sequence {}, {:.0f} of them held{}",
             format_bytes(machine::weight_bytes(request.type) * model.all_weights()),
             format_bytes(machine::sequence_bytes(model, request)), held,
             held < request.batch ? "; the others wait" : "");
  const double decoding = std::max(answer.seconds - first_seconds, 1e-9);
  report.add_time("generation_latency", 1);
  report.add_time("time_to_first_token", 1, first_seconds);
  report.add_rate("throughput", request.batch * request.out, "tokens/s");
  report.add_rate("total_throughput", request.batch * (request.in + request.out), "tokens/s");
  if (request.out > 1) report.add_rate("decode_rate_of_a_user", request.out - 1, "tokens/s", decoding);
  report.finish(asked.workload, whole,
                {{"stack", request.software},
                 {"precision", request.type},
                 {"mode", "infer"},
                 {"tokens_in", request.in},
                 {"tokens_out", request.out},
                 {"concurrency", request.batch},
                 {"tensor_parallel", request.units},
                 {"pipeline_parallel", request.stages},
                 {"sequences_held", held},
                 {"weight_bytes", machine::weight_bytes(request.type) * model.all_weights()},
                 {"cache_bytes_of_a_sequence", machine::sequence_bytes(model, request)}});
}

void predict_training(const LawQuestion& asked, const machine::SheetFacts& sheet, const ModelFacts& model) {
  const double usual_length = model.sequence > 0 ? model.sequence : 2048;
  const double tokens = static_cast<double>(asked.language.tokens_in);
  const machine::LanguageTraining training{
      .length = tokens > 0 ? tokens : usual_length,
      .micro_batch = static_cast<double>(std::max<std::int64_t>(1, asked.batch)),
      .units = static_cast<double>(std::max<std::int64_t>(1, asked.units)),
      .sharded = asked.stack.empty() || asked.stack.find("fsdp") != std::string::npos,
      .software = stack_of(asked.stack, "pytorch-fsdp"),
      .type = type_of(asked.precision, "bf16")};
  refuse_unmeasured_stack("language training", asked.stack);
  refuse_unknown_rates(sheet.facts, training.type);
  // Weights, gradients and Adam's two moments, 16 bytes a parameter where they are mixed, shared by all
  // units.
  constexpr double bytes_of_parameter = 16;
  const double bytes = bytes_of_parameter * model.all_weights() / (training.sharded ? training.units : 1);
  if (bytes > sheet.facts.memory)
    throw Error(
        ErrorCode::unsupported,
        fmt::format("does not fit {:.0f} x {}: its training state takes {} of a unit, which has {}",
                    training.units, sheet.facts.name, format_bytes(bytes), format_bytes(sheet.facts.memory)),
        asked.workload,
        fmt::format("nearest: --units {:.0f}",
                    std::ceil(bytes_of_parameter * model.all_weights() / sheet.facts.memory)));
  const machine::LawCall call = machine::language_training_call(sheet.facts, model, training);
  LawReport report(sheet, machine::answer_by_law(call, sheet.facts, training.software));
  report.say("predicted: {} (train) on {:.0f} x {}, {} by {}, micro-batch {:.0f} of {:.0f} tokens",
             asked.workload, training.units, sheet.facts.name, training.type, training.software,
             training.micro_batch, training.length);
  report.add_rate("throughput", training.units, "tokens/s");
  report.add_rate("model_flops_rate", call.flops, "FLOP/s");
  report.add_rate("compute_utilization", call.peak_seconds, "");
  report.finish(asked.workload, call,
                {{"stack", training.software},
                 {"precision", training.type},
                 {"mode", "train"},
                 {"tokens_in", training.length},
                 {"micro_batch", training.micro_batch},
                 {"units", training.units}});
}

}  // namespace

void predict_language(const CLI::App& command, const LawQuestion& asked, const machine::SheetFacts& sheet) {
  const ModelFacts& model = model_of(asked.workload);
  if (asked.training) {
    refuse_given(command, "is of requests, and means nothing with --mode train",
                 {"--tokens-out", "--concurrency", "--tensor-parallel", "--pipeline-parallel"});
    return predict_training(asked, sheet, model);
  }
  refuse_given(command, "of requests are --tensor-parallel x --pipeline-parallel", {"--units"});
  refuse_given(command, asked.language.concurrency > 0 ? "says the same as --concurrency" : "",
               {"--batch", "--micro-batch"});
  predict_requests(asked, sheet, model);
}

}  // namespace superstep::cli
