#include "superstep/target/cpu/kernels/move/indexed_move.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <type_traits>

#include "superstep/base/error.h"

namespace superstep::kernels {

namespace {

using Axis = IndexedMove::Axis;
using Component = IndexedMove::Component;

constexpr std::int64_t undivided_bytes = 32 * 1024;  // less is not worth another thread
constexpr std::int64_t line_bytes = 64;              // of a cache, on every processor that has our vectors
constexpr std::int64_t chunk = 64;                   // index vectors at a time

struct Memory {
  void* data;
  void* other;
  const void* index;
};

// The place of the loop in each of the three tensors, in elements.
struct Place {
  std::int64_t data = 0, other = 0, index = 0;
  void move(const Axis& axis, std::int64_t count) {
    data += axis.data * count;
    other += axis.other * count;
    index += axis.index * count;
  }
};

// The offsets that `count` index vectors give, `step` apart; together, since loops without exits are quick.
template <class Index>
void find_offsets(const Index* index, std::int64_t step, std::int64_t count,
                  std::span<const Component> components, std::int64_t* offsets) {
  std::fill_n(offsets, count, 0);
  for (const Component& component : components) {
    const Index* first = index + component.offset;
    const std::int64_t extent = component.extent, stride = component.stride;
    bool outside = false;
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t given = first[k * step], i = given < 0 ? given + extent : given;
      outside |= static_cast<std::uint64_t>(i) >= static_cast<std::uint64_t>(extent);
      offsets[k] += i * stride;
    }
    if (!outside) continue;
    for (std::int64_t k = 0; k < count; ++k)
      if (const std::int64_t i = first[k * step]; i < -extent || i >= extent) refuse_index(i, extent);
  }
}

// ---- what is done at a place

template <class T>
struct Gathering {
  using Data = T;
  using Other = T;
  static void move(T& data, T& other) { other = data; }
  static void move_dense(T* data, T* other, std::int64_t count) {
    std::memcpy(other, data, static_cast<std::size_t>(count) * sizeof(T));
  }
};

template <class T, class Update, Combination combination>
struct Scattering {
  using Data = T;
  using Other = Update;
  static void move(T& data, Update& other) {
    const T update = static_cast<T>(other);
    if constexpr (combination == Combination::replace) data = update;
    if constexpr (combination == Combination::add) data = sum(data, update);
    if constexpr (combination == Combination::multiply) data = product(data, update);
    // NaN is both, wherever it is.
    if constexpr (combination == Combination::largest)
      data = update > data || update != update ? update : data;
    if constexpr (combination == Combination::least) data = update < data || update != update ? update : data;
  }
  // Data and updates are never one memory.
  static void move_dense(T* __restrict data, Update* __restrict other, std::int64_t count) {
    if constexpr (combination == Combination::replace && std::is_same_v<T, Update>)
      std::memcpy(data, other, static_cast<std::size_t>(count) * sizeof(T));
    else
      for (std::int64_t i = 0; i < count; ++i) move(data[i], other[i]);
  }

 private:
  // Integers wrap around.
  template <class Function>
  static T wrapped(T a, T b, const Function& function) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(function(static_cast<U>(a), static_cast<U>(b)));
    } else {
      return function(a, b);
    }
  }
  static T sum(T a, T b) {
    return wrapped(a, b, [](auto x, auto y) { return x + y; });
  }
  static T product(T a, T b) {
    return wrapped(a, b, [](auto x, auto y) { return x * y; });
  }
};

// Places at offsets of their own.
template <class Action>
void move_each(typename Action::Data* data, typename Action::Other* other, const Axis& axis,
               const std::int64_t* offsets, std::int64_t count) {
  if (axis.data == 0 && axis.other == 1)
    for (std::int64_t i = 0; i < count; ++i) Action::move(data[offsets[i]], other[i]);
  else
    for (std::int64_t i = 0; i < count; ++i)
      Action::move(data[i * axis.data + offsets[i]], other[i * axis.other]);
}

// The last axis of the loop: all of its places at one offset, or an offset each; `known` where rows before
// had the same.
template <class Action, class Index>
void move_row(const Memory& m, const Place& at, const Axis& axis, std::span<const Component> components,
              const std::int64_t* known) {
  auto* data = static_cast<Action::Data*>(m.data) + at.data;
  auto* other = static_cast<Action::Other*>(m.other) + at.other;
  const auto* index = static_cast<const Index*>(m.index) + at.index;
  std::int64_t offsets[chunk];
  if (known) return move_each<Action>(data, other, axis, known, axis.extent);
  if (axis.index != 0) {
    for (std::int64_t i = 0; i < axis.extent; i += chunk) {
      const std::int64_t count = std::min(chunk, axis.extent - i);
      find_offsets(index + i * axis.index, axis.index, count, components, offsets);
      move_each<Action>(data + i * axis.data, other + i * axis.other, axis, offsets, count);
    }
    return;
  }
  find_offsets(index, 1, 1, components, offsets);
  data += offsets[0];
  if (axis.data == 1 && axis.other == 1)
    Action::move_dense(data, other, axis.extent);
  else
    for (std::int64_t i = 0; i < axis.extent; ++i) Action::move(data[i * axis.data], other[i * axis.other]);
}

