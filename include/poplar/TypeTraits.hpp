// What the library must know of a type of the host to read values of it.
#ifndef poplar_TypeTraits_hpp
#define poplar_TypeTraits_hpp

#include <cstddef>
#include <type_traits>

namespace poplar {

struct TypeTraits {
  std::size_t size;   // bytes of one value
  std::size_t align;  // bytes
  bool isFloat;
  bool isSigned;

  template <class T>
  static constexpr bool isSimpleType() {
    return std::is_arithmetic<T>::value;
  }
  template <class T>
  static TypeTraits make() {
    static_assert(std::is_arithmetic<T>::value, "a type of numbers is needed");
    return TypeTraits{sizeof(T), alignof(T), std::is_floating_point<T>::value, std::is_signed<T>::value};
  }
};

}  // namespace poplar

#endif
