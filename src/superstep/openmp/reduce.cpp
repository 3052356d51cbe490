#include "superstep/openmp/reduce.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <new>

namespace superstep::openmp {
namespace {

template <class T>
constexpr bool is_half = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;

template <class T>
T neutral(Operator op) {
  using Limits = std::numeric_limits<T>;
  switch (op) {
    case Operator::add:
    case Operator::bit_or:
    case Operator::bit_xor:
    case Operator::last_value:
    case Operator::logical_or: return T(0);
    case Operator::multiply:
    case Operator::logical_and: return T(1);
    case Operator::bit_and:
      if constexpr (std::is_same_v<T, bool>) return true;
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) return static_cast<T>(~T(0));
      return T(0);
    case Operator::minimum: return Limits::has_infinity ? Limits::infinity() : Limits::max();
    case Operator::maximum: return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  return T(0);
}

template <class T>
T apply(Operator op, T a, T b) {
  switch (op) {
    case Operator::add: return static_cast<T>(a + b);
    case Operator::multiply: return static_cast<T>(a * b);
    case Operator::minimum: return b < a ? b : a;
    case Operator::maximum: return b > a ? b : a;
    case Operator::logical_and: return static_cast<T>(a != T(0) && b != T(0));
    case Operator::logical_or: return static_cast<T>(a != T(0) || b != T(0));
    default: break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == Operator::bit_and) return static_cast<T>(a & b);
    if (op == Operator::bit_or) return static_cast<T>(a | b);
    return static_cast<T>(a ^ b);
  }
  throw Error(ErrorCode::unsupported,
              fmt::format("operator {} does not take floating-point numbers", name_of(op)));
}

struct Combining {
  Operator op;
  ElementType type;
  bool onto;
};

struct CombiningVertex {
  const Combining* what = nullptr;
  bsp::Piece in, out;

  static void bind(void* field, std::span<const bsp::Piece> pieces) {
    *static_cast<bsp::Piece*>(field) = pieces[0];
  }
  static void compute(void* object, unsigned) {
    const auto& vertex = *static_cast<CombiningVertex*>(object);
    const auto bytes = size_in_bytes(vertex.what->type) * static_cast<std::size_t>(vertex.out.size);
    const auto* in = static_cast<const std::byte*>(vertex.in.data);
    std::int64_t group = 0;
    if (!vertex.what->onto || vertex.what->op == Operator::last_value) {
      std::memcpy(vertex.out.data, in, bytes);
      group = 1;
    }
    for (; group * vertex.out.size < vertex.in.size; ++group)
      combine(vertex.what->op, vertex.what->type, vertex.out.data,
              in + static_cast<std::size_t>(group) * bytes, vertex.out.size);
  }
};

}  // namespace

void fill_neutral(Operator op, ElementType type, void* values, std::int64_t count) {
  dispatch(type, [&]<class T>() {
    T* elements = static_cast<T*>(values);
    for (std::int64_t i = 0; i < count; ++i) {
      if constexpr (is_half<T>)
        elements[i] = T(neutral<float>(op));
      else
        elements[i] = neutral<T>(op);
    }
  });
}

namespace {

// One of the two is zeros.
void combine_last_values(void* into, const void* from, std::size_t bytes) {
  auto* a = static_cast<unsigned char*>(into);
  const auto* b = static_cast<const unsigned char*>(from);
  for (std::size_t i = 0; i < bytes; ++i) a[i] = static_cast<unsigned char>(a[i] | b[i]);
}

}  // namespace

void combine(Operator op, ElementType type, void* into, const void* from, std::int64_t count) {
  if (op == Operator::last_value)
    return combine_last_values(into, from, size_in_bytes(type) * static_cast<std::size_t>(count));
  dispatch(type, [&]<class T>() {
    T* a = static_cast<T*>(into);
    const T* b = static_cast<const T*>(from);
    for (std::int64_t i = 0; i < count; ++i) {
      if constexpr (is_half<T>)
        a[i] = T(apply<float>(op, static_cast<float>(a[i]), static_cast<float>(b[i])));
      else
        a[i] = apply<T>(op, a[i], b[i]);
    }
  });
}

bsp::Type stored_type(ElementType type) { return type == ElementType::f64 ? ElementType::u64 : type; }

bsp::VertexClass combining_class(Operator op, ElementType type, bool onto) {
  bsp::VertexClass description;
  description.name =
      fmt::format("Combine<{},{}>{}", name_of(op), superstep::name_of(type), onto ? "Onto" : "");
  bsp::FieldInfo in;
  in.name = "in";
  in.type = stored_type(type);
  in.offset = offsetof(CombiningVertex, in);
  in.bind = &CombiningVertex::bind;
  bsp::FieldInfo out = in;
  out.name = "out";
  out.direction = onto ? bsp::FieldDirection::in_out : bsp::FieldDirection::output;
  out.offset = offsetof(CombiningVertex, out);
  description.fields = {in, out};
  description.object_bytes = sizeof(CombiningVertex);
  description.object_alignment = alignof(CombiningVertex);
  description.construct = [](void* memory, const void* context) {
    new (memory) CombiningVertex{static_cast<const Combining*>(context), {}, {}};
  };
  description.destroy = [](void* memory) { static_cast<CombiningVertex*>(memory)->~CombiningVertex(); };
  description.compute = &CombiningVertex::compute;
  description.context = std::make_shared<const Combining>(Combining{op, type, onto});
  // A call, then a load and an operation an element (GU).
  description.cycles = [](const bsp::VertexFields& fields, const bsp::Device&) -> bsp::PerfEstimate {
    return {20 + 2 * fields.size("in"), static_cast<std::uint64_t>(fields.size("in"))};
  };
  return description;
}

}  // namespace superstep::openmp
