// Errors of the machine below, as the exceptions that a Poplar program catches.
#pragma once

#include <poplar/exceptions.hpp>

#include "superstep/base/error.h"

namespace poplar::core {

// Throws the exception that goes with the rule that was broken; else poplar_error, with the words of the
// error.
[[noreturn]] void rethrow(const superstep::Error& error);
// The same of an error while a program runs: what no rule names is an application_runtime_error.
[[noreturn]] void rethrow_running(const superstep::Error& error);

template <class F>
decltype(auto) guarded(F&& f) {
  try {
    return f();
  } catch (const superstep::Error& error) {
    rethrow(error);
  }
}

template <class F>
decltype(auto) guarded_running(F&& f) {
  try {
    return f();
  } catch (const superstep::Error& error) {
    rethrow_running(error);
  }
}

}  // namespace poplar::core
