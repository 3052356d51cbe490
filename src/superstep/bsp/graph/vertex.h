// How a vertex is written: a plain class with fields, a list of them, and compute().
//
//     template <class T>
//     struct ScaledAdd : Vertex {
//       InOut<Vector<T>> data;
//       Input<Vector<T>> addend;
//       T scale;                                             // state: set_initial_value
//       void fields(FieldList& list) { list("data", data)("addend", addend)("scale", scale); }
//       void compute() { for (std::size_t i = 0; i < data.size(); ++i) data[i] += scale * addend[i]; }
//       static PerfEstimate cycles(const VertexFields& f, const Device&) { return 11 + 3 * f.size("data"); }
//     };
//     graph.add_codelets({vertex_class<ScaledAdd<float>>("ScaledAdd<float>")});
//
// A Vertex runs on one worker: cycles() counts that worker's, and the tile takes 6 for each of the slowest
// worker's. A MultiVertex has compute(unsigned worker), called for every worker, and a SupervisorVertex holds
// the tile: cycles() of both counts the tile's. compute() may return void, or bool (the value is not used).
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "superstep/bsp/graph/vertex_class.h"

#pragma GCC visibility push(default)  // installed: what is declared here is exported

namespace superstep::bsp {

struct Vertex {
  static constexpr VertexKind vertex_kind = VertexKind::worker;
};
struct MultiVertex {
  static constexpr VertexKind vertex_kind = VertexKind::multi;
  static constexpr unsigned num_workers() { return 6; }
};
struct SupervisorVertex {
  static constexpr VertexKind vertex_kind = VertexKind::supervisor;
};

// A vector field: how its pointer and size are packed decides what the vertex state costs.
template <class T, VectorLayout Layout = VectorLayout::span, unsigned MinimumAlignment = 0,
          bool Interleaved = false>
class Vector;

// Elements that the engine binds; the vertex must not outgrow them.
template <class T>
class BoundVector {
 public:
  using Element = T;
  T& operator[](std::size_t i) const { return data_[i]; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() const { return data_; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }

 private:
  friend class FieldList;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

template <class T>
class Input {
 public:
  operator const T&() const { return *data_; }  // NOLINT(google-explicit-constructor): reads like the value
  const T& operator*() const { return *data_; }

 private:
  friend class FieldList;
  const T* data_ = nullptr;
};
template <class T>
class Output {
 public:
  Output& operator=(const T& value) {
    *data_ = value;
    return *this;
  }
  T& operator*() const { return *data_; }

 private:
  friend class FieldList;
  T* data_ = nullptr;
};
template <class T>
class InOut : public Output<T> {
 public:
  using Output<T>::operator=;
  operator const T&() const { return **this; }  // NOLINT(google-explicit-constructor)
};

template <class T, VectorLayout L, unsigned A, bool I>
class Input<Vector<T, L, A, I>> : public BoundVector<const T> {};
template <class T, VectorLayout L, unsigned A, bool I>
class Output<Vector<T, L, A, I>> : public BoundVector<T> {};
template <class T, VectorLayout L, unsigned A, bool I>
class InOut<Vector<T, L, A, I>> : public BoundVector<T> {};

// A list of vectors of any lengths: Vector<Input<Vector<float>>>.
template <class F>
class BoundList {
 public:
  const F& operator[](std::size_t i) const { return items_[i]; }
  std::size_t size() const { return items_.size(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  friend class FieldList;
  std::vector<F> items_;
};
template <class T, VectorLayout L, unsigned A, bool I, VectorLayout OL, unsigned OA, bool OI>
class Vector<Input<Vector<T, L, A, I>>, OL, OA, OI> : public BoundList<Input<Vector<T, L, A, I>>> {};
template <class T, VectorLayout L, unsigned A, bool I, VectorLayout OL, unsigned OA, bool OI>
class Vector<Output<Vector<T, L, A, I>>, OL, OA, OI> : public BoundList<Output<Vector<T, L, A, I>>> {};
template <class T, VectorLayout L, unsigned A, bool I, VectorLayout OL, unsigned OA, bool OI>
class Vector<InOut<Vector<T, L, A, I>>, OL, OA, OI> : public BoundList<InOut<Vector<T, L, A, I>>> {};

namespace detail {

template <class F>
struct FieldTraits;  // of everything that is not state

template <class T, FieldDirection D>
struct ScalarTraits {
  using Element = T;
  static constexpr FieldShape shape = FieldShape::scalar;
  static constexpr FieldDirection direction = D;
  static constexpr VectorLayout layout = VectorLayout::one_ptr;
  static constexpr unsigned alignment = 0;
  static constexpr bool interleaved = false;
};
template <class T, FieldDirection D, VectorLayout L, unsigned A, bool I, FieldShape S>
struct VectorTraits {
  using Element = T;
  static constexpr FieldShape shape = S;
  static constexpr FieldDirection direction = D;
  static constexpr VectorLayout layout = L;
  static constexpr unsigned alignment = A;
  static constexpr bool interleaved = I;
};
#define SUPERSTEP_FIELD(wrapper, way)                                                           \
  template <class T>                                                                            \
  struct FieldTraits<wrapper<T>> : ScalarTraits<T, FieldDirection::way> {};                     \
  template <class T, VectorLayout L, unsigned A, bool I>                                        \
  struct FieldTraits<wrapper<Vector<T, L, A, I>>>                                               \
      : VectorTraits<T, FieldDirection::way, L, A, I, FieldShape::vector> {};                   \
  template <class T, VectorLayout L, unsigned A, bool I, VectorLayout OL, unsigned OA, bool OI> \
  struct FieldTraits<Vector<wrapper<Vector<T, L, A, I>>, OL, OA, OI>>                           \
      : VectorTraits<T, FieldDirection::way, L, A, I, FieldShape::vector_list> {};
SUPERSTEP_FIELD(Input, input)
SUPERSTEP_FIELD(Output, output)
SUPERSTEP_FIELD(InOut, in_out)
#undef SUPERSTEP_FIELD

}  // namespace detail

// Collects the fields of a vertex: name, kind, type, and how the engine binds them.
class FieldList {
 public:
  explicit FieldList(const void* object) : object_(static_cast<const std::byte*>(object)) {}

  template <class F>
  FieldList& operator()(const char* name, F& field) {
    FieldInfo info;
    info.name = name;
    info.offset = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&field) - object_);
    if constexpr (std::is_arithmetic_v<F> || std::is_same_v<F, f16>) {
      info.shape = FieldShape::state;
      info.direction = FieldDirection::input;
      info.type = element_type_of<F>;
    } else {
      describe<F>(info);
    }
    fields_.push_back(std::move(info));
    return *this;
  }

  std::vector<FieldInfo> take() { return std::move(fields_); }

 private:
  template <class F>
  static void describe(FieldInfo& info) {
    using Traits = detail::FieldTraits<F>;
    info.shape = Traits::shape;
    info.direction = Traits::direction;
    info.layout = Traits::layout;
    info.minimum_alignment = Traits::alignment;
    info.interleaved = Traits::interleaved;
    info.type = element_type_of<typename Traits::Element>;
    info.bind = [](void* field, std::span<const Piece> pieces) { bind(*static_cast<F*>(field), pieces); };
  }

  template <class F>
  static void bind(F& field, std::span<const Piece> pieces) {
    using Element = typename detail::FieldTraits<F>::Element;
    if constexpr (detail::FieldTraits<F>::shape == FieldShape::vector_list) {
      field.items_.resize(pieces.size());
      for (std::size_t i = 0; i < pieces.size(); ++i) set(field.items_[i], pieces[i]);
    } else if constexpr (detail::FieldTraits<F>::shape == FieldShape::vector) {
      set(field, pieces[0]);
    } else {
      field.data_ = static_cast<Element*>(pieces[0].data);
    }
  }

  template <class F>
  static void set(F& vector, const Piece& piece) {
    using Element = typename F::Element;
    vector.data_ = static_cast<Element*>(piece.data);
    vector.size_ = static_cast<std::size_t>(piece.size);
  }

  const std::byte* object_;
  std::vector<FieldInfo> fields_;
};

namespace detail {

template <class V>
void compute_vertex(void* object, unsigned worker) {
  V& vertex = *static_cast<V*>(object);
  if constexpr (V::vertex_kind == VertexKind::multi)
    vertex.compute(worker);
  else
    vertex.compute();
}

template <class V>
concept HasCycles = requires(const VertexFields& fields, const Device& device) {
  { V::cycles(fields, device) } -> std::convertible_to<PerfEstimate>;
};

}  // namespace detail

// The description of a vertex class, under the name that add_vertex asks for. Fields must have distinct
// names; throws Error (invalid_argument) otherwise.
template <class V>
VertexClass vertex_class(std::string name) {
  VertexClass description;
  description.name = std::move(name);
  description.kind = V::vertex_kind;
  description.object_bytes = sizeof(V);
  description.object_alignment = alignof(V);
  description.construct = [](void* memory, const void*) { new (memory) V(); };
  description.destroy = [](void* memory) { static_cast<V*>(memory)->~V(); };
  description.compute = &detail::compute_vertex<V>;
  V sample{};
  FieldList list(&sample);
  sample.fields(list);
  description.fields = list.take();
  if constexpr (detail::HasCycles<V>)
    description.cycles = [](const VertexFields& fields, const Device& device) -> PerfEstimate {
      return V::cycles(fields, device);
    };
  check_vertex_class(description);
  return description;
}

}  // namespace superstep::bsp

#pragma GCC visibility pop
