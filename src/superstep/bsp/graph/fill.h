// One element over and over.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace superstep::bsp {

// Writes `count` copies of the element of so many bytes.
inline void fill_elements(std::byte* to, std::size_t count, const std::byte* element, std::size_t bytes) {
  constexpr std::size_t in_cache = 4096;  // bytes that are copied from where they have just been written
  if (count == 0) return;
  std::memcpy(to, element, bytes);
  for (std::size_t done = 1; done < count;) {
    const std::size_t more = std::min({done, count - done, std::max<std::size_t>(in_cache / bytes, 1)});
    std::memcpy(to + done * bytes, to, more * bytes);
    done += more;
  }
}

}  // namespace superstep::bsp
