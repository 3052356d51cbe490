// Language models by their shapes: whole requests, decoding, prompts, training.
#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/text.h"
#include "superstep/lab/validate/tables/call.h"

namespace superstep::lab {
namespace {

using machine::Request;

// Whoever generates without a prompt makes so many tokens (llama.cpp's own benchmark's default is of this
// order; chosen).
constexpr double usual_tokens = 1024, tokens_behind_a_prompt = 128;

Request request_in(const RowAt& row, const TableCall& call) {
  const std::string& note = row.text("note");
  Request r{.batch = row.count("micro_batch", 1),
            .in = number_behind(note, "in "),
            .out = number_behind(note, "out "),
            .units = row.count("units", 1),
            .software = call.software,
            .type = call.precision};
  if (const double prompt = number_behind(note, "prompt of "); prompt > 0) r.in = prompt;
  // llama.cpp's units work one after the other, layer by layer.
  r.in_turn = note.find("one after the other") != std::string::npos || call.software == "llama.cpp";
  return r;
}

bool request_row(const RowAt& row, const ModelFacts& model, TableCall& call) {
  const std::string& metric = row.text("metric");
  Request r = request_in(row, call);
  if (metric == "time_to_first_token") {
    r.what = Request::What::first_token;
  } else if (metric == "prefill_rate") {
    r.what = Request::What::prompt;
    call.is_rate = true;
    call.amount = r.batch * r.in;
  } else if (metric == "decode_rate") {
    r.what = Request::What::decoding;
    r.out = r.in == 0 ? usual_tokens : tokens_behind_a_prompt;
    r.in = std::max(1.0, r.in);
    call.is_rate = true;
    call.amount = r.batch * r.out;
  }
  if (r.in == 0) {
    call.reason = "the tokens of a request are not said";
    return false;
  }
  call.take(machine::request_call(row.machine, model, r));
  return true;
}

// What networks between nodes give a unit, of "1600 Gbps node-node interconnect" for the eight units of a
// node; 0: not said.
double network_rate_in(const std::string& note) {
  const std::size_t at = note.find(" Gbps node-node");
  if (at == std::string::npos) return 0;
  const std::size_t begin = note.rfind(' ', at - 1);
  constexpr double units_of_node = 8, bits = 8;
  return 1e9 * std::atof(note.c_str() + (begin == std::string::npos ? 0 : begin + 1)) / bits / units_of_node;
}

bool training_row(const RowAt& row, const ModelFacts& model, TableCall& call) {
  const std::string &note = row.text("note"), &metric = row.text("metric"), &unit = row.text("unit");
  machine::LanguageTraining training{.length = number_behind(note, "sequence length "),
                                     .micro_batch = row.count("micro_batch", 0),
                                     .units = row.count("units", 1),
                                     .recomputes = note.find("checkpointing True") != std::string::npos,
                                     .with_evaluation = metric == "throughput_with_evaluation",
                                     .sharded = call.software.find("fsdp") != std::string::npos,
                                     .software = call.software,
                                     .type = call.precision};
  if (training.length == 0) training.length = model.sequence;
  if (training.length == 0) {
    call.reason = "the length of its sequences is not said";
    return false;
  }
  if (training.units > row.machine.units_joined) training.network_rate = network_rate_in(note);
  call.take(machine::language_training_call(row.machine, model, training));
  call.is_rate = true;
  if (metric == "model_flops_rate")
    call.amount = machine::training_flops(model, training.length) / 1e12;
  else
    call.amount = unit == "tokens/s" || unit == "tok/s" ? training.units : training.units / training.length;
  return true;
}

bool pass_row(const RowAt& row, const ModelFacts& model, TableCall& call) {
  double length = number_behind(row.text("note"), "sequence length ");
  if (length == 0) length = model.sequence;
  if (length == 0) {
    call.reason = "the length of its sequences is not said";
    return false;
  }
  call.take(machine::language_pass_call(row.machine, model, length, row.count("micro_batch", 1),
                                        row.text("mode") == "train", call.software, call.precision));
  call.amount = row.text("unit") == "ms" ? 1e3 : 1;
  return true;
}

}  // namespace

bool language_row(const RowAt& row, const ModelFacts& model, TableCall& call) {
  const std::string &metric = row.text("metric"), &mode = row.text("mode");
  if (row.machine.peak(call.precision) <= 0 || row.machine.memory_rate <= 0) {
    call.reason = "no peak or memory rate is known of " + call.machine;
    return false;
  }
  if (model.layers == 0 || model.width == 0) {
    call.reason = "no shape is known of " + call.model;
    return false;
  }
  if (metric == "step_time") return pass_row(row, model, call);
  const bool rate =
      metric == "throughput" || metric == "throughput_with_evaluation" || metric == "model_flops_rate";
  if (rate && (mode == "train" || mode == "finetune")) return training_row(row, model, call);
  for (const char* known : {"generation_latency", "time_to_first_token", "prefill_rate", "decode_rate"})
    if (metric == known) return request_row(row, model, call);
  call.reason = rate || metric == "server_throughput" || metric.starts_with("latency")
                    ? "the tokens of a request are not said"
                    : fmt::format("{} is not predicted", metric);
  return false;
}

}  // namespace superstep::lab
