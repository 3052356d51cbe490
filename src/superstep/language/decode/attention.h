// Attention of a panel of tokens (panels.h) over all positions up to each one's own.
//
// Keys are the rows of a product with the queries, values the columns of one with what the scores leave:
// lanes are tokens in all of it, so that a position is read once for vectors of tokens.
#pragma once

#include <cstdint>

#include "superstep/base/tensor.h"
#include "superstep/language/decode/cache.h"

namespace superstep::language {

// Tokens one after another in a text, the first at `position`; of a token one head's numbers.
struct PanelOfQueries {
  const float* values;  // [token], `stride` numbers apart
  std::int64_t stride, tokens, position;
};

class PanelAttention {
 public:
  // `positions`: of the longest text, up to which scores are kept.
  PanelAttention(std::int64_t head_size, std::int64_t positions);

  // mixed [token], `stride` numbers apart: values by their shares. At most panel_width() tokens.
  void operator()(KeyValueCache& cache, std::int64_t layer, std::int64_t key_head,
                  const PanelOfQueries& queries, float* mixed, std::int64_t stride);

 private:
  std::int64_t size_, width_;
  Tensor queries_, scores_, mixed_;  // [number][token], [position][token], [number][token]
};

}  // namespace superstep::language
