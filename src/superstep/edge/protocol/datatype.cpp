#include "superstep/edge/protocol/datatype.h"

namespace superstep::edge {

const char* datatype_of(ElementType type) {
  switch (type) {
    case ElementType::f64: return "FP64";
    case ElementType::f32: return "FP32";
    case ElementType::f16: return "FP16";
    case ElementType::bf16: return "BF16";
    case ElementType::i64: return "INT64";
    case ElementType::i32: return "INT32";
    case ElementType::i16: return "INT16";
    case ElementType::i8: return "INT8";
    case ElementType::u64: return "UINT64";
    case ElementType::u32: return "UINT32";
    case ElementType::u16: return "UINT16";
    case ElementType::u8: return "UINT8";
    case ElementType::boolean: return "BOOL";
  }
  return "?";
}

}  // namespace superstep::edge
