// Language models by their shapes: whole requests, decoding, prompts, training.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/text.h"
#include "superstep/lab/validate/tables/call.h"

namespace superstep::lab {
namespace {

// Bytes of a weight: llama.cpp's four bits carry a scale a block.
double weight_bytes(const std::string& precision) {
  if (precision.find("q4") != std::string::npos || precision.find("int4") != std::string::npos) return 0.5625;
  if (precision.find("q8") != std::string::npos) return 1;
  return machine::bytes_of_type(precision);
}

// Of the weights that memory has, a share is left to contexts and libraries (chosen).
constexpr double usable_memory = 0.9;
constexpr double cache_bytes = 2;  // keys and values are kept in 16 bits

struct Request {
  double batch = 1, in = 0, out = 0, units = 1;
};

class LanguageTerms {
 public:
  LanguageTerms(const RowAt& row, const ModelFacts& model, const std::string& precision)
      : model_(model),
        peak_(row.machine.peak(precision)),
        rate_(row.machine.memory_rate),
        memory_(row.machine.memory),
        element_(weight_bytes(precision)) {}

  // Arithmetic of so many tokens in sequences of this length, over all units.
  double prompt_seconds(double tokens, double length, double units) const {
    const double attention =
        2 * model_.layers * model_.width * length;  // half of the square, twice two products
    return tokens * (2 * model_.active_weights() + attention) / (peak_ * units);
  }

  // A request of a whole batch: what does not fit beside the weights waits for a turn of its own.
  machine::Terms request(const Request& r) const {
    const double kept = cache_bytes * model_.cache_values() * (r.in + r.out);
    const double room = usable_memory * memory_ * r.units - element_ * all_weights();
    const double together = memory_ > 0 && room > 0 ? std::max(1.0, std::floor(room / kept)) : r.batch;
    const double turns = std::ceil(r.batch / together), batch = r.batch / turns;
    machine::Terms terms;
    terms.launches = turns * std::max(1.0, r.out);
    terms.serial = prompt_seconds(r.batch * r.in, r.in, r.units);
    const double context = cache_bytes * model_.cache_values() * batch * (r.in + r.out / 2);
    terms.memory = turns * r.out * (element_ * touched_weights(batch) + context) / (rate_ * r.units);
    terms.compute =
        turns * r.out * batch * (2 * (model_.active_weights() + model_.word_weights())) / (peak_ * r.units);
    terms.collectives = r.units > 1 ? turns * std::max(1.0, r.out) * 2 * model_.layers : 0;
    return terms;
  }

  double all_weights() const { return model_.layer_weights() + 2 * model_.word_weights(); }

 private:
  // Of experts, those that at least one of the tokens goes through.
  double touched_weights(double tokens) const {
    const double share =
        model_.experts > 0 ? 1 - std::pow(1 - model_.active_experts / model_.experts, tokens) : 1;
    return share * model_.layer_weights() + model_.word_weights();
  }

