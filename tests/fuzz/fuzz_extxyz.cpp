// Any bytes are either read or refused with an Error.
#include <memory>
#include <sstream>
#include <string>

#include "superstep/base/error.h"
#include "superstep/file/atoms/extxyz.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace superstep::data;
  try {
    XyzReader reader(
        std::make_unique<std::istringstream>(std::string(reinterpret_cast<const char*>(data), size)), "fuzz");
    for (XyzFrame frame; reader.next(frame);) format_xyz(frame);
  } catch (const superstep::Error&) {
  }
  return 0;
}
