#include "superstep/lab/validate/language_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/text.h"
#include "superstep/machine/rates/intervals.h"
#include "superstep/machine/rates/machines.h"

namespace superstep::lab {
namespace {

using machine::ModelFacts;
using machine::Request;

constexpr std::string_view prefix = "llm:";

RowPrediction refusal(std::string reason, bool memory = false) {
  return {.value = std::nullopt, .reason = std::move(reason), .memory_ends = memory};
}

struct LanguageRow {
  const ModelFacts* model = nullptr;
  machine::SheetFacts sheet;
  std::string metric, unit, type;
  std::int64_t units = 1, stages = 1, replicas = 1, micro_batch = 1, in = 0, out = 0;
};

// Rows speak of "mixed" and "amp" where multiplications are of 16 bits.
std::string type_of(const std::string& precision) {
  if (precision.empty() || precision == "mixed" || precision == "amp" || precision == "16.16") return "fp16";
  return precision;
}

LanguageRow read(const PublishedTable& table, std::size_t row) {
  const auto count = [&](const char* column) {
    return std::max<std::int64_t>(1, table.integer(row, column, 1));
  };
  return {.model = machine::known_language_model(table.text(row, "workload").substr(prefix.size())),
          .sheet = machine::facts_named(machine_of_row(table.text(row, "machine"))),
          .metric = table.text(row, "metric"),
          .unit = table.text(row, "unit"),
          .type = type_of(table.text(row, "precision")),
          .units = count("units"),
          .stages = count("pipeline_stages"),
          .replicas = count("replicas"),
          .micro_batch = count("micro_batch"),
          .in = table.integer(row, "tokens_in", 0),
          .out = table.integer(row, "tokens_out", 0)};
}

// `amount` over the law's seconds, or they times it.
RowPrediction per_time(double amount, const machine::LawAnswer& answer, const machine::LawCall& call,
                       std::string reason) {
  return {amount / answer.seconds, amount / answer.high,       amount / answer.low,
          std::move(reason),       amount / call.peak_seconds, amount / call.roofline_seconds};
}
RowPrediction times(double factor, const machine::LawAnswer& answer, const machine::LawCall& call,
                    std::string reason) {
  return {factor * answer.seconds, factor * answer.low,        factor * answer.high,
          std::move(reason),       factor * call.peak_seconds, factor * call.roofline_seconds};
}

std::string law_words(const LanguageRow& asked, const machine::LawAnswer& answer,
                      const machine::LawCall& call) {
  return fmt::format("by the law of {}{}; interval of \"{}\", {} cells", call.call.kinds.front(),
                     answer.measured_machine ? ""
                                             : fmt::format("; no such call on {} was measured: its data "
                                                           "sheet alone is known",
                                                           asked.sheet.facts.name),
                     answer.spread, answer.cells);
}

// The least number of units that share every layer of a replica, at which a request fits; 0: none.
std::int64_t least_units(const LanguageRow& asked, Request request) {
  constexpr int most = 4096;
  for (int units = 1; units <= most; units *= 2) {
    request.units = units;
    if (machine::sequences_held(asked.sheet.facts, *asked.model, request) >= 1) return units * asked.stages;
  }
  return 0;
}

RowPrediction misfit(const LanguageRow& asked, const Request& request) {
  const double held = request.units * request.stages;
  const std::int64_t least = least_units(asked, request);
  return refusal(
      fmt::format("does not fit, as predicted: weights take {}, a sequence {}, and {:.0f} units have {}{}",
                  format_bytes(machine::weight_bytes(asked.type) * asked.model->all_weights()),
                  format_bytes(machine::sequence_bytes(*asked.model, request)), held,
                  format_bytes(asked.sheet.facts.memory * held),
                  least > 0 ? fmt::format("; nearest: {} units of a replica", least) : std::string()),
      true);
}

RowPrediction requests(const LanguageRow& asked) {
  if (asked.in == 0 || asked.out == 0)
    return refusal("requests of a language model need tokens_in and tokens_out");
  const std::int64_t together = asked.stages * asked.replicas;
  if (asked.units % together != 0)
    return refusal(fmt::format("{} units are not shared by {} replicas of {} stages", asked.units,
                               asked.replicas, asked.stages));
  Request request{.batch = static_cast<double>(asked.micro_batch),
                  .in = static_cast<double>(asked.in),
                  .out = static_cast<double>(asked.out),
                  .units = static_cast<double>(asked.units / together),
                  .stages = static_cast<double>(asked.stages),
                  .type = asked.type};
  if (machine::sequences_held(asked.sheet.facts, *asked.model, request) < 1) return misfit(asked, request);
  if (asked.metric == "time_to_first_token") request.what = Request::What::first_token;
  const machine::LawCall call = machine::request_call(asked.sheet.facts, *asked.model, request);
  const machine::LawAnswer answer = machine::answer_by_law(call, asked.sheet.facts, request.software);
  const std::string words = law_words(asked, answer, call);
  if (asked.metric == "throughput" && asked.unit == "tokens/s")
    return per_time(request.batch * request.out * static_cast<double>(asked.replicas), answer, call, words);
  if (asked.metric == "time_to_first_token" || asked.metric == "latency")
    return times(scale_of_unit(asked.unit), answer, call, words);
  return refusal("of requests a throughput in tokens/s, a latency or a time_to_first_token is predicted");
}

RowPrediction training(const LanguageRow& asked) {
  if (asked.stages > 1)
    return refusal(
        "training of language models is predicted with weights shared by all units, not in stages");
  if (asked.metric != "throughput" || asked.unit != "tokens/s")
    return refusal("of training a throughput in tokens/s is predicted");
  const machine::LanguageTraining training{
      .length = asked.in > 0 ? static_cast<double>(asked.in) : asked.model->sequence,
      .micro_batch = static_cast<double>(asked.micro_batch),
      .units = static_cast<double>(asked.units),
      .sharded = true,
      .type = asked.type};
  // Weights, gradients and Adam's two moments where they are mixed, as `superstep predict` counts them.
  constexpr double bytes_of_parameter = 16;
  const double bytes = bytes_of_parameter * asked.model->all_weights() / training.units;
  if (bytes > asked.sheet.facts.memory)
    return refusal(fmt::format("does not fit, as predicted: its training state takes {} of a unit, which has "
                               "{}; nearest: {:.0f} units",
                               format_bytes(bytes), format_bytes(asked.sheet.facts.memory),
                               std::ceil(bytes * training.units / asked.sheet.facts.memory)),
                   true);
  const machine::LawCall call = machine::language_training_call(asked.sheet.facts, *asked.model, training);
  const machine::LawAnswer answer = machine::answer_by_law(call, asked.sheet.facts, training.software);
  return per_time(training.units, answer, call, law_words(asked, answer, call));
}

}  // namespace

bool is_language_model(const std::string& workload) { return workload.starts_with(prefix); }

bool is_known_language_model(const std::string& workload) {
  return is_language_model(workload) && machine::known_language_model(workload.substr(prefix.size()));
}

RowPrediction language_row(const PublishedTable& table, std::size_t row) {
  const LanguageRow asked = read(table, row);
  if (!asked.model) return refusal(fmt::format("no shape is known of {}", table.text(row, "workload")));
  const machine::MachineFacts& facts = asked.sheet.facts;
  if (facts.peak(asked.type) <= 0 || facts.memory_rate <= 0 || facts.memory <= 0)
    return refusal(fmt::format("no peak, memory or memory rate is known of {}", facts.id));
  return table.text(row, "mode") == "train" ? training(asked) : requests(asked);
}

}  // namespace superstep::lab
