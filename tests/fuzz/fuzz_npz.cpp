// Any bytes are either read or refused with an Error.
#include "superstep/base/error.h"
#include "superstep/file/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  try {
    superstep::data::parse_npz({reinterpret_cast<const std::byte*>(data), size}, "fuzz");
  } catch (const superstep::Error&) {
  }
  return 0;
}
