#include "superstep/edge/model/pixels.h"

#include <cstring>
#include <limits>
#include <type_traits>

namespace superstep::edge {

void convert_pixels(ElementType element, std::span<const std::byte> pixels, float scale, bool marks_gaps,
                    std::span<float> values) {
  dispatch(element, [&]<class T>() {
    const std::byte* from = pixels.data();
    for (std::size_t i = 0; i < values.size(); ++i, from += sizeof(T)) {
      T pixel;
      std::memcpy(&pixel, from, sizeof(T));
      float value = static_cast<float>(pixel);
      if constexpr (std::is_integral_v<T> && std::is_unsigned_v<T> && !std::is_same_v<T, bool>)
        if (marks_gaps && pixel == std::numeric_limits<T>::max()) value = 0;
      values[i] = scale * value;
    }
  });
}

}  // namespace superstep::edge
