// How a vertex's vectors lie in its state: what the state costs in bytes. The values are the same in any
// layout.
#ifndef poplar_VectorLayout_hpp
#define poplar_VectorLayout_hpp

namespace poplar {

enum class VectorLayout : unsigned char {
  NOT_A_VECTOR,
  SPAN,          // pointer and 32-bit count
  SHORT_SPAN,    // pointer and 11-bit count in one word
  ONE_PTR,       // pointer alone
  SCALED_PTR32,  // 16-bit pointers, in units of 4, 8 and 16 bytes
  SCALED_PTR64,
  SCALED_PTR128,
  COMPACT_PTR  // the smallest pointer that the target has for the alignment
};

enum class VectorListLayout : unsigned char {
  NOT_A_VECTOR,
  ONE_PTR,
  SCALED_PTR32,
  SCALED_PTR64,
  SCALED_PTR128,
  DELTAN,
  DELTANELEMENTS,
  COMPACT_DELTAN
};

// What a target makes of them: estimators of cost ask for these.
namespace layout {
enum class Vector { NotAVector, Span, ShortSpan, OnePtr, ScaledPtr32, ScaledPtr64, ScaledPtr128 };
enum class VectorList { NotAVector, OnePtr, ScaledPtr32, ScaledPtr64, ScaledPtr128, DeltaN, DeltaNElements };
inline const char* to_string(Vector layout) {
  const char* const names[] = {"NotAVector",  "Span",        "ShortSpan",   "OnePtr",
                               "ScaledPtr32", "ScaledPtr64", "ScaledPtr128"};
  return names[static_cast<int>(layout)];
}
inline const char* to_string(VectorList layout) {
  const char* const names[] = {"NotAVector",   "OnePtr", "ScaledPtr32",   "ScaledPtr64",
                               "ScaledPtr128", "DeltaN", "DeltaNElements"};
  return names[static_cast<int>(layout)];
}
}  // namespace layout

}  // namespace poplar

#endif
