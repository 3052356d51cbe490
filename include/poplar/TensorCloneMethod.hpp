// How the clone of a tensor lies in memory.
#ifndef poplar_TensorCloneMethod_hpp
#define poplar_TensorCloneMethod_hpp

#include <ostream>
#include <string>

#pragma GCC visibility push(default)

namespace poplar {

enum class TensorCloneMethod {
  PRESERVE_ORDER_AND_ALIASES,     // the same expression over new variables
  CREATE_NEW_ORDER,               // a new variable, row-major
  PRESERVE_ORDER_UNLESS_ALIASES,  // as the first when no element stands at two places, else as the second
  GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES
};

// How several clones in one tensor lie beside each other.
enum class TensorCloneDuplicationMethod {
  DUPLICATE_BY_OUTER_DIMENSION,        // one after the other
  DUPLICATE_BY_TILE_CONTIGUOUS_REGION  // what lies together on a tile, one after the other
};
std::string toString(const TensorCloneMethod& method);
std::ostream& operator<<(std::ostream& out, const TensorCloneMethod& method);

}  // namespace poplar

#pragma GCC visibility pop

#endif
