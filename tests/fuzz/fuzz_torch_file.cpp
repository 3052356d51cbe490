// Any bytes are either read or refused with an Error, the elements of the tensors included: as an archive,
// and as the pickle in it.
#include "superstep/file/weights/pickle.h"
#include "superstep/file/weights/torch_file.h"
#include "tests/fuzz/attempt.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace superstep;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  attempt([&] { data::unpickle(bytes, "fuzz"); });
  attempt([&] {
    for (const data::Weight& weight : data::parse_torch_file(bytes, nullptr, "fuzz"))
      attempt([&] {
        constexpr std::int64_t most = 1 << 20;  // a stride of zero repeats elements
        if (weight.shape.element_count() < most) weight.tensor().bytes();
      });
  });
  return 0;
}
