// What a target region does, in the numbers of one launch: its loops, which elements they touch, what an
// iteration costs, and the body as a function that runs them.
//
// "Affine" means affine at launch: bounds, coefficients and extents are numbers here, whatever expressions of
// the program they came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "superstep/base/element_type.h"
#include "superstep/base/error.h"
#include "superstep/openmp/box.h"

namespace superstep::openmp {

struct SourcePlace {
  std::string file;
  int line = 0;
};
std::string to_string(const SourcePlace& place);  // "heat.c:12"

struct Range {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end > begin ? end - begin : 0; }
  friend bool operator==(const Range&, const Range&) = default;
};

// constant + the sum of coefficient x counter over the loops of the region; loops without one count as 0.
struct Affine {
  std::int64_t constant = 0;
  std::vector<std::int64_t> coefficients;
  std::int64_t coefficient(std::size_t loop) const {
    return loop < coefficients.size() ? coefficients[loop] : 0;
  }
};

// An array as the region sees it: row-major, of these extents.
struct RegionArray {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> extents;
  bool steers = false;  // its values decide which elements of others are gathered, and how often loops turn
  std::int64_t count() const { return whole(extents).volume(); }
};

struct Access {
  int array = 0;  // a number of Region::arrays
  bool reads = true, writes = false;
  std::vector<Affine> subscripts;  // one a dimension of the array
  int line = 0;                    // for messages; 0: the region's
  // The body finds its elements by number, through Part::gathers: of all accesses to an array or of none, and
  // only where nothing is written.
  bool gathered = false;
};

enum class Operator : std::uint8_t {
  add,
  multiply,
  minimum,
  maximum,
  bit_and,
  bit_or,
  bit_xor,
  logical_and,
  logical_or,
  last_value  // of the part that has the last iteration; the others leave zeros
};
const char* name_of(Operator op);  // as in the clause: "+", "min", "&&"

// Every element of the array takes op(its value, what all iterations contribute).
struct Reduction {
  int array = 0;
  Operator op = Operator::add;
};

// What one iteration of the distributed loops takes, loops inside the body multiplied out.
struct Work {
  double loads = 0, stores = 0, integer_operations = 0;
  double float_operations = 0;  // additions, multiplications, comparisons
  double divisions = 0, square_roots = 0, exponentials = 0, logarithms = 0, sines = 0, powers = 0;
  double inner_loops = 0;   // loops begun inside the body
  bool vectorised = false;  // two f32, or four halves, an instruction
};

// Where a body finds an element of a gathered array: run r has elements first[r], first[r] + 1, ... of the
// array, which are packed in a tile's memory from local[r] on, `elements` in all. While an inspector runs,
// the array is there whole, and what is asked for is listed once.
struct Gather {
  const std::int64_t *first = nullptr, *local = nullptr;
  std::int64_t runs = 0, elements = 0;
  unsigned char* seen = nullptr;  // an element of the array; null: no inspector runs
  std::int64_t* list = nullptr;
  std::int64_t listed = 0;
  std::int64_t missed = 0, outside = 0;  // whether one was asked for in vain, and which
};

// What a body works on: iterations begin[k] <= i[k] < end[k] of the distributed loops, the elements of access
// a at data[a][origin[a] + sum over all loops of strides[a * loops + k] * i[k]], and partial results of the
// reductions, which hold the operator's neutral elements when the body is called. A body touches nothing
// else.
struct Part {
  const std::int64_t *begin, *end;
  void* const* data;
  const std::int64_t* origin;
  const std::int64_t* strides;
  std::int64_t loops;
  void* const* reductions;
  const void* scalars;
  std::int32_t team, teams, thread, threads;
  Gather* const* gathers = nullptr;  // an access; null: arrays are there whole
  std::int64_t* turns = nullptr;     // of each loop of Region::turns, counted while an inspector runs

  template <class T>
  T* at(int access) const {
    return static_cast<T*>(data[access]) + origin[access];
  }
  std::int64_t stride(int access, int loop) const { return strides[access * loops + loop]; }
  template <class T>
  T& reduction(int number) const {
    return *static_cast<T*>(reductions[number]);
  }
  template <class T>
  const T& scalar() const {
    return *static_cast<const T*>(scalars);
  }
};
using Body = void (*)(const Part& part);

struct Region {
  SourcePlace place;
  std::vector<Range> loops;  // outermost first, step 1: the distributed ones, then those inside the body
  int distributed = 0;       // how many of them iterations are dealt by
  std::vector<RegionArray> arrays;
  std::vector<Access> accesses;
  std::vector<Reduction> reductions;
  Work work;
  std::vector<Work> turns;         // beside it, of one turn of each loop that the body counts
  std::vector<std::byte> scalars;  // firstprivate values, as the body takes them
  Body body = nullptr;

  // Both for messages: "heat.c:12", "u at heat.c:14".
  std::string where(const Access& access) const;
  Box iterations() const;  // of the distributed loops
  bool gathers() const;    // any access does
  bool gathers(std::size_t array) const;
  // Gathered accesses become those of arrays that every tile has whole; counted loops count as one turn.
  void receive_whole();
};

template <class T>
std::vector<std::byte> scalar_bytes(const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  return {bytes, bytes + sizeof(T)};
}

// Elements that an access may touch in these iterations of the distributed loops (loops inside the body run
// in full): exact where a subscript has one loop, else the box around them.
Box footprint(const Region& region, const Access& access, const Box& iterations);

// An error whose message begins with a code that stays: "race: ...".
[[noreturn]] void refuse(const char* code, const std::string& message, const std::string& where,
                         const std::string& hint);

// Throws Error when numbers do not belong together, when a subscript leaves its array ("bounds"), or when
// iterations of the distributed loops depend on each other ("race", naming both lines).
void check_region(const Region& region);

// Every subscript list made of one linear subscript (row-major element numbers) split into dimensions: the
// coefficients that divide one another are the strides, and constants go to the nearest row. Left as they
// are when the accesses to the array do not agree, or a subscript would leave its row.
void split_linear_subscripts(Region& region);

}  // namespace superstep::openmp
