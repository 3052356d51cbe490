// Models with their parameters, at any batch.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/bindings.h"
#include "python/src/setting.h"
#include "python/src/watch.h"

namespace superstep::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

struct HeldModel {
  superstep::Model model;
};

std::vector<std::string> texts(nb::dict settings, const char* name) {
  return setting<std::vector<std::string>>(settings, name);
}

HeldModel* open(const std::string& what, nb::dict given) {
  ModelSettings settings;
  settings.options = texts(given, "options");
  settings.shapes = texts(given, "shapes");
  settings.bounds = texts(given, "bounds");
  settings.train = texts(given, "train");
  settings.freeze = texts(given, "freeze");
  settings.loss = setting<std::string>(given, "loss");
  settings.seed = setting<std::uint64_t>(given, "seed");
  return new HeldModel{Watch().call([&] { return superstep::Model(what, settings); })};
}

HeldModel* open_run(const std::filesystem::path& folder) {
  return new HeldModel{Watch().call([&] { return superstep::Model::from_run(folder); })};
}

// Rows of samples, by input.
NamedValues calibration_of(const superstep::Model& model, nb::dict given) {
  NamedValues values;
  for (const Port& port : model.inputs()) {
    if (!given.contains(port.name.c_str())) continue;
    const nb::object array = given[port.name.c_str()];
    std::vector<std::int64_t> extents = port.shape.extents();
    if (!extents.empty()) extents[0] = nb::cast<std::int64_t>(array.attr("shape")[0]);
    const Port rows{port.name, port.element, Shape(extents)};
    values.emplace(port.name, Given(array, rows).tensor().clone());
  }
  return values;
}

CompileSettings compile_settings(const superstep::Model& model, nb::dict given) {
  return {.batch = setting<std::int64_t>(given, "batch"),
          .micro_batch = setting<std::int64_t>(given, "micro_batch"),
          .precision = setting<std::string>(given, "precision"),
          .target = setting<std::string>(given, "target"),
          .threads = setting<int>(given, "threads"),
          .memory_limit = setting<std::size_t>(given, "memory_limit"),
          .calibration = calibration_of(model, setting<nb::dict>(given, "calibration"))};
}

HeldSession* compile(const HeldModel& held, nb::dict given) {
  const CompileSettings settings = compile_settings(held.model, given);
  return new HeldSession(Watch().call([&] { return held.model.compile(settings); }));
}

HeldSession* gradient(const HeldModel& held, nb::dict given) {
  const CompileSettings settings = compile_settings(held.model, given);
  return new HeldSession(Watch().call([&] { return held.model.gradient(settings); }));
}

HeldTrainer* trainer(const HeldModel& held, nb::dict given, const std::string& optimizer,
                     double learning_rate) {
  const CompileSettings settings = compile_settings(held.model, given);
  return new HeldTrainer(Watch().call([&] {
    return held.model.trainer(settings, {.optimizer = optimizer, .learning_rate = learning_rate});
  }));
}

void set_parameter(HeldModel& held, const std::string& name, nb::handle value) {
  for (const Port& port : held.model.parameters())
    if (port.name == name) return held.model.set_parameter(name, Given(value, port).tensor());
  held.model.set_parameter(name, Tensor());  // says what there is
}

void write_onnx(const HeldModel& held, const std::filesystem::path& file, int opset, std::int64_t batch) {
  Watch().call([&] { held.model.write_onnx(file, {.opset = opset, .batch = batch}); });
}

void write_network(const std::filesystem::path& file, const std::vector<std::int64_t>& widths,
                   const std::string& activation, std::uint64_t seed) {
  Watch().call(
      [&] { write_dense_network(file, {.widths = widths, .activation = activation, .seed = seed}); });
}

}  // namespace

void bind_models(nb::module_& module) {
  nb::class_<HeldModel>(module, "Model", "A model with its parameters (superstep.Model).")
      .def("name", [](const HeldModel& held) { return held.model.name(); })
      .def("fixed_batch", [](const HeldModel& held) { return held.model.fixed_batch(); })
      .def(
          "inputs",
          [](const HeldModel& held, std::int64_t batch) { return described(held.model.inputs(batch)); },
          "batch"_a)
      .def(
          "outputs",
          [](const HeldModel& held, std::int64_t batch) { return described(held.model.outputs(batch)); },
          "batch"_a)
      .def(
          "targets",
          [](const HeldModel& held, std::int64_t batch) { return described(held.model.targets(batch)); },
          "batch"_a)
      .def("parameters", [](const HeldModel& held) { return described(held.model.parameters()); })
      .def(
          "parameter",
          [](const HeldModel& held, const std::string& name) {
            return array_of(held.model.parameter(name), name);
          },
          "name"_a)
      .def("set_parameter", set_parameter, "name"_a, "value"_a)
      .def(
          "take_parameters",
          [](HeldModel& held, const HeldTrainer& from) { held.model.take_parameters(from.trainer); },
          "trainer"_a)
      .def("compile", compile, "settings"_a)
      .def("gradient", gradient, "settings"_a)
      .def("trainer", trainer, "settings"_a, "optimizer"_a, "learning_rate"_a)
      .def("write_onnx", write_onnx, "file"_a, "opset"_a, "batch"_a);
  module.def("open_model", open, "what"_a, "settings"_a);
  module.def("open_run", open_run, "folder"_a);
  module.def("write_dense_network", write_network, "file"_a, "widths"_a, "activation"_a, "seed"_a);
}

}  // namespace superstep::python
