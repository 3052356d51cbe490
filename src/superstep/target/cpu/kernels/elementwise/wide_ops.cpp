#include "superstep/target/cpu/kernels/elementwise/wide_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>

namespace superstep::kernels {

namespace {

constexpr std::int64_t undivided_elements = 8 * 1024;  // fewer are not worth another thread

// A row of elements: where operands and result begin, and their steps.
struct Row {
  std::array<const void*, 3> from;
  void* to;
  std::array<std::int64_t, 3> steps;
  std::int64_t to_step, count;
  double (*function)(double);
};
using RunRow = void (*)(const Row&);

// ---- what is done with an element

template <class T>
using Bits = std::make_unsigned_t<T>;

template <class T, class Function>
T wrapping(T a, T b, const Function& function) {
  if constexpr (std::is_integral_v<T>)  // in 64 bits, since shorter ones would become signed
    return static_cast<T>(function(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  else
    return function(a, b);
}

template <class T>
T quotient(T a, T b) {
  if constexpr (!std::is_integral_v<T>) return a / b;
  if (b == T{}) return T{};
  if constexpr (std::is_signed_v<T> && std::is_integral_v<T>)
    if (b == T(-1)) return wrapping<T>(T{}, a, [](auto x, auto y) { return x - y; });
  return static_cast<T>(a / b);
}

template <class T>
T remainder_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == T{}) return T{};
    if constexpr (std::is_signed_v<T>)
      if (b == T(-1)) return T{};
    return static_cast<T>(a % b);
  } else {
    return std::fmod(a, b);
  }
}

template <class T>
T modulus_of(T a, T b) {
  const T rest = remainder_of(a, b);
  if constexpr (std::is_floating_point_v<T>)
    if (rest == 0) return std::copysign(rest, b);
  return rest != T{} && (rest < T{}) != (b < T{}) ? static_cast<T>(rest + b) : rest;
}

template <class T>
T power_of(T base, T exponent) {
  if constexpr (!std::is_integral_v<T>) {
    return std::pow(base, exponent);
  } else {
    if constexpr (std::is_signed_v<T>)
      if (exponent < 0) return base == 1 ? T(1) : T(0);
    T result = 1;
    for (auto rest = static_cast<Bits<T>>(exponent); rest; rest = static_cast<Bits<T>>(rest >> 1)) {
      if (rest & 1) result = wrapping(result, base, [](auto x, auto y) { return x * y; });
      base = wrapping(base, base, [](auto x, auto y) { return x * y; });
    }
    return result;
  }
}

template <class T, bool left>
T shifted(T a, T b) {
  if (b < T{} || static_cast<std::uint64_t>(b) >= 8 * sizeof(T)) return !left && a < T{} ? T(-1) : T{};
  return static_cast<T>(left ? static_cast<T>(static_cast<std::uint64_t>(a) << b) : static_cast<T>(a >> b));
}

template <class To, class From>
To converted(From value) {
  if constexpr (std::is_same_v<From, bf16> || std::is_same_v<From, f16>)
    return converted<To>(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, bf16> || std::is_same_v<To, f16>)
    return To(static_cast<float>(value));
  else if constexpr (std::is_same_v<To, bool>)
    return value != From{};
  else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    if (std::isnan(value)) return To{};
    const auto wide = static_cast<double>(value);
    // The largest of 64 bits is no double; the number after it is.
    constexpr double after =
        2.0 * static_cast<double>(std::uint64_t{1} << (std::numeric_limits<To>::digits - 1));
    if (wide >= after) return std::numeric_limits<To>::max();
    if (wide <= static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return static_cast<To>(wide);
  } else {
    return static_cast<To>(value);
  }
}

template <WideOp op, class T>
T unary(T a, [[maybe_unused]] double (*function)(double)) {
  if constexpr (op == WideOp::negate)
    return wrapping(T{}, a, [](auto x, auto y) { return std::is_integral_v<T> ? x - y : -y; });
  if constexpr (op == WideOp::absolute) {
    if constexpr (std::is_floating_point_v<T>) return std::abs(a);
    return a < T{} ? wrapping(T{}, a, [](auto x, auto y) { return x - y; }) : a;
  }
  if constexpr (op == WideOp::sign) return a > T{} ? T(1) : a < T{} ? static_cast<T>(T{} - T(1)) : a;
  if constexpr (op == WideOp::complement && std::is_integral_v<T>) return static_cast<T>(~a);
  if constexpr (op == WideOp::function && std::is_same_v<T, double>) return function(a);
  return a;
}

template <WideOp op, class T>
T binary(T a, T b) {
  if constexpr (op == WideOp::add) return wrapping(a, b, [](auto x, auto y) { return x + y; });
  if constexpr (op == WideOp::subtract) return wrapping(a, b, [](auto x, auto y) { return x - y; });
  if constexpr (op == WideOp::multiply) return wrapping(a, b, [](auto x, auto y) { return x * y; });
  if constexpr (op == WideOp::divide) return quotient(a, b);
  if constexpr (op == WideOp::remainder) return remainder_of(a, b);
  if constexpr (op == WideOp::modulus) return modulus_of(a, b);
  if constexpr (op == WideOp::least) return a < b || a != a ? a : b;
  if constexpr (op == WideOp::largest) return a > b || a != a ? a : b;
  if constexpr (op == WideOp::power) return power_of(a, b);
  if constexpr (std::is_integral_v<T>) {
    if constexpr (op == WideOp::bits_and) return static_cast<T>(a & b);
    if constexpr (op == WideOp::bits_or) return static_cast<T>(a | b);
    if constexpr (op == WideOp::bits_xor) return static_cast<T>(a ^ b);
    if constexpr (op == WideOp::shift_left) return shifted<T, true>(a, b);
    if constexpr (op == WideOp::shift_right) return shifted<T, false>(a, b);
  }
  return a;
}

template <WideOp op, class T>
bool compared(T a, T b) {
  if constexpr (op == WideOp::equal) return a == b;
  if constexpr (op == WideOp::less) return a < b;
  return a <= b;
}

// ---- rows

template <class T, class To, class Function>
void unary_row(const Row& row, const Function& function) {
  const T* a = static_cast<const T*>(row.from[0]);
  To* y = static_cast<To*>(row.to);
  if (row.steps[0] == 1 && row.to_step == 1)
    for (std::int64_t i = 0; i < row.count; ++i) y[i] = function(a[i]);
  else
    for (std::int64_t i = 0; i < row.count; ++i) y[i * row.to_step] = function(a[i * row.steps[0]]);
}

template <class T, class To, class Function>
void binary_row(const Row& row, const Function& function) {
  const T *a = static_cast<const T*>(row.from[0]), *b = static_cast<const T*>(row.from[1]);
  To* y = static_cast<To*>(row.to);
  const auto [sa, sb, unused] = row.steps;
  if (sa == 1 && sb == 1 && row.to_step == 1)
    for (std::int64_t i = 0; i < row.count; ++i) y[i] = function(a[i], b[i]);
  else
    for (std::int64_t i = 0; i < row.count; ++i) y[i * row.to_step] = function(a[i * sa], b[i * sb]);
}

template <WideOp op, class T>
void run_unary(const Row& row) {
  unary_row<T, T>(row, [function = row.function](T a) { return unary<op>(a, function); });
}
template <WideOp op, class T>
void run_binary(const Row& row) {
  binary_row<T, T>(row, binary<op, T>);
}
template <WideOp op, class T>
void run_comparison(const Row& row) {
  binary_row<T, bool>(row, compared<op, T>);
}
template <class From, class To>
void run_conversion(const Row& row) {
  unary_row<From, To>(row, converted<To, From>);
}

template <class T>
void run_selection(const Row& row) {
  const bool* condition = static_cast<const bool*>(row.from[0]);
  const T *a = static_cast<const T*>(row.from[1]), *b = static_cast<const T*>(row.from[2]);
  T* y = static_cast<T*>(row.to);
  for (std::int64_t i = 0; i < row.count; ++i)
    y[i * row.to_step] = condition[i * row.steps[0]] ? a[i * row.steps[1]] : b[i * row.steps[2]];
}

// ---- which row

template <class T>
RunRow row_of(WideOp op) {
  switch (op) {
    case WideOp::negate: return run_unary<WideOp::negate, T>;
    case WideOp::absolute: return run_unary<WideOp::absolute, T>;
    case WideOp::sign: return run_unary<WideOp::sign, T>;
    case WideOp::complement: return run_unary<WideOp::complement, T>;
    case WideOp::function: return run_unary<WideOp::function, T>;
    case WideOp::add: return run_binary<WideOp::add, T>;
    case WideOp::subtract: return run_binary<WideOp::subtract, T>;
    case WideOp::multiply: return run_binary<WideOp::multiply, T>;
    case WideOp::divide: return run_binary<WideOp::divide, T>;
    case WideOp::remainder: return run_binary<WideOp::remainder, T>;
    case WideOp::modulus: return run_binary<WideOp::modulus, T>;
    case WideOp::least: return run_binary<WideOp::least, T>;
    case WideOp::largest: return run_binary<WideOp::largest, T>;
    case WideOp::power: return run_binary<WideOp::power, T>;
    case WideOp::bits_and: return run_binary<WideOp::bits_and, T>;
    case WideOp::bits_or: return run_binary<WideOp::bits_or, T>;
    case WideOp::bits_xor: return run_binary<WideOp::bits_xor, T>;
    case WideOp::shift_left: return run_binary<WideOp::shift_left, T>;
    case WideOp::shift_right: return run_binary<WideOp::shift_right, T>;
    case WideOp::equal: return run_comparison<WideOp::equal, T>;
    case WideOp::less: return run_comparison<WideOp::less, T>;
    case WideOp::less_or_equal: return run_comparison<WideOp::less_or_equal, T>;
    case WideOp::convert:
    case WideOp::select: break;
  }
  return nullptr;
}

bool is_of_bits(WideOp op) {
  return op == WideOp::complement || (op >= WideOp::bits_and && op <= WideOp::shift_right);
}

RunRow row_of(const WideOperation& o) {
  if (o.op == WideOp::convert)
    return dispatch(o.type, [&]<class From>() {
      return dispatch(o.result, [&]<class To>() -> RunRow { return run_conversion<From, To>; });
    });
  if (o.op == WideOp::select) switch (size_in_bytes(o.type)) {
      case 1: return run_selection<std::uint8_t>;
      case 2: return run_selection<std::uint16_t>;
      case 4: return run_selection<std::uint32_t>;
      default: return run_selection<std::uint64_t>;
    }
  if (o.op == WideOp::function && o.type != ElementType::f64) return nullptr;
  if (is_of_bits(o.op) && !is_integer(o.type)) return nullptr;
  return dispatch(o.type, [&]<class T>() -> RunRow {
    if constexpr (std::is_same_v<T, double> || (std::is_integral_v<T> && !std::is_same_v<T, bool>))
      return row_of<T>(o.op);
    else
      return nullptr;
  });
}

std::size_t operand_count(WideOp op) { return op == WideOp::select ? 3 : op >= WideOp::add ? 2 : 1; }

bool compares(WideOp op) { return op == WideOp::equal || op == WideOp::less || op == WideOp::less_or_equal; }

struct Axis {
  std::int64_t extent;
  std::array<std::int64_t, 3> from;
  std::int64_t to;
};

// The result's largest strides first, joined where all tensors allow it.
std::vector<Axis> axes_of(const WideOperation& o) {
  std::vector<Axis> axes, merged;
  for (std::size_t i = 0; i < o.extents.size(); ++i) {
    if (o.extents[i] == 1) continue;
    Axis axis{o.extents[i], {}, o.y_strides[i]};
    for (std::size_t k = 0; k < o.strides.size(); ++k) axis.from[k] = o.strides[k][i];
    axes.push_back(axis);
  }
  std::ranges::stable_sort(axes,
                           [](const Axis& a, const Axis& b) { return std::abs(a.to) > std::abs(b.to); });
  for (const Axis& axis : axes) {
    bool joins = !merged.empty() && merged.back().to == axis.to * axis.extent;
    for (std::size_t k = 0; joins && k < 3; ++k) joins = merged.back().from[k] == axis.from[k] * axis.extent;
    if (joins)
      merged.back() = {merged.back().extent * axis.extent, axis.from, axis.to};
    else
      merged.push_back(axis);
  }
  if (merged.empty()) merged.push_back({1, {}, 1});
  return merged;
}

class WideKernel final : public Kernel {
 public:
  WideKernel(KernelInfo info, const WideOperation& o)
      : Kernel(std::move(info)), axes_(axes_of(o)), run_row_(row_of(o)), function_(o.function) {
    for (std::size_t k = 0; k < o.strides.size(); ++k) {
      const bool truth = o.op == WideOp::select && k == 0;
      sizes_[k] = static_cast<std::int64_t>(truth ? 1 : size_in_bytes(o.type));
    }
    const ElementType to = compares(o.op)            ? ElementType::boolean
                           : o.op == WideOp::convert ? o.result
                                                     : o.type;
    to_size_ = static_cast<std::int64_t>(size_in_bytes(to));
    if (info_.flops > undivided_elements)
      info_.parts = std::clamp<std::int64_t>(axes_[0].extent, 1, most_parts);
  }

