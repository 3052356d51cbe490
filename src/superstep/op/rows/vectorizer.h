// Counting n-grams in sequences of numbers.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

std::span<const Definition> vectorizer_operators();  // TfIdfVectorizer

}  // namespace superstep::op
