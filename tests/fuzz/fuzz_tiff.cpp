// Any bytes are either read or refused with an Error.
#include "superstep/base/error.h"
#include "superstep/file/tiff.h"
#include "tests/fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  try {
    superstep::data::read_tiff(InputFile(data, size).path());
  } catch (const superstep::Error&) {
  }
  return 0;
}
