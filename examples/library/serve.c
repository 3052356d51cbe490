/* Serves a model from C: one row of the input given with strides, as a column of a matrix lies. */
#include <stdio.h>
#include <superstep/c_api.h>

static int failed(void) {
  superstep_error error = superstep_last_error();
  fprintf(stderr, "%s: %s (%s)\n", error.where, error.message, error.hint);
  return 1;
}

int main(void) {
  superstep_model* model;
  superstep_session* session;
  superstep_compile_settings settings = SUPERSTEP_COMPILE_SETTINGS_INIT;
  if (superstep_model_open("mlp", NULL, &model) || superstep_session_create(model, &settings, &session))
    return failed();

  float matrix[16][3], dense[16], strided_result, dense_result;
  for (int row = 0; row < 16; ++row) dense[row] = matrix[row][1] = 0.1f * (float)row;
  int64_t shape[2] = {1, 16}, strides[2] = {0, 3}, result_shape[2] = {1, 1};
  superstep_tensor column = {NULL, SUPERSTEP_F32, 2, shape, strides, &matrix[0][1]};
  superstep_tensor row = {NULL, SUPERSTEP_F32, 2, shape, NULL, dense};
  superstep_tensor result = {NULL, SUPERSTEP_F32, 2, result_shape, NULL, &strided_result};
  if (superstep_session_run(session, &column, 1, &result, 1)) return failed();
  result.data = &dense_result;
  if (superstep_session_run(session, &row, 1, &result, 1)) return failed();
  printf("the same row twice: %s\n", strided_result == dense_result ? "the same result" : "two results");

  row.rank = 1; /* refused, and said why */
  if (superstep_session_run(session, &row, 1, &result, 1) == SUPERSTEP_OK) return 1;
  printf("%s: %s\n", superstep_last_error().where, superstep_last_error().message);
  superstep_session_free(session);
  superstep_model_free(model);
  return strided_result == dense_result ? 0 : 1;
}
