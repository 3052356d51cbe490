// Any text is either a pickled list or refused with an Error, and the strings that it held come back.
#include <cstdlib>
#include <string>

#include "superstep/base/error.h"
#include "superstep/file/hdf5/pytables.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace superstep::data;
  try {
    const auto strings = unpickle_strings({reinterpret_cast<const char*>(data), size}, "fuzz");
    for (const std::string& text : strings)
      if (text.find('\n') != std::string::npos) return 0;  // names of columns have no line breaks
    if (unpickle_strings(pickle_strings(strings), "fuzz") != strings) std::abort();
  } catch (const superstep::Error&) {
  }
  return 0;
}
