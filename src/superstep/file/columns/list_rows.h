// Rows of lists, as Parquet's levels say them: of one shape, or not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace superstep::data::columns {

// The levels of values that follow one another (parquet-format, README.md, "Nested Encoding"): a row begins
// where nothing is repeated (0).
struct Levels {
  std::vector<std::uint8_t> repeated = {}, defined = {};
};

// The extents of a row with these repetition levels, if it is an array: `lists` lists in one another.
std::optional<std::vector<std::int64_t>> extents_of_row(std::span<const std::uint8_t> repeated, int lists);

// The repetition levels of a row of these extents.
std::vector<std::uint8_t> pattern_of(std::span<const std::int64_t> extents);

}  // namespace superstep::data::columns
