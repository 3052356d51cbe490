#include "superstep/baseline/ptychography/epie_halves.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/baseline/ptychography/epie_compare.h"
#include "superstep/baseline/ptychography/fourier_ring.h"

namespace superstep::baseline {

PtychoData every_second_point(const PtychoData& data, std::size_t first) {
  PtychoData half{.n = data.n,
                  .height = data.height,
                  .width = data.width,
                  .positions = {},
                  .modulus = {},
                  .dead = data.dead,
                  .threshold = data.threshold};
  const auto pattern = static_cast<std::ptrdiff_t>(data.n) * data.n;
  for (std::size_t point = first; point < data.positions.size(); point += 2) {
    half.positions.push_back(data.positions[point]);
    const auto begin = data.modulus.begin() + static_cast<std::ptrdiff_t>(point) * pattern;
    half.modulus.insert(half.modulus.end(), begin, begin + pattern);
  }
  if (half.positions.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a scan of {} points has no two halves", data.positions.size()), "halves");
  return half;
}

std::optional<HalvesAgreement> agreement_of(std::span<const std::complex<float>> a,
                                            std::span<const std::complex<float>> b,
                                            std::span<const float> area, int height, int width) {
  constexpr int least_side = 8;  // chosen: four rings
  const Square square = largest_square(area, height, width);
  if (square.side < least_side) return std::nullopt;
  const ObjectComparison comparison = compare_objects(a, b, area, height, width);
  const RingCorrelation rings = fourier_ring_correlation(tapered_phase(comparison.aligned, width, square),
                                                         tapered_phase(b, width, square), square.side);
  return HalvesAgreement{.phase_rms = comparison.phase_rms,
                         .resolution = 1 / cut_off(rings, half_bit).value_or(0.5),
                         .side = square.side};
}

}  // namespace superstep::baseline
