// What a model is, in sums alone, for laws of few constants (law.h): networks by what their operators ask of
// a machine, language models by their shape.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::machine {

// Of a forward pass of one sample. 0: not said.
struct NetworkSums {
  double kernels = 0;           // operators that are launched by themselves, none fused
  double macs = 0, padded = 0;  // multiply-adds of dense products; with channels rounded up to 64
  double grouped = 0;           // of grouped and depthwise convolutions
  double attention = 0;         // of products of two activations
  double product_elements = 0;  // values that products read and write
  double grouped_elements = 0;  // grouped convolutions
  double other_elements = 0;    // all other operators
  double parameters = 0, tensors = 0;
};

struct ModelFacts {
  std::string kind;  // "decoder", "model"
  NetworkSums sums;
  double layers = 0, width = 0, heads = 0, kv_heads = 0, ffn = 0, vocabulary = 0, sequence = 0;
  double experts = 0, active_experts = 0;
  bool gated = false;

  double head_width() const { return heads > 0 ? width / heads : 0; }
  // Of a decoder: weights of all layers and of those that a token passes, without its words.
  double layer_weights() const;
  double active_weights() const;
  double word_weights() const { return vocabulary * width; }
  double all_weights() const { return layer_weights() + 2 * word_weights(); }
  double cache_values() const { return 2 * layers * kv_heads * head_width(); }  // of a token
};

// The sums of a network of which multiply-adds, activations (outputs of products) and parameters alone are
// known, as networks of pictures have them in the mean.
NetworkSums typical_sums(double macs, double activations, double parameters);

// A network by its published name ("timm/resnet50d@224"), of machines/rates/networks.csv; at another size of
// its pictures what grows with them is scaled. Nothing where it is not known.
std::optional<NetworkSums> known_network(std::string_view name);
std::vector<std::string> known_networks();  // without sizes: "timm/resnet50d"

// A language model ("llama-3-8b"), of machines/rates/language.csv.
const ModelFacts* known_language_model(std::string_view name);
std::vector<std::string> known_language_models();

}  // namespace superstep::machine
