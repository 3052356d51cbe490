// Values that Python gives by name, as the type that is wanted.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <concepts>
#include <string>
#include <vector>

#include "superstep/superstep.h"

namespace superstep::python {

// "a whole number", as an error says what is wanted.
template <class T>
constexpr const char* words_for() {
  if constexpr (std::same_as<T, bool>)
    return "True or False";
  else if constexpr (std::unsigned_integral<T>)
    return "a whole number from 0 on";
  else if constexpr (std::integral<T>)
    return "a whole number";
  else if constexpr (std::floating_point<T>)
    return "a number";
  else if constexpr (std::same_as<T, std::string>)
    return "a text";
  else if constexpr (std::same_as<T, std::vector<std::string>>)
    return "a list of texts";
  else
    return "a mapping";
}

// Throws Error (invalid_argument) naming the setting, what it is and what it should be. The call holds the
// interpreter's lock.
template <class T>
T setting(nanobind::dict given, const char* name) {
  const nanobind::object value = given[name];
  T found{};
  if (nanobind::try_cast<T>(value, found)) return found;
  const auto text = nanobind::cast<std::string>(nanobind::repr(value));
  const auto type = nanobind::cast<std::string>(value.type().attr("__name__"));
  throw Error(ErrorCode::invalid_argument, "is " + text + " (" + type + "), not " + words_for<T>(), name);
}

}  // namespace superstep::python
