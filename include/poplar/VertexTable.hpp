// What a compiled codelet says of itself: written into it by popc, read by the library.
#ifndef poplar_VertexTable_hpp
#define poplar_VertexTable_hpp

#include <cstddef>
#include <new>
#include <poplar/Type.hpp>
#include <poplar/Vertex.hpp>

namespace poplar {
namespace vertex_table {

enum { VERSION = 3 };
enum Kind : unsigned char { WORKER, MULTI, SUPERVISOR };
enum Shape : unsigned char {
  STATE,         // a number of the vertex's own
  STATE_VECTOR,  // numbers of its own
  SCALAR,
  VECTOR,
  VECTOR_LIST,       // pointers to {pointer, count}
  SCALAR_LIST,       // pointers to elements
  STATE_VECTOR_LIST  // vectors of its own, as a VECTOR_LIST
};
enum Direction : unsigned char { INPUT, OUTPUT, IN_OUT };

struct Field {
  const char* name;
  std::size_t offset;
  Shape shape;
  Direction direction;
  Type::Id type;
  VectorLayout layout;           // of the vector, or of each vector of a list
  VectorLayout outer_layout;     // of a Vector of vectors
  VectorListLayout list_layout;  // of a VectorList
  unsigned alignment;            // bytes
  bool interleaved;
};

// Cycles of a thread, from the instructions of compute(): so many, for each vector of a list, for each
// element. All zero where nothing was counted.
struct Mix {
  float fixed, outer, element;
};

struct Vertex {
  const char* name;
  Kind kind;
  std::size_t size, alignment;
  const Field* fields;
  std::size_t field_count;
  void (*prepare)(void* vertex, unsigned workers);  // once, before anything is put into it
  bool (*compute)(void* vertex, unsigned worker);   // what it returned; true where that is nothing
  const Mix* mix;
};

// Of one source.
struct Part {
  unsigned version;
  const Vertex* vertices;
  std::size_t vertex_count;
};

struct Table {
  const Part* parts;
  std::size_t part_count;
};

// --- fields by their types -------------------------------------------------------------------------------

template <class T>
struct ElementId {
  enum { KNOWN = false };
  static const Type::Id value = Type::NO_TYPE_ID;
};
#define POPLAR_ELEMENT(type, id)            \
  template <>                               \
  struct ElementId<type> {                  \
    enum { KNOWN = true };                  \
    static const Type::Id value = Type::id; \
  };
POPLAR_ELEMENT(bool, BOOL_ID)
POPLAR_ELEMENT(char, CHAR_ID)
POPLAR_ELEMENT(signed char, SIGNED_CHAR_ID)
POPLAR_ELEMENT(unsigned char, UNSIGNED_CHAR_ID)
POPLAR_ELEMENT(short, SHORT_ID)
POPLAR_ELEMENT(unsigned short, UNSIGNED_SHORT_ID)
POPLAR_ELEMENT(int, INT_ID)
POPLAR_ELEMENT(unsigned int, UNSIGNED_INT_ID)
POPLAR_ELEMENT(long long, LONGLONG_ID)
POPLAR_ELEMENT(unsigned long long, UNSIGNED_LONGLONG_ID)
POPLAR_ELEMENT(float, FLOAT_ID)
#ifdef __FLT16_MAX__
POPLAR_ELEMENT(_Float16, HALF_ID)
#endif
#undef POPLAR_ELEMENT

template <class T, Shape S, Direction D, VectorLayout L, VectorListLayout LL, unsigned A, bool I,
          VectorLayout OL = VectorLayout::NOT_A_VECTOR>
struct Facts {
  typedef typename std::remove_cv<T>::type Element;
  static const Shape shape = S;
  static const Direction direction = D;
  static const VectorLayout layout = L;
  static const VectorLayout outer_layout = OL;
  static const VectorListLayout list_layout = LL;
  static const unsigned alignment = A;
  static const bool interleaved = I;
};

// The number itself, where nothing below says otherwise.
template <class T>
struct FactsOf
    : Facts<T, STATE, INPUT, VectorLayout::NOT_A_VECTOR, VectorListLayout::NOT_A_VECTOR, alignof(T), false> {
};
template <class T>
struct FactsOf<const T> : FactsOf<T> {};
template <class T, VectorLayout L, unsigned A, bool I>
struct FactsOf<Vector<T, L, A, I>> : Facts<T, STATE_VECTOR, IN_OUT, L, VectorListLayout::NOT_A_VECTOR, A, I> {
};
template <class T, VectorLayout L, unsigned A, bool I, VectorLayout OL, unsigned OA, bool OI>
struct FactsOf<Vector<Vector<T, L, A, I>, OL, OA, OI>>
    : Facts<T, STATE_VECTOR_LIST, IN_OUT, L, VectorListLayout::NOT_A_VECTOR, A, I, OL> {};
template <class T, VectorListLayout LL, unsigned A, bool I>
struct FactsOf<VectorList<T, LL, A, I>> : Facts<T, STATE_VECTOR_LIST, IN_OUT, VectorLayout::SPAN, LL, A, I> {
};
#define POPLAR_WAY(Wrapper, way)                                                                             \
  template <class T>                                                                                         \
  struct FactsOf<Wrapper<T>>                                                                                 \
      : Facts<T, SCALAR, way, VectorLayout::ONE_PTR, VectorListLayout::NOT_A_VECTOR, alignof(T), false> {};  \
  template <class T, VectorLayout L, unsigned A, bool I>                                                     \
  struct FactsOf<Wrapper<Vector<T, L, A, I>>>                                                                \
      : Facts<T, VECTOR, way, L, VectorListLayout::NOT_A_VECTOR, A, I> {};                                   \
  template <class T, VectorListLayout LL, unsigned A, bool I>                                                \
  struct FactsOf<Wrapper<VectorList<T, LL, A, I>>>                                                           \
      : Facts<T, VECTOR_LIST, way, VectorLayout::SPAN, LL, A, I> {};                                         \
  template <class T, VectorLayout L, unsigned A, bool I, VectorLayout OL, unsigned OA, bool OI>              \
  struct FactsOf<Vector<Wrapper<Vector<T, L, A, I>>, OL, OA, OI>>                                            \
      : Facts<T, VECTOR_LIST, way, L, VectorListLayout::NOT_A_VECTOR, A, I, OL> {};                          \
  template <class T, VectorLayout OL, unsigned OA, bool OI>                                                  \
  struct FactsOf<Vector<Wrapper<T>, OL, OA, OI>>                                                             \
      : Facts<T, SCALAR_LIST, way, VectorLayout::ONE_PTR, VectorListLayout::NOT_A_VECTOR, alignof(T), false, \
              OL> {};
POPLAR_WAY(Input, INPUT)
POPLAR_WAY(Output, OUTPUT)
POPLAR_WAY(InOut, IN_OUT)
#undef POPLAR_WAY

template <class F>
constexpr Field field(const char* name, std::size_t offset) {
  static_assert(ElementId<typename FactsOf<F>::Element>::KNOWN,
                "a field of a vertex is a number, a Vector, or an Input, Output or InOut of them");
  return Field{name,
               offset,
               FactsOf<F>::shape,
               FactsOf<F>::direction,
               ElementId<typename FactsOf<F>::Element>::value,
               FactsOf<F>::layout,
               FactsOf<F>::outer_layout,
               FactsOf<F>::list_layout,
               FactsOf<F>::alignment,
               FactsOf<F>::interleaved};
}

// --- how vertices begin ----------------------------------------------------------------------------------

// In memory of zeros, which stays where no constructor says anything. Those whose code is nowhere, and those
// that cannot be called, are left out.
template <class V, bool Constructed>
struct Start {
  static void construct(void*) {}
};
template <class V>
struct Start<V, true> {
  static void construct(void* memory) { new (memory) V; }
};

template <class V, bool Constructed>
void construct(void* memory) {
  Start<V, Constructed && std::is_default_constructible<V>::value>::construct(memory);
}

// --- how vertices run ------------------------------------------------------------------------------------

template <class V>
constexpr Kind kind() {
  return std::is_base_of<MultiVertex, V>::value        ? MULTI
         : std::is_base_of<SupervisorVertex, V>::value ? SUPERVISOR
                                                       : WORKER;
}

// What compute() returned, or true.
template <class V, class... A>
bool said(std::true_type, V& vertex, A... worker) {
  return vertex.compute(worker...);
}
template <class V, class... A>
bool said(std::false_type, V& vertex, A... worker) {
  vertex.compute(worker...);
  return true;
}

template <class V, Kind K, bool Constructed>
struct Runner {
  static void prepare(void* vertex, unsigned) { construct<V, Constructed>(vertex); }
  static bool compute(void* vertex, unsigned) {
    return said(std::is_same<decltype(static_cast<V*>(vertex)->compute()), bool>(), *static_cast<V*>(vertex));
  }
};
template <class V, bool Constructed>
struct Runner<V, MULTI, Constructed> {
  static void prepare(void* vertex, unsigned workers) {
    construct<V, Constructed>(vertex);
    static_cast<MultiVertex*>(static_cast<V*>(vertex))->setWorkers(workers);
  }
  static bool compute(void* vertex, unsigned worker) {
    return said(std::is_same<decltype(static_cast<V*>(vertex)->compute(worker)), bool>(),
                *static_cast<V*>(vertex), worker);
  }
};

}  // namespace vertex_table
}  // namespace poplar

#endif
