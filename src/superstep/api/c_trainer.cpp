#include "superstep/api/c_guard.h"
#include "superstep/api/c_settings.h"

using namespace superstep;
using namespace superstep::api;

superstep_status superstep_trainer_create(const superstep_model* model,
                                          const superstep_compile_settings* settings,
                                          const superstep_trainer_settings* training,
                                          superstep_trainer** trainer) {
  return guarded([&] {
    require(model, "model");
    require(trainer, "trainer");
    *trainer = nullptr;
    const auto chosen = complete(training, superstep_trainer_settings SUPERSTEP_TRAINER_SETTINGS_INIT,
                                 "superstep_trainer_settings");
    std::unique_ptr<superstep_trainer> created(new superstep_trainer{
        model->model.trainer(
            settings_from(settings, model->model.inputs()),
            {.optimizer = text_or_empty(chosen.optimizer), .learning_rate = chosen.learning_rate}),
        {}});
    created->inputs.set(created->trainer.inputs());
    *trainer = created.release();
  });
}

void superstep_trainer_free(superstep_trainer* trainer) { delete trainer; }

superstep_status superstep_trainer_inputs(superstep_trainer* trainer, const superstep_port** ports,
                                          size_t* count) {
  return give_list(trainer, "trainer", &superstep_trainer::inputs, ports, count);
}

superstep_status superstep_trainer_step(superstep_trainer* trainer, const superstep_tensor* values,
                                        size_t count, double learning_rate, double* loss) {
  return guarded([&] {
    require(trainer, "trainer");
    const double found =
        trainer->trainer.step(all_inputs(trainer->trainer.inputs(), values, count), learning_rate);
    if (loss) *loss = found;
  });
}

superstep_status superstep_trainer_get_parameter(superstep_trainer* trainer, const char* name,
                                                 const superstep_tensor* into) {
  return get_parameter(trainer, "trainer", &superstep_trainer::trainer, name, into);
}

superstep_status superstep_trainer_set_parameter(superstep_trainer* trainer, const char* name,
                                                 const superstep_tensor* from) {
  return set_parameter(trainer, "trainer", &superstep_trainer::trainer, name, from);
}

superstep_status superstep_trainer_save(const superstep_trainer* trainer, const char* file) {
  return guarded([&] {
    require(trainer, "trainer");
    require(file, "file");
    trainer->trainer.save(file);
  });
}

superstep_status superstep_trainer_restore(superstep_trainer* trainer, const char* file) {
  return guarded([&] {
    require(trainer, "trainer");
    require(file, "file");
    trainer->trainer.restore(file);
  });
}
