// Training steps: one batch at a time.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/bindings.h"
#include "python/src/watch.h"

namespace superstep::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

double step(HeldTrainer& held, nb::tuple arrays, nb::dict named, double learning_rate) {
  require_same_process(held.made_after_forks, "trainer");
  const std::vector<Port>& ports = held.trainer.inputs();
  const std::vector<Given> given = given_for(ports, arrays, named);
  const std::vector<Tensor> values = tensors_of(given);
  const double loss = Watch().call([&] {
    const std::lock_guard lock(held.mutex);
    return held.trainer.step(values, learning_rate);
  });
  tell_of_copies(ports, given);
  return loss;
}

}  // namespace

void bind_trainers(nb::module_& module) {
  nb::class_<HeldTrainer>(module, "Trainer", "A compiled training step (superstep.Trainer).")
      .def("step", step, "arrays"_a, "named"_a, "learning_rate"_a, "One step; the loss before it.")
      .def("inputs", [](const HeldTrainer& held) { return described(held.trainer.inputs()); })
      .def("steps", [](const HeldTrainer& held) { return held.trainer.steps(); })
      .def("parameter_names", [](const HeldTrainer& held) { return held.trainer.parameter_names(); })
      .def(
          "parameter",
          [](HeldTrainer& held, const std::string& name) {
            return array_of(held.trainer.parameter(name), name);
          },
          "name"_a)
      .def(
          "set_parameter",
          [](HeldTrainer& held, const std::string& name, nb::handle value) {
            const std::lock_guard lock(held.mutex);
            held.trainer.set_parameter(name, tensor_given(value, name, held.trainer.parameter(name)));
          },
          "name"_a, "value"_a)
      .def(
          "save", [](HeldTrainer& held, const std::filesystem::path& file) { held.trainer.save(file); },
          "file"_a)
      .def(
          "restore",
          [](HeldTrainer& held, const std::filesystem::path& file) {
            const std::lock_guard lock(held.mutex);
            held.trainer.restore(file);
          },
          "file"_a)
      .def("plan", [](const HeldTrainer& held) { return facts(held.trainer.plan()); });
}

}  // namespace superstep::python
