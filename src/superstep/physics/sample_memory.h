// Typed access to the memory of one sample, for Generator::sample.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace superstep::data {

// Stores a scalar field.
template <class T>
void put(std::byte* memory, T value) {
  std::memcpy(memory, &value, sizeof value);
}

// Stores an array field, converted to T.
template <class T, class Range>
void put_all(std::byte* memory, const Range& values) {
  std::transform(std::begin(values), std::end(values), reinterpret_cast<T*>(memory),
                 [](auto value) { return static_cast<T>(value); });
}

template <class T>
std::span<T> elements(std::byte* memory, std::size_t count) {
  return {reinterpret_cast<T*>(memory), count};
}

}  // namespace superstep::data
