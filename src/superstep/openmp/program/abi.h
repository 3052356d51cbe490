// What translated C programs call, and the constant tables that describe their regions. Plain C without other
// headers: the translator copies this file into what it writes.
#ifndef SUPERSTEP_OPENMP_ABI_H
#define SUPERSTEP_OPENMP_ABI_H
#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

// What a body is given: openmp::Part.
typedef struct sst_part {
  const long *begin, *end;
  void* const* data;
  const long *origin, *strides;
  long loops;
  void* const* reductions;
  const void* scalars;
  int team, teams, thread, threads;
} sst_part;
typedef void (*sst_body)(const sst_part* part);

// How a list item is mapped. Without to or from: alloc on entry, release on exit.
enum {
  sst_to = 1,
  sst_from = 2,
  sst_delete = 4,
  sst_always = 8,
  sst_must_be_present = 16,
  sst_look_up = 32,    // a pointer, or a global of the device: nothing is mapped, only looked up
  sst_reached = 64,    // elements are reached through it, so that it must be found
  sst_constant = 128,  // on the host nobody writes it
  sst_written = 256,   // the region may write through it
  sst_used = 512       // the region names it
};

// A list item with its memory in one launch. `base` is where element 0 would be: the array, or the pointer.
typedef struct sst_item {
  const char* name;
  void* address;
  long bytes;
  void* base;
  int type;  // ElementType, or the size in bytes of a struct, negative
  int kind;
  int line;
} sst_item;

typedef struct sst_access {
  int item, dimensions;
  int reads, writes;
  int line;
} sst_access;

typedef struct sst_reduction {
  int item, op;  // op: openmp::Operator
} sst_reduction;

// What is done once in every iteration of the distributed loops and of the inner loops in `loops` (bits).
typedef struct sst_work {
  unsigned loops;
  double starts;  // inner loops begun
  double loads, stores, integers, floats, divisions, roots, exponentials, logarithms, sines, powers;
} sst_work;

// Numbers of a launch, in this order:
//   of every distributed loop: first value, iterations, step;
//   of every inner loop: step, lowest value and end, these two as a constant and a coefficient a loop before
//   it; of every extra loop (a subscript that is not affine): the extent of its dimension, 0: the first one;
//   of every access: its inner extents (dimensions - 1), then of every dimension a constant and a coefficient
//   a loop (distributed, inner, extra).
typedef struct sst_region {
  const char* file;
  int line, column;
  int distributed, inner, extra;
  int accesses, reductions, works;
  const sst_access* access;
  const sst_reduction* reduction;
  const sst_work* work;
  int vectorised;
  sst_body dealt;         // null: not dealt to tiles, for the reason beside it
  const char* not_dealt;  // "not-affine: ...", with the line
  sst_body whole;         // on whole arrays, on one tile; null: on the host
  const char* not_whole;
} sst_region;

enum { sst_default_device = -1, sst_this_host = -2 };  // else a device's number

// Runs the region. 0: it is done. Else the caller runs its own loops and, when it is 1, calls sst_target_end.
int sst_target(const sst_region* region, const sst_item* items, int count, const long* numbers,
               const void* scalars, long scalar_bytes, int device);
void sst_target_end(void);

void sst_enter(const char* file, int line, const sst_item* items, int count, int device);
void sst_exit(const char* file, int line, const sst_item* items, int count, int device);
void sst_update(const char* file, int line, const sst_item* items, int count, int device);
// The memory of a variable of `declare target`, before the program runs.
void sst_global(const char* file, int line, const char* name, void* address, long bytes, int type);
// Gives `value`, and ends the program when a section leaves out elements of an inner dimension.
long sst_whole_rows(long value, long lower, long length, long extent, const char* file, int line);
// Bodies whose functions ask who they are say so, and set back what was.
const sst_part* sst_set_part(const sst_part* part);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
