// Any bytes are records of CIFAR-10 or CIFAR-100, with labels in range, or refused with an Error.
#include <algorithm>
#include <cstdlib>

#include "superstep/base/error.h"
#include "superstep/file/cifar_file.h"
#include "tests/fuzz/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const InputFile file(data, size);
  for (const int classes : {10, 100}) try {
      const auto read = superstep::data::read_cifar(file.path(), classes);
      const auto labels = read.labels.as<std::uint8_t>();
      if (std::ranges::any_of(labels, [&](std::uint8_t label) { return label >= classes; })) std::abort();
    } catch (const superstep::Error&) {
    }
  return 0;
}
