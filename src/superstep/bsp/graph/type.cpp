#include "superstep/bsp/graph/type.h"

namespace superstep::bsp {

bool is_device_type(Type type) { return type != Type::f64 && type != Type::bf16; }

std::string device_name(Type type) {
  switch (type) {
    case Type::f32: return "float";
    case Type::f16: return "half";
    case Type::i64: return "long_long";
    case Type::i32: return "int";
    case Type::i16: return "short";
    case Type::i8: return "signed_char";
    case Type::u64: return "unsigned_long_long";
    case Type::u32: return "unsigned_int";
    case Type::u16: return "unsigned_short";
    case Type::u8: return "unsigned_char";
    default: return name_of(type);
  }
}

}  // namespace superstep::bsp
