// What the processor that runs the tests has.
#pragma once

namespace superstep::test {

// Are products of bytes faster than those of floats? Elsewhere every product stays in f32.
inline bool multiplies_bytes() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}

// Four at a time: which products gain from bytes is another question then.
inline bool multiplies_bytes_by_fours() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512vnni") != 0;
#else
  return false;
#endif
}

}  // namespace superstep::test
