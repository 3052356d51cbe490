// The operators on rows of features in ONNX's domain ai.onnx.ml that compute with numbers alone.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

// ArrayFeatureExtractor Binarizer Normalizer Scaler LinearRegressor
std::span<const Definition> feature_operators();

}  // namespace superstep::op
