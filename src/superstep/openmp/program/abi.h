// What translated C programs call, and the constant tables that describe their regions. Plain C without other
// headers: the translator copies this file into what it writes.
#ifndef SUPERSTEP_OPENMP_ABI_H
#define SUPERSTEP_OPENMP_ABI_H
#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

// Where the elements of a gathered array are: openmp::Gather.
typedef struct sst_gather {
  const long *first, *local;
  long runs, elements;
  unsigned char* seen;
  long *list, listed;
  long missed, outside;
} sst_gather;

// What a body is given: openmp::Part.
typedef struct sst_part {
  const long *begin, *end;
  void* const* data;
  const long *origin, *strides;
  long loops;
  void* const* reductions;
  const void* scalars;
  int team, teams, thread, threads;
  sst_gather* const* gathers;
  long* turns;
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
  sst_used = 512,      // the region names it
  sst_steers = 1024    // its values decide which elements are gathered
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
  long times, pitch;  // of an update: so many such pieces, one every `pitch` bytes; -1: one
} sst_item;

typedef struct sst_access {
  int item, dimensions;
  int reads, writes;
  int line;
  int gathered;  // its body asks sst_gathered where the element is
} sst_access;

typedef struct sst_reduction {
  int item, op;  // op: openmp::Operator
} sst_reduction;

// What is done once in every iteration of the distributed loops and of the inner loops in `loops` (bits);
// with `counted`, in every turn of that counted loop (from 1) and of those in `inside`, which lie in it.
typedef struct sst_work {
  unsigned loops, inside;
  int counted;
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
  int distributed, inner, extra, counted;
  int accesses, reductions, works;
  const sst_access* access;
  const sst_reduction* reduction;
  const sst_work* work;
  int vectorised, of_tasks;
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
// omp_target_is_present and so on.
int sst_omp_target_is_present(const void* address, int device);
void* sst_omp_target_alloc(unsigned long bytes, int device);
void sst_omp_target_free(void* memory, int device);
int sst_omp_target_memcpy(void* to, const void* from, unsigned long bytes, unsigned long to_offset,
                          unsigned long from_offset, int to_device, int from_device);
// The place of an element in a part's memory.
static inline long sst_gathered(sst_gather* gather, long element) {
  if (!gather) return element;
  long low = 0, high = gather->runs;
  if (gather->seen) {
    if (element < 0 || element >= gather->elements) {
      gather->missed = 1;
      gather->outside = element;
      return 0;
    }
    if (!gather->seen[element]) {
      gather->seen[element] = 1;
      gather->list[gather->listed++] = element;
    }
    return element;
  }
  while (high - low > 1) {
    const long middle = low + (high - low) / 2;
    if (gather->first[middle] <= element)
      low = middle;
    else
      high = middle;
  }
  if (high > low) {
    const long into = element - gather->first[low],
               end = low + 1 < gather->runs ? gather->local[low + 1] : gather->elements;
    if (into >= 0 && into < end - gather->local[low]) return gather->local[low] + into;
  }
  gather->missed = 1;
  gather->outside = element;
  return 0;
}
// Bodies whose functions ask who they are say so, and set back what was.
const sst_part* sst_set_part(const sst_part* part);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
