// Facts of machines and models that lie beside tables of measurements: machines-facts.csv and models.csv.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "superstep/machine/rates/facts.h"

namespace superstep::lab {

// What a network is, in sums alone. 0: not said.
struct ModelFacts {
  std::string kind;                                  // "decoder", "model"
  double parameters = 0, macs = 0, activations = 0;  // of a sample's forward pass
  double layers = 0, width = 0, heads = 0, kv_heads = 0, ffn = 0, vocabulary = 0, sequence = 0;
  double experts = 0, active_experts = 0;
  bool gated = false;

  double head_width() const { return heads > 0 ? width / heads : 0; }
  // Of a decoder: weights of all layers and of those that a token passes, without its words.
  double layer_weights() const;
  double active_weights() const;
  double word_weights() const { return vocabulary * width; }
  double cache_values() const { return 2 * layers * kv_heads * head_width(); }  // of a token
};

struct TableFacts {
  std::map<std::string, machine::MachineFacts> machines;
  std::map<std::string, ModelFacts> models;
  // Of the zoo's, by name and length of sequences; made when they are asked for.
  mutable std::map<std::pair<std::string, std::int64_t>, ModelFacts> zoo;
};

// Of a folder; files that are not there say nothing. Built-in machines that no line is of are added. Throws
// Error (bad_file).
TableFacts read_table_facts(const std::filesystem::path& folder);

}  // namespace superstep::lab
