// Short vectors of codelets: what a tile loads in one instruction. Clang's own, element by element on this
// host.
#ifndef poplar_VectorTypes_hpp
#define poplar_VectorTypes_hpp

#include <poplar/HalfFloat.hpp>

#ifdef __clang__
#define POPLAR_VECTOR(element, name, count) typedef element name __attribute__((ext_vector_type(count)));
POPLAR_VECTOR(float, float2, 2)
POPLAR_VECTOR(float, float4, 4)
#ifdef __FLT16_MAX__
POPLAR_VECTOR(_Float16, half2, 2)
POPLAR_VECTOR(_Float16, half4, 4)
#endif
POPLAR_VECTOR(char, char2, 2)
POPLAR_VECTOR(char, char4, 4)
POPLAR_VECTOR(unsigned char, uchar2, 2)
POPLAR_VECTOR(unsigned char, uchar4, 4)
POPLAR_VECTOR(short, short2, 2)
POPLAR_VECTOR(short, short4, 4)
POPLAR_VECTOR(unsigned short, ushort2, 2)
POPLAR_VECTOR(unsigned short, ushort4, 4)
POPLAR_VECTOR(int, int2, 2)
POPLAR_VECTOR(int, int4, 4)
POPLAR_VECTOR(unsigned int, uint2, 2)
POPLAR_VECTOR(unsigned int, uint4, 4)
POPLAR_VECTOR(int, long2, 2)  // a long has 32 bits on a tile
POPLAR_VECTOR(unsigned int, ulong2, 2)
POPLAR_VECTOR(long long, longlong2, 2)
#undef POPLAR_VECTOR
#endif

#endif
