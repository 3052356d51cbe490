#include "superstep/poplar/core/types.h"

#include <poplar/TensorCloneMethod.hpp>
#include <poplar/exceptions.hpp>

namespace poplar {
namespace {

struct NamedType {
  Type::Id id;
  const char* name;
  superstep::bsp::Type machine;
};

using Machine = superstep::bsp::Type;

constexpr std::array<NamedType, 14> named_types{{
    {Type::BOOL_ID, "bool", Machine::boolean},
    {Type::CHAR_ID, "char", Machine::i8},
    {Type::UNSIGNED_CHAR_ID, "unsigned char", Machine::u8},
    {Type::SIGNED_CHAR_ID, "signed char", Machine::i8},
    {Type::UNSIGNED_SHORT_ID, "unsigned short", Machine::u16},
    {Type::SHORT_ID, "short", Machine::i16},
    {Type::UNSIGNED_INT_ID, "unsigned int", Machine::u32},
    {Type::INT_ID, "int", Machine::i32},
    {Type::UNSIGNED_LONG_ID, "unsigned long", Machine::u32},
    {Type::LONG_ID, "long", Machine::i32},
    {Type::UNSIGNED_LONGLONG_ID, "unsigned long long", Machine::u64},
    {Type::LONGLONG_ID, "long long", Machine::i64},
    {Type::HALF_ID, "half", Machine::f16},
    {Type::FLOAT_ID, "float", Machine::f32},
}};

}  // namespace

constinit const Type BOOL(Type::BOOL_ID), CHAR(Type::CHAR_ID), UNSIGNED_CHAR(Type::UNSIGNED_CHAR_ID),
    SIGNED_CHAR(Type::SIGNED_CHAR_ID), UNSIGNED_SHORT(Type::UNSIGNED_SHORT_ID), SHORT(Type::SHORT_ID),
    UNSIGNED_INT(Type::UNSIGNED_INT_ID), INT(Type::INT_ID), UNSIGNED_LONG(Type::UNSIGNED_LONG_ID),
    LONG(Type::LONG_ID), UNSIGNED_LONGLONG(Type::UNSIGNED_LONGLONG_ID), LONGLONG(Type::LONGLONG_ID),
    HALF(Type::HALF_ID), FLOAT(Type::FLOAT_ID);

std::string Type::toString() const {
  return id_ < named_types.size() ? named_types[id_].name : std::string("(no type)");
}

std::ostream& operator<<(std::ostream& out, const Type& type) { return out << type.toString(); }

std::string toString(const TensorCloneMethod& method) {
  switch (method) {
    case TensorCloneMethod::PRESERVE_ORDER_AND_ALIASES: return "PRESERVE_ORDER_AND_ALIASES";
    case TensorCloneMethod::CREATE_NEW_ORDER: return "CREATE_NEW_ORDER";
    case TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES: return "PRESERVE_ORDER_UNLESS_ALIASES";
    case TensorCloneMethod::GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES:
      return "GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES";
  }
  return "?";
}

std::ostream& operator<<(std::ostream& out, const TensorCloneMethod& method) {
  return out << toString(method);
}

namespace core {

superstep::bsp::Type machine_type(const poplar::Type& type) {
  if (type.id() >= named_types.size()) throw type_error("a tensor needs an element type: FLOAT, INT, ...");
  return named_types[type.id()].machine;
}

}  // namespace core
}  // namespace poplar
