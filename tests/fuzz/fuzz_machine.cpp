// Any text is either a machine or refused with an Error.
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/machine/machine.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  try {
    superstep::machine::parse_machine({reinterpret_cast<const char*>(data), size}, "fuzz.toml").digest();
  } catch (const superstep::Error&) {
  }
  return 0;
}
