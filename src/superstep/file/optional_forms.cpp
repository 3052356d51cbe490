#include "superstep/file/optional_forms.h"

namespace superstep::data {
namespace {

#ifdef SUPERSTEP_WEBP
constexpr bool webp = true;
#else
constexpr bool webp = false;
#endif
#ifdef SUPERSTEP_ZSTD
constexpr bool zstd = true;
#else
constexpr bool zstd = false;
#endif
#ifdef SUPERSTEP_LZ4
constexpr bool lz4 = true;
#else
constexpr bool lz4 = false;
#endif

}  // namespace

std::vector<std::pair<const char*, bool>> optional_forms() {
  return {{"WebP pictures", webp}, {"what is packed by zstd", zstd}, {"what is packed by LZ4", lz4}};
}

}  // namespace superstep::data
