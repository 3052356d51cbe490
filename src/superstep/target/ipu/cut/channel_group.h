// How channels lie on tiles: in groups, innermost, as products read and write them.
#pragma once

#include "superstep/graph/graph.h"

namespace superstep::target::ipu {

inline constexpr std::int64_t channel_group = 8;

// Images [N, C, positions] whose channels are whole groups.
inline bool has_channel_groups(const graph::ValueType& type) {
  return type.shape.rank() >= 3 && type.shape[1] % channel_group == 0 && type.shape.element_count() > 0;
}

}  // namespace superstep::target::ipu
