/* Operators that are described wrongly: which one, BROKEN says when this is compiled. */
#include <superstep/operator.h>

static void nothing(superstep_operator_call* call) { (void)call; }

#if BROKEN != 1  /* 1: exports nothing */
#if BROKEN == 10 /* one of its own, then two of one name */
#define RIGHT(NAME)                                                                            \
  {                                                                                            \
    .size = sizeof(superstep_operator), .domain = "com.broken", .name = NAME, .min_inputs = 1, \
    .max_inputs = 1, .outputs = 1, .infer = nothing, .evaluate = nothing                       \
  }
static const superstep_operator operators[] = {RIGHT("First"), RIGHT("Twice"), RIGHT("Twice")};
#else
static const superstep_operator operators[] = {{
    .size = BROKEN == 2 ? 8 : sizeof(superstep_operator),
    .domain = BROKEN == 3 ? "ai.onnx.ml" : "com.broken",
    .name = BROKEN == 4 ? "Two words" : "Broken",
    .min_inputs = 1,
    .max_inputs = BROKEN == 5 ? 0 : 1,
    .outputs = 1,
    .infer = nothing,
    .evaluate = BROKEN == 6 ? 0 : nothing,
    .gradient = BROKEN == 7   ? "Absent"
                : BROKEN == 8 ? "Broken"
                              : 0,
}};
#endif

const superstep_operator* superstep_operators(int abi, size_t* count) {
  (void)abi;
  *count = sizeof operators / sizeof operators[0];
  return BROKEN == 9 ? 0 : operators;
}
#endif
