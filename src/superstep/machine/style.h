// The styles in which machines execute a model, and which numbers a machine of each style has.
//
// A style fixes which costs add and which overlap; the machine file fixes the constants.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace superstep::machine {

enum class Style : std::uint8_t { bulk_synchronous, kernel_by_kernel, spatial_pipeline, static_stream };

const char* name_of(Style style);  // "bulk-synchronous", as in machine files
std::optional<Style> style_from_name(std::string_view name);

// What a machine file may say. A number without a default must be there.
struct ConstantSpec {
  std::string_view name, unit, meaning;
  std::optional<double> otherwise = std::nullopt;
  double low = 0, high = 0;  // of the default; both 0: half of it up or down
};

std::span<const ConstantSpec> constants_of(Style style);

inline bool only_serves(Style style) { return style == Style::static_stream; }  // no training runs on it

}  // namespace superstep::machine
