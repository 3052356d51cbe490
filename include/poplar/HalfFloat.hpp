// Half-precision numbers of codelets: 16 bits in memory, computed in single precision.
#ifndef poplar_HalfFloat_hpp
#define poplar_HalfFloat_hpp

#ifdef __FLT16_MAX__
using half = _Float16;
namespace poplar {
using ::half;
}
#endif

#endif
