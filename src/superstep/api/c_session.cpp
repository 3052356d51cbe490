#include "superstep/api/c_guard.h"
#include "superstep/api/c_settings.h"

namespace superstep::api {

CompileSettings settings_from(const superstep_compile_settings* given, const std::vector<Port>& inputs) {
  const auto settings = complete(given, superstep_compile_settings SUPERSTEP_COMPILE_SETTINGS_INIT,
                                 "superstep_compile_settings");
  CompileSettings result{.batch = settings.batch,
                         .micro_batch = settings.micro_batch,
                         .precision = settings.precision ? settings.precision : "f32",
                         .target = settings.target ? settings.target : "cpu",
                         .threads = settings.threads,
                         .memory_limit = static_cast<std::size_t>(settings.memory_limit),
                         .calibration = {}};
  if (settings.calibration_count == 0) return result;
  const std::vector<Tensor> samples = all_inputs(inputs, settings.calibration, settings.calibration_count);
  for (std::size_t i = 0; i < inputs.size(); ++i) result.calibration.emplace(inputs[i].name, samples[i]);
  return result;
}

}  // namespace superstep::api

using namespace superstep;
using namespace superstep::api;

namespace {

superstep_status create(const superstep_model* model, const superstep_compile_settings* settings,
                        superstep_session** session,
                        Session (Model::*compile)(const CompileSettings&) const) {
  return guarded([&] {
    require(model, "model");
    require(session, "session");
    *session = nullptr;
    std::unique_ptr<superstep_session> created(new superstep_session{
        (model->model.*compile)(settings_from(settings, model->model.inputs())), {}, {}});
    created->inputs.set(created->session.inputs());
    created->outputs.set(created->session.outputs());
    *session = created.release();
  });
}

}  // namespace

superstep_status superstep_session_create(const superstep_model* model,
                                          const superstep_compile_settings* settings,
                                          superstep_session** session) {
  return create(model, settings, session, &Model::compile);
}

superstep_status superstep_gradient_create(const superstep_model* model,
                                           const superstep_compile_settings* settings,
                                           superstep_session** session) {
  return create(model, settings, session, &Model::gradient);
}

void superstep_session_free(superstep_session* session) { delete session; }

superstep_status superstep_session_inputs(superstep_session* session, const superstep_port** ports,
                                          size_t* count) {
  return give_list(session, "session", &superstep_session::inputs, ports, count);
}

superstep_status superstep_session_outputs(superstep_session* session, const superstep_port** ports,
                                           size_t* count) {
  return give_list(session, "session", &superstep_session::outputs, ports, count);
}

superstep_status superstep_session_run(superstep_session* session, const superstep_tensor* inputs,
                                       size_t input_count, const superstep_tensor* outputs,
                                       size_t output_count) {
  return guarded([&] {
    require(session, "session");
    const std::vector<Tensor> values = all_inputs(session->session.inputs(), inputs, input_count);
    const std::vector<Port>& ports = session->session.outputs();
    const auto wanted = by_port(ports, outputs, output_count, "output");
    std::vector<Tensor> results;
    for (std::size_t i = 0; i < ports.size(); ++i)
      results.push_back(wanted[i] ? output_over(*wanted[i]) : Tensor(ports[i].element, ports[i].shape));
    session->session.run(values, results);
    for (std::size_t i = 0; i < ports.size(); ++i)
      if (wanted[i]) finish_output(results[i], *wanted[i]);
  });
}

superstep_status superstep_session_set_parameter(superstep_session* session, const char* name,
                                                 const superstep_tensor* from) {
  return set_parameter(session, "session", &superstep_session::session, name, from);
}
