/* Superstep for C, and for whatever binds to C. Plain C99: opaque handles, no exceptions, no globals to set
 * up.
 *
 * Every function that can fail gives a superstep_status; superstep_last_error() says what, where and what to
 * do. Strings and arrays that are given out belong to the handle they were asked of, and live as long as it
 * does, or until the same question is asked again. A handle is used by one thread at a time. Structures of
 * settings begin with their size, so that programs built against an older header go on working: fill them
 * with their _INIT.
 *
 * Tensors are memory of the caller, by pointer, extents and strides: inputs are read and outputs written in
 * place where they are row-major, and through a copy otherwise. */
#ifndef SUPERSTEP_C_API_H
#define SUPERSTEP_C_API_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef enum superstep_status {
  SUPERSTEP_OK = 0,
  SUPERSTEP_INVALID_ARGUMENT = 1, /* the call was wrong: a setting, a shape, a name, a null pointer */
  SUPERSTEP_NOT_FOUND = 2,
  SUPERSTEP_BAD_FILE = 3,
  SUPERSTEP_BAD_GRAPH = 4,
  SUPERSTEP_UNSUPPORTED = 5,
  SUPERSTEP_IO = 6,
  SUPERSTEP_OUT_OF_MEMORY = 7,
  SUPERSTEP_DIVERGED = 8,
  SUPERSTEP_INTERRUPTED = 9,
  SUPERSTEP_INTERNAL = 10
} superstep_status;

/* The last failure of a call of this thread; its strings live until the thread's next failure. Before the
 * first one: SUPERSTEP_OK and empty strings. */
typedef struct superstep_error {
  superstep_status status;
  const char* message; /* what went wrong */
  const char* where;   /* a file, a node, a setting; may be empty */
  const char* hint;    /* what to do about it; may be empty */
} superstep_error;
superstep_error superstep_last_error(void);

const char* superstep_version(void);                        /* "0.2.0" */
const char* superstep_status_name(superstep_status status); /* "bad file" */

/* --- tensors */

typedef enum superstep_element {
  SUPERSTEP_F64 = 0,
  SUPERSTEP_F32 = 1,
  SUPERSTEP_F16 = 2,
  SUPERSTEP_BF16 = 3,
  SUPERSTEP_I64 = 4,
  SUPERSTEP_I32 = 5,
  SUPERSTEP_I16 = 6,
  SUPERSTEP_I8 = 7,
  SUPERSTEP_U64 = 8,
  SUPERSTEP_U32 = 9,
  SUPERSTEP_U16 = 10,
  SUPERSTEP_U8 = 11,
  SUPERSTEP_BOOL = 12
} superstep_element;

/* An input, an output or a parameter. */
typedef struct superstep_port {
  const char* name;
  superstep_element element;
  int32_t rank;
  const int64_t* shape; /* rank extents */
} superstep_port;

/* Memory of the caller, aligned for its elements. Strides count elements, may be 0 or negative; null:
 * row-major. */
typedef struct superstep_tensor {
  const char* name; /* of the port; null: by its place in the list */
  superstep_element element;
  int32_t rank;
  const int64_t* shape;
  const int64_t* strides;
  void* data;
} superstep_tensor;

/* --- models */

typedef struct superstep_model superstep_model;
typedef struct superstep_session superstep_session;
typedef struct superstep_trainer superstep_trainer;

typedef struct superstep_model_settings {
  size_t size;
  const char* const* options; /* null, or ending with null: "patch=13" */
  const char* const* shapes;  /* null, or ending with null: "x=-1,3,224,224" */
  const char* loss;           /* null: mse */
  uint64_t seed;
  const char* const* bounds; /* the same: "NODE=100", of results whose length depends on the data */
  const char *const *train, *const *freeze; /* the same: names of initialisers, with * and ? */
} superstep_model_settings;
#define SUPERSTEP_MODEL_SETTINGS_INIT \
  { sizeof(superstep_model_settings), 0, 0, 0, 1, 0, 0, 0 }

typedef struct superstep_compile_settings {
  size_t size;
  int64_t batch, micro_batch;          /* micro_batch 0: the target chooses */
  const char* precision;               /* "f32", "bf16", "f16", "int8" */
  const char* target;                  /* "cpu" */
  int32_t threads;                     /* 0: every processor there is */
  uint64_t memory_limit;               /* bytes; 0: none */
  const superstep_tensor* calibration; /* int8: samples, by input, a row a sample */
  size_t calibration_count;
} superstep_compile_settings;
#define SUPERSTEP_COMPILE_SETTINGS_INIT \
  { sizeof(superstep_compile_settings), 1, 0, "f32", "cpu", 0, 0, 0, 0 }

typedef struct superstep_trainer_settings {
  size_t size;
  const char* optimizer; /* null: the workload's own; "sgd", "adam", "adamw", "adamax", "rmsprop", "lamb" */
  double learning_rate;  /* 0: the workload's own */
} superstep_trainer_settings;
#define SUPERSTEP_TRAINER_SETTINGS_INIT \
  { sizeof(superstep_trainer_settings), 0, 0.0 }

/* Makes operators of a shared library known (superstep/operator.h); before models with them are opened. */
superstep_status superstep_load_operators(const char* library);

/* The name of a workload, or an ONNX file. Settings may be null. */
superstep_status superstep_model_open(const char* what, const superstep_model_settings* settings,
                                      superstep_model** model);
