/* Operators of your own: a shared library that exports superstep_operators(). Plain C99.
 *
 * A node of an ONNX file with such an operator's domain and name is then served, and trained where the
 * operator has a gradient, as any other (docs/custom-operators.md):
 *
 *   cc -O2 -shared -fPIC -I INCLUDE wiggle.c -o wiggle.so
 *   superstep train model.onnx --operators ./wiggle.so ...
 */
#ifndef SUPERSTEP_OPERATOR_H
#define SUPERSTEP_OPERATOR_H

#include <superstep/c_api.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

#define SUPERSTEP_OPERATOR_ABI 1
#define SUPERSTEP_MAX_RANK 8

/* Row-major memory. While shapes are asked for `data` is null; of an input that is left out `rank` is -1. */
typedef struct superstep_operand {
  superstep_element element;
  int32_t rank;
  int64_t shape[SUPERSTEP_MAX_RANK];
  void* data;
} superstep_operand;

/* One call of an operator. Attributes are those of the node, or `otherwise` where it has none of the name. */
typedef struct superstep_operator_call superstep_operator_call;
struct superstep_operator_call {
  size_t size;
  int32_t input_count, output_count;
  const superstep_operand* inputs;
  superstep_operand* outputs;
  int64_t (*integer)(const superstep_operator_call*, const char* name, int64_t otherwise);
  double (*number)(const superstep_operator_call*, const char* name, double otherwise);
  const char* (*text)(const superstep_operator_call*, const char* name, const char* otherwise);
  /* What cannot be done, in words: the shapes do not fit, an attribute is out of range. */
  void (*fail)(superstep_operator_call*, const char* why);
};

typedef struct superstep_operator {
  size_t size;        /* sizeof(superstep_operator) */
  const char* domain; /* of the nodes: "com.example"; not one of ONNX's */
  const char* name;   /* "Wiggle" */
  int32_t min_inputs, max_inputs, outputs;
  const char*
      attributes; /* names that a node may have, with blanks between; others are refused; may be null */
  /* Not 0: row i of every result is made of row i of the inputs alone, so that a batch may be divided. */
  int32_t sample_by_sample;
  /* Sets element, rank and shape of every output from those of the inputs. Several threads call it, too. */
  void (*infer)(superstep_operator_call* call);
  /* Fills the outputs, which are zeros. Several threads call it at a time, each with memory of its own. */
  void (*evaluate)(superstep_operator_call* call);
  /* An operator of this library that gives, in the inputs' types, the derivative of a number by each input:
   * its inputs are those of this operator, then its outputs, then the derivatives of that number by the
   * outputs. Null: nothing can be trained through it. It may have a gradient itself. */
  const char* gradient;
} superstep_operator;

/* What a library exports. `abi` is SUPERSTEP_OPERATOR_ABI of the program that asks; null: the library does
 * not know it. The operators live as long as the program does. */
const superstep_operator* superstep_operators(int abi, size_t* count);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