  void run(const Arguments& arguments) const override { walk(arguments, {0, axes_[0].extent}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    walk(arguments, part_range(axes_[0].extent, part, info_.parts));
  }

 private:
  void walk(const Arguments& arguments, PartRange range) const {
    Row row{{}, arguments.outputs[0], axes_.back().from, axes_.back().to, axes_.back().extent, function_};
    for (std::size_t k = 0; k < arguments.inputs.size(); ++k) row.from[k] = arguments.inputs[k];
    move(row, axes_[0], range.begin);
    walk_from(0, range.end - range.begin, row);
  }

  void move(Row& row, const Axis& axis, std::int64_t count) const {
    for (std::size_t k = 0; k < 3; ++k)
      row.from[k] = static_cast<const std::byte*>(row.from[k]) + axis.from[k] * count * sizes_[k];
    row.to = static_cast<std::byte*>(row.to) + axis.to * count * to_size_;
  }

  void walk_from(std::size_t depth, std::int64_t extent, Row row) const {
    if (depth + 1 == axes_.size()) {
      row.count = extent;
      return run_row_(row);
    }
    for (std::int64_t i = 0; i < extent; ++i, move(row, axes_[depth], 1))
      walk_from(depth + 1, axes_[depth + 1].extent, row);
  }

  std::vector<Axis> axes_;
  RunRow run_row_;
  double (*function_)(double);
  std::array<std::int64_t, 3> sizes_{};
  std::int64_t to_size_ = 0;
};

std::string fault_of(const WideOperation& o) {
  if (o.strides.size() != operand_count(o.op))
    return fmt::format("{} takes {} operands", name_of(o.op), operand_count(o.op));
  for (const auto& strides : o.strides)
    if (strides.size() != o.extents.size()) return "extents and strides differ in length";
  if (o.y_strides.size() != o.extents.size()) return "extents and strides differ in length";
  if (o.op == WideOp::function && !o.function) return "no function";
  if (!row_of(o)) return fmt::format("{} of {}", name_of(o.op), name_of(o.type));
  return {};
}

}  // namespace

const char* name_of(WideOp op) {
  static constexpr const char* names[] = {
      "negate",   "absolute", "sign",       "complement",  "function", "convert", "add",           "subtract",
      "multiply", "divide",   "remainder",  "modulus",     "least",    "largest", "power",         "bits_and",
      "bits_or",  "bits_xor", "shift_left", "shift_right", "equal",    "less",    "less_or_equal", "select"};
  return names[static_cast<int>(op)];
}

Prepared prepare(const WideOperation& o) {
  if (std::string fault = fault_of(o); !fault.empty()) return refuse("wide elements", fault);
  double elements = 1;
  for (std::int64_t extent : o.extents) elements *= static_cast<double>(extent);
  const auto size = static_cast<double>(size_in_bytes(o.type));
  KernelInfo info{.name = fmt::format("{} of {}", name_of(o.op), name_of(o.type)),
                  .flops = elements,
                  .bytes = elements * size * static_cast<double>(o.strides.size() + 1),
                  .inputs = o.strides.size(),
                  .outputs = 1};
  return std::make_unique<WideKernel>(std::move(info), o);
}

}  // namespace superstep::kernels