using MoveRow = void (*)(const Memory&, const Place&, const Axis&, std::span<const Component>,
                         const std::int64_t*);

class IndexedMoveKernel final : public Kernel {
 public:
  IndexedMoveKernel(KernelInfo info, IndexedMove move, std::size_t divided, MoveRow row, bool gathers)
      : Kernel(std::move(info)), move_(std::move(move)), divided_(divided), row_(row), gathers_(gathers) {}

  void run(const Arguments& arguments) const override { walk(arguments, {0, move_.axes[divided_].extent}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    walk(arguments, part_range(move_.axes[divided_].extent, part, info_.parts));
  }

 private:
  // All places whose number along the divided axis lies in the range.
  void walk(const Arguments& arguments, PartRange range) const {
    void* first = const_cast<void*>(arguments.inputs[0]);  // a gather only reads it
    const Memory memory = gathers_ ? Memory{first, arguments.outputs[0], arguments.inputs[1]}
                                   : Memory{arguments.outputs[0], first, arguments.inputs[1]};
    walk_from(0, range, memory, {}, known_offsets(memory, range, arguments.scratch));
  }

  // Of the last axis, where it alone has indices: found once for all of its rows. Null elsewhere.
  const std::int64_t* known_offsets(const Memory& memory, PartRange range, void* scratch) const {
    if (info_.scratch_bytes == 0) return nullptr;
    Axis last = move_.axes.back();
    Place place;
    if (divided_ + 1 == move_.axes.size()) {
      place.move(last, range.begin);
      last.extent = range.end - range.begin;
    }
    auto* offsets = static_cast<std::int64_t*>(scratch);
    if (move_.index_type == ElementType::i32)
      find_offsets(static_cast<const std::int32_t*>(memory.index) + place.index, last.index, last.extent,
                   move_.components, offsets);
    else
      find_offsets(static_cast<const std::int64_t*>(memory.index) + place.index, last.index, last.extent,
                   move_.components, offsets);
    return offsets;
  }

  void walk_from(std::size_t depth, PartRange divided, const Memory& memory, Place place,
                 const std::int64_t* known) const {
    Axis axis = move_.axes[depth];
    if (depth == divided_) {
      place.move(axis, divided.begin);
      axis.extent = divided.end - divided.begin;
    }
    if (axis.extent == 0) return;
    if (depth + 1 == move_.axes.size()) return row_(memory, place, axis, move_.components, known);
    for (std::int64_t i = 0; i < axis.extent; ++i, place.move(axis, 1))
      walk_from(depth + 1, divided, memory, place, known);
  }

  IndexedMove move_;
  std::size_t divided_;
  MoveRow row_;
  bool gathers_;
};

// ---- which loop

template <class Action>
MoveRow row_of(ElementType index) {
  return index == ElementType::i32 ? move_row<Action, std::int32_t> : move_row<Action, std::int64_t>;
}

template <template <class> class Action>
MoveRow row_of_bits(ElementType type, ElementType index) {
  switch (size_in_bytes(type)) {
    case 1: return row_of<Action<std::uint8_t>>(index);
    case 2: return row_of<Action<std::uint16_t>>(index);
    case 4: return row_of<Action<std::uint32_t>>(index);
    default: return row_of<Action<std::uint64_t>>(index);
  }
}

template <class T>
using Replacing = Scattering<T, T, Combination::replace>;

template <Combination combination>
MoveRow row_combining(const IndexedMove& m) {
  if (m.type == ElementType::f32 && m.other_type == ElementType::bf16)
    return row_of<Scattering<float, bf16, combination>>(m.index_type);
  if (m.type == ElementType::f32 && m.other_type == ElementType::f16)
    return row_of<Scattering<float, f16, combination>>(m.index_type);
  if (m.type != m.other_type) return nullptr;
  switch (m.type) {
    case ElementType::f32: return row_of<Scattering<float, float, combination>>(m.index_type);
    case ElementType::f64: return row_of<Scattering<double, double, combination>>(m.index_type);
    case ElementType::i32: return row_of<Scattering<std::int32_t, std::int32_t, combination>>(m.index_type);
    case ElementType::i64: return row_of<Scattering<std::int64_t, std::int64_t, combination>>(m.index_type);
    default: return nullptr;
  }
}

MoveRow row_combining(const IndexedMove& m, Combination combination) {
  switch (combination) {
    case Combination::replace: return row_of_bits<Replacing>(m.type, m.index_type);
    case Combination::add: return row_combining<Combination::add>(m);
    case Combination::multiply: return row_combining<Combination::multiply>(m);
    case Combination::largest: return row_combining<Combination::largest>(m);
    case Combination::least: return row_combining<Combination::least>(m);
  }
  return nullptr;
}

// ---- the order of the loop

// The largest strides of the other side first. What may meet at one place of the data keeps its order.
std::vector<Axis> ordered(const std::vector<Axis>& axes) {
  std::vector<Axis> sorted = axes, meeting;
  for (const Axis& axis : axes)
    if (!axis.apart) meeting.push_back(axis);
  std::ranges::stable_sort(
      sorted, [](const Axis& a, const Axis& b) { return std::abs(a.other) > std::abs(b.other); });
  auto next = meeting.begin();
  for (Axis& axis : sorted)
    if (!axis.apart) axis = *next++;
  return sorted;
}

bool joins(const Axis& outer, const Axis& inner) {
  return outer.apart == inner.apart && outer.data == inner.data * inner.extent &&
         outer.other == inner.other * inner.extent && outer.index == inner.index * inner.extent;
}

IndexedMove simplified(IndexedMove move) {
  std::erase_if(move.axes, [](const Axis& axis) { return axis.extent == 1; });
  std::vector<Axis> merged;
  for (const Axis& axis : ordered(move.axes)) {
    if (!merged.empty() && joins(merged.back(), axis))
      merged.back() = {merged.back().extent * axis.extent, axis.data, axis.other, axis.index, axis.apart};
    else
      merged.push_back(axis);
  }
  if (merged.empty()) merged.push_back({.apart = true});
  move.axes = std::move(merged);
  return move;
}

std::string fault_of(const IndexedMove& m) {
  for (const Axis& axis : m.axes)
    if (axis.extent < 0) return "an extent is negative";
  if (m.index_type != ElementType::i32 && m.index_type != ElementType::i64)
    return fmt::format("indices of {}", name_of(m.index_type));
  return {};
}

// Whether rows of the last axis have the same indices, several of them.
bool repeats_indices(const IndexedMove& m) {
  const auto has_index = [](const Axis& axis) { return axis.index != 0; };
  return m.axes.size() > 1 && std::ranges::count_if(m.axes, has_index) == 1 && has_index(m.axes.back());
}

// Into how many parts threads may share an axis: two that write to one line of a cache would take it from
// each other at every place.
std::int64_t parts_of(const IndexedMove& m, const Axis& axis, bool gathers) {
  if (!gathers && !axis.apart) return 1;
  const auto size = static_cast<std::int64_t>(size_in_bytes(m.type));
  const std::int64_t apart = std::max<std::int64_t>(1, std::abs(gathers ? axis.other : axis.data) * size);
  const std::int64_t together = std::max<std::int64_t>(1, line_bytes / apart);
  return std::clamp<std::int64_t>(axis.extent / together, 1, most_parts);
}

// The first of the axes that threads may share in the most parts.
std::size_t divided_axis(const IndexedMove& m, bool gathers) {
  const auto parts = [&](const Axis& axis) { return parts_of(m, axis, gathers); };
  return static_cast<std::size_t>(std::ranges::max_element(m.axes, {}, parts) - m.axes.begin());
}

Prepared made(const IndexedMove& given, MoveRow row, bool gathers) {
  const IndexedMove move = simplified(given);
  const std::size_t divided = divided_axis(move, gathers);
  double places = 1, indices = static_cast<double>(move.components.size());
  for (const Axis& axis : move.axes) {
    places *= static_cast<double>(axis.extent);
    if (axis.index != 0) indices *= static_cast<double>(axis.extent);
  }
  const auto size = static_cast<double>(size_in_bytes(move.type));
  KernelInfo info{.name = fmt::format("{} by index, {:.0f} elements", gathers ? "gather" : "scatter", places),
                  .flops = gathers ? 0 : places,
                  .bytes = (gathers ? 2 : 3) * places * size +
                           indices * static_cast<double>(size_in_bytes(move.index_type)),
                  .inputs = 2,
                  .outputs = 1};
  if (repeats_indices(move))
    info.scratch_bytes = static_cast<std::size_t>(move.axes.back().extent) * sizeof(std::int64_t);
  const bool divides = places * size > undivided_bytes;
  info.parts = divides ? parts_of(move, move.axes[divided], gathers) : 1;
  return std::make_unique<IndexedMoveKernel>(std::move(info), move, divided, row, gathers);
}

}  // namespace

void refuse_index(std::int64_t index, std::int64_t extent) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("index {} of input indices lies outside [{}, {}]", index, -extent, extent - 1));
}

Prepared prepare_indexed_gather(const IndexedMove& move) {
  if (std::string fault = fault_of(move); !fault.empty()) return refuse("gather by index", fault);
  return made(move, row_of_bits<Gathering>(move.type, move.index_type), true);
}

Prepared prepare_indexed_scatter(const IndexedMove& move, Combination combination) {
  if (std::string fault = fault_of(move); !fault.empty()) return refuse("scatter by index", fault);
  const MoveRow row = row_combining(move, combination);
  if (!row)
    return refuse("scatter by index",
                  fmt::format("{} is not combined with {}", name_of(move.other_type), name_of(move.type)));
  return made(move, row, false);
}

}  // namespace superstep::kernels
