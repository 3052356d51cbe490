// The module superstep._core: the library's interface as Python calls it. superstep/*.py is what users see.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/bindings.h"
#include "python/src/errors.h"

NB_MODULE(_core, module) {
  namespace python = superstep::python;
  python::register_errors();
  python::forks();  // counts from now on
  python::bind_sessions(module);
  python::bind_trainers(module);
  python::bind_models(module);
  python::bind_training(module);
  python::bind_force_fields(module);
  python::bind_machine(module);
  module.def("version", superstep::version);
  module.def("load_operators", [](const std::string& library) { superstep::load_operators(library); });
  module.def("zoo", superstep::zoo);
  module.def("targets", superstep::targets);
}