  const ModelFacts& model_;
  double peak_, rate_, memory_, element_;
};

void finish(const RowAt& row, const char* law, TableCall& call) {
  const machine::Terms& t = call.call.terms;
  call.peak_seconds = t.serial + t.compute;
  call.roofline_seconds = t.serial + std::max(t.compute, t.memory);
  set_keys(row.machine, fmt::format("{} {} {}", law, call.software, call.precision),
           fmt::format("{} {}", law, call.software), call);
}

bool request_call(const RowAt& row, const ModelFacts& model, TableCall& call) {
  const std::string &note = row.text("note"), &metric = row.text("metric");
  Request r{.batch = row.count("micro_batch", 1),
            .in = number_behind(note, "in "),
            .out = number_behind(note, "out "),
            .units = row.count("units", 1)};
  if (const double prompt = number_behind(note, "prompt of "); prompt > 0) r.in = prompt;
  if (note.find("one after the other") != std::string::npos) r.units = 1;
  const LanguageTerms terms(row, model, call.precision);
  call.family = "language generation";
  if (metric == "generation_latency") {
    call.call.terms = terms.request(r);
  } else if (metric == "time_to_first_token") {
    r.out = 0;
    call.call.terms = terms.request(r);
  } else if (metric == "prefill_rate") {
    call.call.terms = {.launches = 1, .serial = terms.prompt_seconds(r.batch * r.in, r.in, 1)};
    call.is_rate = true;
    call.amount = r.batch * r.in;
  } else {
    // Tokens of all sequences, after the prompt. llama.cpp's units work one after the other, layer by layer.
    constexpr double usual_tokens = 1024;
    r.out = r.in == 0 ? usual_tokens : 128;
    Request alone = r;
    alone.in = std::max(1.0, r.in);
    call.call.terms = terms.request(alone);
    call.call.terms.serial = 0;
    call.is_rate = true;
    call.amount = r.batch * r.out;
  }
  if (r.in == 0 && metric != "decode_rate") {
    call.reason = "the tokens of a request are not said";
    return false;
  }
  const char* law = metric == "generation_latency" ? "generation"
                    : metric == "decode_rate"      ? "decoding"
                                                   : "prompts";
  finish(row, law, call);
  return true;
}

// Model FLOP of a token in training: 6 a weight, attention 12 a layer and position, of which a causal mask
// leaves half, which published rates do not count (A. Chowdhery et al., arXiv 2204.02311).
double training_flops(const ModelFacts& model, double length) {
  return 6 * (model.active_weights() + model.word_weights()) + 12 * model.layers * model.width * length;
}

bool training_call(const RowAt& row, const ModelFacts& model, TableCall& call) {
  const std::string &note = row.text("note"), &metric = row.text("metric"), &unit = row.text("unit");
  double length = number_behind(note, "sequence length ");
  if (length == 0) length = model.sequence;
  if (length == 0) {
    call.reason = "the length of its sequences is not said";
    return false;
  }
  const double units = row.count("units", 1), flops = training_flops(model, length);
  const bool again = note.find("checkpointing True") != std::string::npos;
  call.family = "language training";
  const double peak_seconds = flops / row.machine.peak(call.precision);
  // Of a token on one unit. A step of a micro-batch has its own time; without one, it is large.
  const double micro = row.count("micro_batch", 0);
  call.call.terms = {.launches = micro > 0 ? model.layers / (micro * length) : 0,
                     .serial = peak_seconds * (again ? 4.0 / 3 : 1.0)};
  call.is_rate = true;
  if (metric == "model_flops_rate")
    call.amount = flops / 1e12;
  else
    call.amount = unit == "tokens/s" || unit == "tok/s" ? units : units / length;
  finish(row, metric == "throughput_with_evaluation" ? "training with evaluation" : "training", call);
  call.peak_seconds = peak_seconds;
  return true;
}

// One pass over a batch of whole sequences.
bool step_call(const RowAt& row, const ModelFacts& model, TableCall& call) {
  double length = number_behind(row.text("note"), "sequence length ");
  if (length == 0) length = model.sequence;
  const double tokens = row.count("micro_batch", 1) * length;
  const bool training = row.text("mode") == "train";
  const LanguageTerms terms(row, model, call.precision);
  call.family = "models under frameworks";
  call.call.terms = {.launches = model.layers * (training ? 3 : 1),
                     .serial = (training ? 3 : 1) * terms.prompt_seconds(tokens, 2 * length, 1)};
  call.amount = row.text("unit") == "ms" ? 1e3 : 1;
  finish(row, "pass of a language model", call);
  return length > 0;
}

}  // namespace

bool language_call(const RowAt& row, const ModelFacts& model, TableCall& call) {
  const std::string &metric = row.text("metric"), &mode = row.text("mode");
  if (row.machine.peak(call.precision) <= 0 || row.machine.memory_rate <= 0) {
    call.reason = "no peak or memory rate is known of " + call.machine;
    return false;
  }
  if (model.layers == 0 || model.width == 0) {
    call.reason = "no shape is known of " + call.model;
    return false;
  }
  if (metric == "step_time") return step_call(row, model, call);
  const bool rate =
      metric == "throughput" || metric == "throughput_with_evaluation" || metric == "model_flops_rate";
  if (rate && (mode == "train" || mode == "finetune")) return training_call(row, model, call);
  for (const char* known : {"generation_latency", "time_to_first_token", "prefill_rate", "decode_rate"})
    if (metric == known) return request_call(row, model, call);
  call.reason = rate || metric == "server_throughput" || metric.starts_with("latency")
                    ? "the tokens of a request are not said"
                    : fmt::format("{} is not predicted", metric);
  return false;
}

}  // namespace superstep::lab
