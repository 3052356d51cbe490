// A breath between two looks at a word that another processor writes.
#pragma once

namespace superstep {

inline void pause_spinning() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // some tens of cycles; `yield` does nothing on most processors
#endif
}

}  // namespace superstep
