// Executables of Poplar programs, from behind the line that keeps accidents out.
#include <poplar/exceptions.hpp>

#include "superstep/poplar/executable/executable_file.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  try {
    poplar::core::executable_of(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const poplar::poplar_error&) {
  }
  return 0;
}
