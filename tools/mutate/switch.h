// The switch of mutations: every mutation of a program is compiled into it, and the environment chooses one.
//
// SUPERSTEP_MUTATION=17 turns mutation 17 on; SUPERSTEP_MUTATIONS_REACHED names a file with one byte per mutation, set
// to 1 where the place was evaluated (mapped and shared: children and what ends by a signal count as well). What is
// evaluated while compiling is never mutated.
#pragma once

namespace superstep_mutation {

extern int chosen;
extern unsigned char* reached;

inline constexpr bool on(int number) {
  if consteval {
    return false;
  } else {
    reached[number] = 1;
    return chosen == number;
  }
}

template <typename L, typename R> constexpr auto less(int m, L l, R r) { return on(m) ? l <= r : l < r; }
template <typename L, typename R> constexpr auto less_equal(int m, L l, R r) { return on(m) ? l < r : l <= r; }
template <typename L, typename R> constexpr auto greater(int m, L l, R r) { return on(m) ? l >= r : l > r; }
template <typename L, typename R> constexpr auto greater_equal(int m, L l, R r) { return on(m) ? l > r : l >= r; }
template <typename L, typename R> constexpr auto add(int m, L l, R r) { return on(m) ? l - r : l + r; }
template <typename L, typename R> constexpr auto subtract(int m, L l, R r) { return on(m) ? l + r : l - r; }
template <typename L, typename R> constexpr auto multiply(int m, L l, R r) { return on(m) ? l + r : l * r; }
template <typename L, typename R> constexpr auto divide(int m, L l, R r) { return on(m) ? l * r : l / r; }
template <typename N> constexpr N next(int m, N n) { return on(m) ? static_cast<N>(n + 1) : n; }
template <typename N> constexpr N twice(int m, N n) { return on(m) ? static_cast<N>(n * 2 + 1) : n; }

}  // namespace superstep_mutation
