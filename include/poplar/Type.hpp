// Element types of tensors.
#ifndef poplar_Type_hpp
#define poplar_Type_hpp

// Programs use some of these without including them.
#include <cassert>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <ostream>
#include <poplar/StringRef.hpp>
#include <string>

#pragma GCC visibility push(default)

namespace poplar {

class Type {
 public:
  // Numbers of the types, in the order in which they compare.
  enum Id : unsigned char {
    BOOL_ID,
    CHAR_ID,
    UNSIGNED_CHAR_ID,
    SIGNED_CHAR_ID,
    UNSIGNED_SHORT_ID,
    SHORT_ID,
    UNSIGNED_INT_ID,
    INT_ID,
    UNSIGNED_LONG_ID,
    LONG_ID,
    UNSIGNED_LONGLONG_ID,
    LONGLONG_ID,
    HALF_ID,
    FLOAT_ID,
    NO_TYPE_ID
  };

  constexpr Type() : id_(NO_TYPE_ID) {}
  constexpr explicit Type(Id id) : id_(id) {}

  // As in names of vertices: "float", "half", "unsigned int", "bool".
  std::string toString() const;
  bool isFloatingPoint() const { return id_ == HALF_ID || id_ == FLOAT_ID; }
  constexpr Id id() const { return id_; }
  std::size_t hash() const { return id_; }

  friend constexpr bool operator==(const Type& a, const Type& b) { return a.id_ == b.id_; }
  friend constexpr bool operator!=(const Type& a, const Type& b) { return a.id_ != b.id_; }
  friend constexpr bool operator<(const Type& a, const Type& b) { return a.id_ < b.id_; }

 private:
  Id id_;
};

std::ostream& operator<<(std::ostream& out, const Type& type);

// Constants of the library: they may be used before main() begins.
extern const Type BOOL, CHAR, UNSIGNED_CHAR, SIGNED_CHAR, UNSIGNED_SHORT, SHORT, UNSIGNED_INT, INT,
    UNSIGNED_LONG, LONG, UNSIGNED_LONGLONG, LONGLONG, HALF, FLOAT;

// The type of a device tensor that holds values of a type of the host.
template <class T>
struct equivalent_device_type;
#define POPLAR_DEVICE_TYPE(host, id)              \
  template <>                                     \
  struct equivalent_device_type<host> {           \
    const Type value;                             \
    equivalent_device_type() : value(Type::id) {} \
  };
POPLAR_DEVICE_TYPE(bool, BOOL_ID)
POPLAR_DEVICE_TYPE(char, CHAR_ID)
POPLAR_DEVICE_TYPE(signed char, SIGNED_CHAR_ID)
POPLAR_DEVICE_TYPE(unsigned char, UNSIGNED_CHAR_ID)
POPLAR_DEVICE_TYPE(short, SHORT_ID)
POPLAR_DEVICE_TYPE(unsigned short, UNSIGNED_SHORT_ID)
POPLAR_DEVICE_TYPE(int, INT_ID)
POPLAR_DEVICE_TYPE(unsigned int, UNSIGNED_INT_ID)
POPLAR_DEVICE_TYPE(long, LONG_ID)
POPLAR_DEVICE_TYPE(unsigned long, UNSIGNED_LONG_ID)
POPLAR_DEVICE_TYPE(long long, LONGLONG_ID)
POPLAR_DEVICE_TYPE(unsigned long long, UNSIGNED_LONGLONG_ID)
POPLAR_DEVICE_TYPE(float, FLOAT_ID)
#undef POPLAR_DEVICE_TYPE

}  // namespace poplar

namespace std {
template <>
struct hash<poplar::Type> {
  std::size_t operator()(const poplar::Type& type) const { return type.hash(); }
};
}  // namespace std

#pragma GCC visibility pop

#endif
