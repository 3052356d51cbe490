#include "superstep/openmp/program/host_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace superstep::openmp {

Contents::Contents(const Offload& offload, const std::set<void*>& constants) {
  for (Offload::Mapped& array : offload.all_mapped()) {
    if (constants.contains(array.host)) continue;
    const auto* begin = static_cast<const std::byte*>(array.host);
    bytes_.emplace_back(begin, begin + array.bytes());
    arrays_.push_back(std::move(array));
  }
}

void Contents::put_back() const {
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    std::memcpy(arrays_[i].host, bytes_[i].data(), bytes_[i].size());
}

namespace {

std::string words(ElementType type, const std::byte* bytes) {
  return dispatch(type, [&]<class T>() {
    T value;
    std::memcpy(&value, bytes, sizeof(value));
    if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16>)
      return fmt::format("{}", static_cast<float>(value));
    else
      return fmt::format("{}", value);
  });
}

// Whether two sums of `numbers` numbers of one sign may be so far apart: the bound of rounding in any order
// (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2). Sums that nearly cancel may be
// further apart.
bool near(ElementType type, double numbers, const std::byte* a, const std::byte* b) {
  double x = 0, y = 0, share = numbers * 0x1p-24;
  if (type == ElementType::f32) {
    float p = 0, q = 0;
    std::memcpy(&p, a, sizeof(p));
    std::memcpy(&q, b, sizeof(q));
    x = static_cast<double>(p), y = static_cast<double>(q);
  } else if (type == ElementType::f64) {
    std::memcpy(&x, a, sizeof(x));
    std::memcpy(&y, b, sizeof(y));
    share = numbers * 0x1p-53;
  } else {
    return false;
  }
  return std::abs(x - y) <= share * std::max(std::abs(x), std::abs(y));
}

}  // namespace

std::string Contents::difference(const std::set<void*>& sums) const {
  // Those of the largest array: what a region adds up is in one.
  double numbers = 64;
  for (const Offload::Mapped& array : arrays_) numbers = std::max(numbers, static_cast<double>(array.count));
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const Offload::Mapped& array = arrays_[i];
    const auto* now = static_cast<const std::byte*>(array.host);
    if (std::memcmp(now, bytes_[i].data(), bytes_[i].size()) == 0) continue;
    const std::size_t size = size_in_bytes(array.type);
    for (std::size_t at = 0; at < bytes_[i].size(); at += size) {
      const std::byte* tiles = bytes_[i].data() + at;
      if (std::memcmp(now + at, tiles, size) == 0) continue;
      if (sums.contains(array.host) && near(array.type, numbers, now + at, tiles)) continue;
      return fmt::format("{}[{}] is {} on the tiles and {} on the host", array.name, at / size,
                         words(array.type, tiles), words(array.type, now + at));
    }
  }
  return {};
}

void fetch(Offload& offload, const Contents& before) {
  for (const Offload::Mapped& array : before.arrays()) offload.ask_for(array.host, 0, array.count);
  offload.finish();
}

void send(Offload& offload, const Contents& before) {
  for (const Offload::Mapped& array : before.arrays()) offload.update_to(array.host, 0, array.count);
}

}  // namespace superstep::openmp
