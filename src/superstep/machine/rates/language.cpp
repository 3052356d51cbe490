// Language models by their shapes: whole requests, prompts, decoding, training.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/machine/rates/levels.h"

namespace superstep::machine {
namespace {

// Of the weights that memory has, a share is left to contexts and libraries (chosen).
constexpr double usable_memory = 0.9;
constexpr double half_bytes = 2;  // keys, values and activations are kept in 16 bits
// The host's work for a sequence and a token, of which a constant says how much it is.
constexpr double bookkeeping = 1e-6;

// Of experts, those that at least one of the tokens goes through.
double touched_weights(const ModelFacts& model, double tokens) {
  const double share = model.experts > 0 ? 1 - std::pow(1 - model.active_experts / model.experts, tokens) : 1;
  return share * model.layer_weights() + model.word_weights();
}

// FLOP of so many tokens in prompts of this length; half of the square of attention, twice two products.
double prompt_flops(const ModelFacts& model, double tokens, double length) {
  return tokens * (2 * model.active_weights() + 2 * model.layers * model.width * length);
}

double link_rate_of(const MachineFacts& machine) {
  constexpr double pcie = 16e9;  // a link that no sheet names: PCIe 3.0, 16 lanes
  return machine.link_rate > 0 ? machine.link_rate : pcie;
}

// Bytes that tensor parallelism sums for a token, of each unit: two all-reduces a layer.
double exchanged_bytes(const ModelFacts& model, double units) {
  return 2 * model.layers * model.width * half_bytes * 2 * (units - 1) / units;
}

// A stack on a machine has constants of its own where they pay: its kernels are written for it.
// `part`: of what its rows are, where a law has several.
void file_language(const MachineFacts& machine, const std::string& law, const std::string& form,
                   const std::string& software, const std::string& type, LawCall& call,
                   const std::string& part = {}) {
  const std::string width = fmt::format("{} {}{}", law, form, width_of(type));
  const std::string stack = fmt::format("{} {}", width, software);
  std::vector<std::string> kinds{fmt::format("{} | {}", stack, machine.id),
                                 fmt::format("{} | {}", stack, machine.vendor()), stack, width, law};
  // Prompts and decoding by themselves were measured of few models: what whole requests say stands behind
  // them.
  if (law == "prompts" || law == "decoding") kinds.emplace_back("generation");
  // What is read for a token is more than any cache keeps.
  call.call.most_share = 1;
  // Of few models each says much: 0.5 is better here, by the same errors.
  call.call.worth = 0.5;
  file_call(call, machine, std::move(kinds), stack + part, fmt::format("{} {}", law, software));
}

}  // namespace

double weight_bytes(const std::string& type) {
  // Four bits carry a scale a block of 32.
  if (type.find("q4") != std::string::npos || type.find("int4") != std::string::npos) return 0.5625;
  if (type.find("q8") != std::string::npos) return 1;
  return bytes_of_type(type);
}

double sequence_bytes(const ModelFacts& model, const Request& r) {
  return half_bytes * model.cache_values() * std::max(1.0, r.in + r.out);
}

double sequences_held(const MachineFacts& machine, const ModelFacts& model, const Request& r) {
  const double room =
      usable_memory * machine.memory * r.units * r.stages - weight_bytes(r.type) * model.all_weights();
  return room > 0 ? std::floor(room / sequence_bytes(model, r)) : 0;
}

LawCall request_call(const MachineFacts& machine, const ModelFacts& model, const Request& asked) {
  Request r = asked;
  // A first token is a request for one: prompts and steps are told apart by such rows alone, as most requests
  // ask for as many tokens as they bring.
  const bool first = r.what == Request::What::first_token;
  if (first) {
    r.what = Request::What::whole;
    r.out = 1;
  }
  const double held = machine.memory > 0 ? sequences_held(machine, model, r) : 0;
  constexpr double most_at_a_time = 1024;  // of a server's queue (chosen)
  if (r.best_batch) r.batch = std::clamp(held, 1.0, most_at_a_time);
  if (r.in_turn) r.units = 1;
  const bool decodes = r.what == Request::What::whole || r.what == Request::What::decoding;
  const bool reads = r.what != Request::What::decoding;
  // Stages work on as many groups of the batch at the same time.
  const double groups = std::min(r.stages, r.batch);
  const double steps = decodes ? std::max(1.0, r.out) : 1;
  // What does not fit beside the weights waits until others have ended.
  const double turns = held >= 1 ? std::max(1.0, r.batch / held) : 1, batch = r.batch / turns / groups;
  const double peak = machine.peak(r.type) * r.units, rate = machine.memory_rate * r.units;
  LawCall call{.family = "language generation", .call = {}};
  Terms& t = call.call.terms;
  t.launches = turns * steps * model.layers;
  if (reads) call.flops = prompt_flops(model, r.batch * r.in / groups, r.in);
  t.serial = call.flops / peak;
  double tokens = reads ? r.batch * r.in / groups : 0;
  if (decodes) {
    const double context = half_bytes * model.cache_values() * batch * (r.in + r.out / 2);
    t.memory = turns * steps * weight_bytes(r.type) * touched_weights(model, batch) / rate;
    t.grouped = turns * steps * context / rate;
    const double flops = turns * steps * batch * 2 * (model.active_weights() + model.word_weights());
    t.compute = flops / peak;
    call.flops += flops;
    tokens += r.batch * r.out / groups;
    t.vectors = bookkeeping * steps * r.batch;
  }
  if (r.units > 1) {
    t.collectives = turns * steps * 2 * model.layers;
    t.link = tokens * exchanged_bytes(model, r.units) / link_rate_of(machine);
  }
  t.collectives += turns * steps * (r.stages - 1);  // what a stage hands on
  call.peak_seconds = t.serial + t.compute;
  call.roofline_seconds = t.serial + std::max(t.compute, t.memory + t.grouped);
  const char* law = r.what == Request::What::whole      ? "generation"
                    : r.what == Request::What::decoding ? "decoding"
                                                        : "prompts";
  file_language(machine, law, {}, r.software, r.type, call, first ? " first token" : "");
  return call;
}

// Model FLOP of a token in training: 6 a weight, attention 12 a layer and position, of which a causal mask
// leaves half, which published rates do not count (A. Chowdhery et al., arXiv 2204.02311).
double training_flops(const ModelFacts& model, double length) {
  return 6 * (model.active_weights() + model.word_weights()) + 12 * model.layers * model.width * length;
}

LawCall language_training_call(const MachineFacts& machine, const ModelFacts& model,
                               const LanguageTraining& training) {
  LawCall call{.family = "language training", .call = {}};
  constexpr double with_recomputation = 4.0 / 3;  // the forward pass, a third of a step, once more
  const double peak = machine.peak(training.type), passes = training.recomputes ? with_recomputation : 1.0;
  call.flops = training_flops(model, training.length);
  const double attention = 12 * model.layers * model.width * training.length;
  const double tokens = std::max(1.0, training.micro_batch) * training.length;
  Terms& t = call.call.terms;
  t.launches = training.micro_batch > 0 ? model.layers / tokens : 0;
  t.serial = passes * (call.flops - attention) / peak;
  t.grouped = passes * attention / peak;
  // Activations of a layer that are written and read, in values of a token: 34 (V. Korthikanti et al., arXiv
  // 2205.05198, table 2, without attention's square).
  constexpr double values_of_layer = 34;
  t.vectors = passes * values_of_layer * model.layers * model.width * half_bytes / machine.memory_rate;
  if (training.sharded && training.units > 1) {
    const double rate = training.network_rate > 0 ? training.network_rate : link_rate_of(machine);
    // Weights are gathered in both passes and gradients scattered.
    t.link = 3 * half_bytes * model.all_weights() / tokens / rate;
  }
  call.peak_seconds = call.flops / peak;
  call.roofline_seconds = std::max(call.peak_seconds, t.vectors);
  file_language(machine, "language training", training.with_evaluation ? "with evaluation " : "",
                training.software, training.type, call);
  return call;
}

LawCall language_pass_call(const MachineFacts& machine, const ModelFacts& model, double length, double batch,
                           bool training, const std::string& software, const std::string& type) {
  LawCall call{.family = "models under frameworks", .call = {}};
  const double passes = training ? 3 : 1, tokens = batch * length;
  const double attention = 2 * model.layers * model.width * 2 * length * tokens;
  call.flops = passes * (tokens * 2 * (model.active_weights() + model.word_weights()) + attention);
  Terms& t = call.call.terms;
  const double element = bytes_of_type(type);
  t.launches = passes * model.layers;
  t.serial = call.flops / machine.peak(type);
  // Scores of attention are written and read by some six operators, where no kernel keeps them (chosen).
  constexpr double values_of_layer = 34, score_passes = 6;
  const double values =
      values_of_layer * model.layers * model.width + score_passes * model.layers * model.heads * length;
  t.vectors = passes * tokens * values * element / machine.memory_rate;
  t.memory = passes * element * (model.all_weights()) / machine.memory_rate;
  call.peak_seconds = t.serial;
  call.roofline_seconds = std::max(t.serial, t.memory);
  file_language(machine, "pass of a language model", training ? "training " : "", software, type, call);
  return call;
}

}  // namespace superstep::machine
