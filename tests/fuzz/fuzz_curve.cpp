// Any bytes at the door of an encrypted stream (ZMTP with CURVE) end the connection: nothing of them is a
// message, and who has a key comes in beside them.
#include <cstdio>
#include <cstdlib>

#include "superstep/edge/zeromq/socket.h"
#include "tests/fuzz/raw_connection.h"

namespace {

using namespace superstep;
using namespace std::chrono_literals;

// Keys of nobody: what they are does not matter here, but that they belong together (RFC 7748, 6.1).
constexpr unsigned char secret_bytes[] = {0x77, 0x07, 0x6d, 0x0a, 0x73, 0x18, 0xa5, 0x7d, 0x3c, 0x16, 0xc1,
                                          0x72, 0x51, 0xb2, 0x66, 0x45, 0xdf, 0x4c, 0x2f, 0x87, 0xeb, 0xc0,
                                          0x99, 0x2a, 0xb1, 0x77, 0xfb, 0xa5, 0x1d, 0xb9, 0x2c, 0x2a};
constexpr unsigned char public_bytes[] = {0x85, 0x20, 0xf0, 0x09, 0x89, 0x30, 0xa7, 0x54, 0x74, 0x8b, 0x7d,
                                          0xdc, 0xb4, 0x3e, 0xf7, 0x5a, 0x0d, 0xbf, 0x3a, 0x0d, 0x26, 0x38,
                                          0x1a, 0xf4, 0xeb, 0xa4, 0xa9, 0x8e, 0xaa, 0x9b, 0x4e, 0x6a};

edge::CurvePointer keys() {
  auto curve = std::make_shared<edge::Curve>();
  curve->secret_key.assign(reinterpret_cast<const char*>(secret_bytes), sizeof secret_bytes);
  curve->public_key.assign(reinterpret_cast<const char*>(public_bytes), sizeof public_bytes);
  curve->server_key = curve->public_key;
  curve->let_in({{curve->public_key, "itself"}});
  return curve;
}

void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static auto* const door = new edge::Socket(edge::SocketKind::pull, "tcp://127.0.0.1:*", {.curve = keys()});
  static const auto port =
      static_cast<std::uint16_t>(std::atoi(door->endpoint().substr(door->endpoint().rfind(':') + 1).c_str()));
  static std::uint64_t number = 0;
  exchange(port, data, size);
  edge::MessageParts parts;
  require(!door->receive(parts, 0ms), "a stranger's bytes are a message");
  if (++number % 256 != 0) return 0;
  edge::Socket sender(edge::SocketKind::push, door->endpoint(),
                      {.linger = 1s, .connects = true, .curve = keys()});
  const std::string message[] = {"known"};
  require(sender.send(message, 10s) && door->receive(parts, 10s) && parts.size() == 1,
          "who has a key was not heard");
  return 0;
}
