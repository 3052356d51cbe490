#include "superstep/lab/validate/tables/call.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "superstep/base/text.h"
#include "superstep/lab/validate/tables/zoo_facts.h"

namespace superstep::lab {
namespace {

using Make = bool (*)(const RowAt&, TableCall&);

// The first whose prefix a workload has.
struct Primitive {
  std::string_view prefix;
  Make make;
};
constexpr std::array primitives{Primitive{"gemm_", product_row},     Primitive{"bgemm_", product_row},
                                Primitive{"conv_", convolution_row}, Primitive{"rnn_", recurrent_row},
                                Primitive{"lstm_", recurrent_row},   Primitive{"gru_", recurrent_row}};

bool is_model(const std::string& workload) {
  return workload.starts_with("onnx:") || workload.starts_with("llm:");
}

// What is known of a network by its operators, under its own name or the zoo's.
const ModelFacts* by_operators(const std::string& name, const TableFacts& facts) {
  constexpr std::string_view prefix = "onnx:";
  const std::string published = name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  const auto key = std::pair(published, std::int64_t{0});
  auto found = facts.zoo.find(key);
  if (found == facts.zoo.end()) {
    const auto sums = machine::known_network(published);
    found = facts.zoo.emplace(key, sums ? ModelFacts{.kind = "model", .sums = *sums} : ModelFacts{}).first;
  }
  return found->second.sums.macs > 0 ? &found->second : nullptr;
}

// Facts of a table's model; of the zoo's own where the table has none. Null: nothing is known.
const ModelFacts* model_of(const RowAt& row, const TableFacts& facts, const std::string& name) {
  if (const ModelFacts* known = by_operators(name, facts)) return known;
  const auto stated = facts.models.find(name);
  if (stated != facts.models.end() && (stated->second.sums.macs > 0 || stated->second.layers > 0))
    return &stated->second;
  const auto length = static_cast<std::int64_t>(number_behind(row.text("note"), "sequence length "));
  const auto key = std::pair("zoo " + name, length);
  auto found = facts.zoo.find(key);
  if (found == facts.zoo.end())
    found = facts.zoo.emplace(key, zoo_facts(name, length).value_or(ModelFacts{})).first;
  if (found->second.sums.macs > 0) return &found->second;
  return stated != facts.models.end() ? &stated->second : nullptr;
}

// A system's name in the row's place goes before its machine: results of Gaudi 2 came as those of a Gaudi.
std::string machine_of(const PublishedTable& table, std::size_t row) {
  const std::string& named = table.text(row, "machine");
  const bool second = table.text(row, "place").find("Gaudi2") != std::string::npos;
  return named == "gaudi1" && second ? "gaudi2" : named;
}

void fill(const RowAt& row, const TableFacts& facts, TableCall& call) {
  if (row.text("mode") == "collective") {
    collective_row(row, call);
    return;
  }
  for (const Primitive& primitive : primitives)
    if (call.model.starts_with(primitive.prefix)) {
      if (row.machine.peak(call.precision) <= 0)
        call.reason = "no peak is known of " + call.machine;
      else
        primitive.make(row, call);
      return;
    }
  const ModelFacts* model = model_of(row, facts, call.model);
  if (is_model(call.model) && !model)
    call.reason = "no facts of the model " + call.model;
  else if (call.model.starts_with("llm:"))
    language_row(row, *model, call);
  else if (model)
    network_row(row, *model, call);
  else
    vector_row(row, call);
}

}  // namespace

double number_behind(const std::string& note, std::string_view word) {
  std::size_t at = note.find(word);
  while (at != std::string::npos && at > 0 && note[at - 1] != ' ' && note[at - 1] != ';')
    at = note.find(word, at + 1);
  return at == std::string::npos ? 0 : std::atof(note.c_str() + at + word.size());
}

void TableCall::take(machine::LawCall asked) {
  law = std::move(asked);
  family = law.family;
  call = law.call;
  peak_seconds = law.peak_seconds;
  roofline_seconds = law.roofline_seconds;
}

TableCall call_of(const PublishedTable& table, std::size_t row, const TableFacts& facts) {
  TableCall call{.id = table.text(row, "id"),
                 .model = table.text(row, "workload"),
                 .machine = machine_of(table, row),
                 .source = table.text(row, "source"),
                 .software = table.text(row, "framework"),
                 .precision = table.text(row, "precision"),
                 .published = table.number(row, "value", 0)};
  call.family = "not understood";
  const auto machine = facts.machines.find(call.machine);
  if (machine == facts.machines.end()) {
    call.reason = "no facts of the machine " + call.machine;
    return call;
  }
  if (call.published <= 0) {
    call.reason = "its value is not above zero";
    return call;
  }
  fill({table, row, machine->second}, facts, call);
  if (!call.understood()) return call;
  const bool timed = call.peak_seconds > 0 || call.roofline_seconds > 0 || call.call.terms.launches > 0;
  if (!timed || call.amount <= 0) {
    call.reason = "nothing of it is known";
    return call;
  }
  call.call.seconds = call.is_rate ? call.amount / call.published : call.published / call.amount;
  // What must be several, lest a kind's constants are those of one: machines of kernels, else models.
  call.call.group = call.call.place.empty() ? call.model : call.machine;
  call.call.may_be_kept =
      call.source.find("Apache-2.0") != std::string::npos || call.source.find("MIT") != std::string::npos;
  return call;
}

}  // namespace superstep::lab