/* What a training run left in its folder. */
superstep_status superstep_model_open_run(const char* folder, superstep_model** model);
void superstep_model_free(superstep_model* model); /* of null: nothing */

/* Batch 0: 1, or the one that the file fixes. */
superstep_status superstep_model_inputs(superstep_model* model, int64_t batch, const superstep_port** ports,
                                        size_t* count);
superstep_status superstep_model_outputs(superstep_model* model, int64_t batch, const superstep_port** ports,
                                         size_t* count);
superstep_status superstep_model_targets(superstep_model* model, int64_t batch, const superstep_port** ports,
                                         size_t* count);
superstep_status superstep_model_parameters(superstep_model* model, const superstep_port** ports,
                                            size_t* count);
/* Copies between the model and the tensor's memory, whose type and shape must be the parameter's. */
superstep_status superstep_model_get_parameter(superstep_model* model, const char* name,
                                               const superstep_tensor* into);
superstep_status superstep_model_set_parameter(superstep_model* model, const char* name,
                                               const superstep_tensor* from);
superstep_status superstep_model_take_parameters(superstep_model* model, const superstep_trainer* trainer);
superstep_status superstep_model_write_onnx(const superstep_model* model, const char* file, int32_t opset,
                                            int64_t batch); /* 0, 0: the smallest opset, an open batch */

/* --- serving */

superstep_status superstep_session_create(const superstep_model* model,
                                          const superstep_compile_settings* settings,
                                          superstep_session** session);
/* Loss and gradients, for an optimizer of your own: inputs are the model's, then the targets; outputs "loss",
   the model's, then "gradient/NAME" for each trained parameter. Parameters change by
   superstep_session_set_parameter() alone. */
superstep_status superstep_gradient_create(const superstep_model* model,
                                           const superstep_compile_settings* settings,
                                           superstep_session** session);
void superstep_session_free(superstep_session* session);
superstep_status superstep_session_inputs(superstep_session* session, const superstep_port** ports,
                                          size_t* count);
superstep_status superstep_session_outputs(superstep_session* session, const superstep_port** ports,
                                           size_t* count);
/* All inputs must be given; outputs that are not asked for are left out. */
superstep_status superstep_session_run(superstep_session* session, const superstep_tensor* inputs,
                                       size_t input_count, const superstep_tensor* outputs,
                                       size_t output_count);
superstep_status superstep_session_set_parameter(superstep_session* session, const char* name,
                                                 const superstep_tensor* from);

/* --- training */

superstep_status superstep_trainer_create(const superstep_model* model,
                                          const superstep_compile_settings* settings,
                                          const superstep_trainer_settings* training,
                                          superstep_trainer** trainer);
void superstep_trainer_free(superstep_trainer* trainer);
/* The model's inputs, then the targets of its loss. */
superstep_status superstep_trainer_inputs(superstep_trainer* trainer, const superstep_port** ports,
                                          size_t* count);
/* One step on one batch; `loss` may be null. A learning rate of 0 is that of the settings. */
superstep_status superstep_trainer_step(superstep_trainer* trainer, const superstep_tensor* values,
                                        size_t count, double learning_rate, double* loss);
superstep_status superstep_trainer_get_parameter(superstep_trainer* trainer, const char* name,
                                                 const superstep_tensor* into);
superstep_status superstep_trainer_set_parameter(superstep_trainer* trainer, const char* name,
                                                 const superstep_tensor* from);
superstep_status superstep_trainer_save(const superstep_trainer* trainer, const char* file);
superstep_status superstep_trainer_restore(superstep_trainer* trainer, const char* file);

/* --- force fields: atoms moved by programs of others */

typedef struct superstep_force_field superstep_force_field;

/* The model that a training of deepmd or schnet left in the folder `run`, for atoms of these elements (atomic
   numbers). Threads 0: every processor there is. */
superstep_status superstep_force_field_open(const char* run, const int32_t* elements, size_t atoms,
                                            int32_t threads, superstep_force_field** field);
void superstep_force_field_free(superstep_force_field* field); /* of null: nothing */
/* Beyond which atoms do not feel each other, in A. */
superstep_status superstep_force_field_cutoff(const superstep_force_field* field, double* cutoff);
/* positions: A, [atoms, 3]. cell: the edges of a periodic box as rows, A, [3, 3]; null: open space. energy:
   eV. forces: eV/A, [atoms, 3]. virial: eV, -dE/d(strain), [3, 3]; null where it is not wanted, else
   SUPERSTEP_UNSUPPORTED from a model that gives none. Nothing is written by a call that fails. */
superstep_status superstep_force_field_evaluate(superstep_force_field* field, const double* positions,
                                                const double* cell, double* energy, double* forces,
                                                double* virial);

/* --- what long work asks and tells; of the whole process, null ends it */

/* Asked between steps, by any thread, often: not 0 stops the work, which ends with SUPERSTEP_INTERRUPTED. */
typedef int (*superstep_interrupt_check)(void* context);
void superstep_set_interrupt_check(superstep_interrupt_check check, void* context);

/* Told at most ten times a second, and at the end. Strings are valid during the call. */
typedef void (*superstep_progress_listener)(const char* label, double done, double total, const char* unit,
                                            void* context);
void superstep_set_progress_listener(superstep_progress_listener listener, void* context);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
