// What comes from a detector: the beginning of a series, its frames, its end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "superstep/base/element_type.h"

namespace superstep::edge {

struct SeriesBegin {
  std::string series;
  std::uint64_t frames = 0;  // announced; 0: not known
};

struct Frame {
  std::string series;
  std::uint64_t number = 0;  // from 0 on
  ElementType element = ElementType::f32;
  std::vector<std::int64_t> extents;
  std::vector<std::string> other_channels{};               // of the message, whose pixels these are not
  std::span<const std::byte> pixels;                       // within the message, or `unpacked`; little-endian
  std::shared_ptr<const std::vector<std::byte>> unpacked;  // where the message has them compressed
  std::optional<std::pair<double, double>> position;       // of the scan, (y, x) in m
};

struct SeriesEnd {
  std::string series;
};

// Numbers of frames are kept as bits: a number beyond this is none (chosen: 8 MB a series).
inline constexpr std::uint64_t most_frames = std::uint64_t{1} << 26;
// A series' name becomes a file's: letters, digits, '-', '_' and '.', which it does not begin with.
inline constexpr std::size_t most_name_bytes = 128;
bool is_series_name(std::string_view name);

}  // namespace superstep::edge
