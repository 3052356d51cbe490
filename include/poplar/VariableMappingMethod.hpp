// How the elements of a new variable are laid on tiles.
#ifndef poplar_VariableMappingMethod_hpp
#define poplar_VariableMappingMethod_hpp

namespace poplar {

enum class VariableMappingMethod {
  NONE,   // on none: setTileMapping follows
  LINEAR  // equal shares, in order, over all tiles
};

}  // namespace poplar

#endif
