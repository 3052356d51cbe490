// Any bytes are either read or refused with an Error, the elements of the arrays included.
#include "superstep/file/weights/gguf.h"
#include "tests/fuzz/attempt.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace superstep;
  attempt([&] {
    const data::GgufFile file =
        data::parse_gguf({reinterpret_cast<const std::byte*>(data), size}, nullptr, "fuzz");
    for (const data::Weight& weight : file.weights) {
      if (weight.blocks == data::BlockFormat::none) continue;
      std::vector<float> values(static_cast<std::size_t>(weight.shape.element_count()));
      data::unpack_blocks(weight.blocks, weight.bytes, values);
    }
  });
  return 0;
}
