// One number of a machine, with everything needed to trust or doubt it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace superstep::machine {

// How a number is known, in falling order of trust.
enum class Kind : std::uint8_t { measured, vendor_code, datasheet, derived, guess };

const char* name_of(Kind kind);  // "measured", "vendor-code", ...
bool kind_from_code(std::string_view code,
                    Kind& to);  // "ME", "VC", "DS", "DE", "GU", as machine files have it

struct Constant {
  std::string name;  // "clock"
  double value = 0;
  std::string unit;  // SI, or per cycle; empty for a count or a share
  Kind kind = Kind::guess;
  std::string source;  // in full; empty for a guess
  std::string note;
  double low = 0, high = 0;  // what it may be: the file's range, or its kind's usual uncertainty
  bool open = false;         // fitted, over many rows at the same time
  bool defaulted = false;    // the file does not have it: the style's default stands in
};

}  // namespace superstep::machine
