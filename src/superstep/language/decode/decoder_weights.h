// The weights of a decoder, found by name in a file.
#pragma once

#include <vector>

#include "superstep/language/decode/matrix.h"
#include "superstep/language/model_config.h"

namespace superstep::language {

using Numbers = std::vector<float>;  // empty: there are none

struct Linear {
  Matrix matrix;  // [features, in]
  Numbers bias;
};

struct Norm {
  Numbers scale, bias;
};

struct LayerWeights {
  Norm before_attention, before_inner;
  std::vector<Linear> in;  // query, key, value; or all three in one
  Linear out;
  std::vector<Linear> inner;  // what goes in; of gated layers the gate before it
  Linear outer;
};

struct DecoderWeights {
  Matrix words, positions, head;  // positions: empty where they are rotary
  std::vector<LayerWeights> layers;
  Norm norm;
  bool pairs_are_neighbours = false;  // that rotary positions turn; else halves of a head
};

// Throws Error: bad_file that lists every array that is missing or of another shape; unsupported that names
// those that the model has no use for.
DecoderWeights decoder_weights(const data::WeightFile& file, const ModelConfig& config);

}  // namespace superstep::language
