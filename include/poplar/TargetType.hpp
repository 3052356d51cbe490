// Kinds of targets.
#ifndef poplar_TargetType_hpp
#define poplar_TargetType_hpp

#include <string>

#pragma GCC visibility push(default)

namespace poplar {

enum class TargetType { IPU, IPU_MODEL, CPU };
std::string toString(TargetType type);  // "IPU", "IPU_MODEL", "CPU"

}  // namespace poplar

#pragma GCC visibility pop

#endif
