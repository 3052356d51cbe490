#include "python/src/errors.h"

#include <nanobind/stl/string.h>

namespace superstep::python {
namespace {

namespace nb = nanobind;

void raise(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const nb::object make = nb::module_::import_("superstep.errors").attr("of_kind");
    const nb::object made = make(name_of(error.code()), error.message(), error.where(), error.hint());
    PyErr_SetObject(made.type().ptr(), made.ptr());
  }
}

}  // namespace

void register_errors() { nb::register_exception_translator(raise); }

}  // namespace superstep::python
