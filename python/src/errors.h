// Errors of the library as exceptions of Python, and its calls without the lock of the interpreter.
#pragma once

#include <nanobind/nanobind.h>

#include "superstep/base/error.h"

namespace superstep::python {

// superstep.errors.Error's class of this kind is raised wherever the library throws an Error.
void register_errors();

}  // namespace superstep::python
