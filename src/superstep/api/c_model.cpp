#include "superstep/api/c_guard.h"
#include "superstep/api/c_settings.h"

using namespace superstep;
using namespace superstep::api;

namespace {

std::vector<std::string> list_of(const char* const* texts) {
  std::vector<std::string> list;
  for (; texts && *texts; ++texts) list.emplace_back(*texts);
  return list;
}

ModelSettings settings_from(const superstep_model_settings* given) {
  const auto settings =
      complete(given, superstep_model_settings SUPERSTEP_MODEL_SETTINGS_INIT, "superstep_model_settings");
  return {.options = list_of(settings.options),
          .shapes = list_of(settings.shapes),
          .bounds = list_of(settings.bounds),
          .train = list_of(settings.train),
          .freeze = list_of(settings.freeze),
          .loss = text_or_empty(settings.loss),
          .seed = settings.seed};
}

superstep_status give_ports(superstep_model* model, PortList superstep_model::*list,
                            const superstep_port** ports, std::size_t* count,
                            std::vector<Port> (*ask)(const Model&, std::int64_t), std::int64_t batch) {
  return guarded([&] {
    require(model, "model");
    (model->*list).set(ask(model->model, batch));
    (model->*list).give(ports, count);
  });
}

}  // namespace

superstep_status superstep_load_operators(const char* library) {
  return guarded([&] {
    require(library, "library");
    load_operators(library);
  });
}

superstep_status superstep_model_open(const char* what, const superstep_model_settings* settings,
                                      superstep_model** model) {
  return guarded([&] {
    require(what, "what");
    require(model, "model");
    *model = nullptr;
    *model = new superstep_model{Model(what, settings_from(settings)), {}, {}, {}, {}};
  });
}

superstep_status superstep_model_open_run(const char* folder, superstep_model** model) {
  return guarded([&] {
    require(folder, "folder");
    require(model, "model");
    *model = nullptr;
    *model = new superstep_model{Model::from_run(folder), {}, {}, {}, {}};
  });
}

void superstep_model_free(superstep_model* model) { delete model; }

superstep_status superstep_model_inputs(superstep_model* model, int64_t batch, const superstep_port** ports,
                                        size_t* count) {
  const auto ask = [](const Model& m, std::int64_t at) { return m.inputs(at); };
  return give_ports(model, &superstep_model::inputs, ports, count, ask, batch);
}

superstep_status superstep_model_outputs(superstep_model* model, int64_t batch, const superstep_port** ports,
                                         size_t* count) {
  const auto ask = [](const Model& m, std::int64_t at) { return m.outputs(at); };
  return give_ports(model, &superstep_model::outputs, ports, count, ask, batch);
}

superstep_status superstep_model_targets(superstep_model* model, int64_t batch, const superstep_port** ports,
                                         size_t* count) {
  const auto ask = [](const Model& m, std::int64_t at) { return m.targets(at); };
  return give_ports(model, &superstep_model::targets, ports, count, ask, batch);
}

superstep_status superstep_model_parameters(superstep_model* model, const superstep_port** ports,
                                            size_t* count) {
  const auto ask = [](const Model& m, std::int64_t) { return m.parameters(); };
  return give_ports(model, &superstep_model::parameters, ports, count, ask, 0);
}

superstep_status superstep_model_get_parameter(superstep_model* model, const char* name,
                                               const superstep_tensor* into) {
  return get_parameter(model, "model", &superstep_model::model, name, into);
}

superstep_status superstep_model_set_parameter(superstep_model* model, const char* name,
                                               const superstep_tensor* from) {
  return set_parameter(model, "model", &superstep_model::model, name, from);
}

superstep_status superstep_model_take_parameters(superstep_model* model, const superstep_trainer* trainer) {
  return guarded([&] {
    require(model, "model");
    require(trainer, "trainer");
    model->model.take_parameters(trainer->trainer);
  });
}

superstep_status superstep_model_write_onnx(const superstep_model* model, const char* file, int32_t opset,
                                            int64_t batch) {
  return guarded([&] {
    require(model, "model");
    require(file, "file");
    model->model.write_onnx(file, {.opset = opset, .batch = batch});
  });
}
