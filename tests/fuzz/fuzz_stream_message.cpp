// Any bytes from the network are a message of a stream or refused with an Error. Parts are divided by
// "\n--\n".
#include "superstep/base/error.h"
#include "superstep/edge/stream/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<std::span<const std::byte>> parts;
  constexpr std::string_view divider = "\n--\n";
  for (;;) {
    const std::size_t end = rest.find(divider);
    parts.push_back(std::as_bytes(std::span(rest.substr(0, end))));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + divider.size());
  }
  try {
    superstep::edge::decode_message(parts);
  } catch (const superstep::Error&) {
  }
  return 0;
}
