// Types of a tile's registers, as codelets name them.
#ifndef ipudef_h
#define ipudef_h

#include <poplar/VectorTypes.hpp>

#endif
