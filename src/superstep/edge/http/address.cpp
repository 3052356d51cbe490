#include <charconv>

#include "superstep/base/error.h"
#include "superstep/edge/http/server.h"

namespace superstep::edge {

bool Address::is_loopback() const { return host == "::1" || host.starts_with("127."); }

Address parse_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  Address address;
  bool good = colon != std::string::npos;
  if (good) {
    address.host = colon == 0 ? "127.0.0.1" : text.substr(0, colon);
    if (address.host.starts_with('[') && address.host.ends_with(']'))
      address.host = address.host.substr(1, address.host.size() - 2);
    if (address.host == "localhost") address.host = "127.0.0.1";
    if (address.host == "*") address.host = "0.0.0.0";
    const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(begin, end, address.port);
    good = failed == std::errc() && stop == end && begin != end;
  }
  if (!good)
    throw Error(ErrorCode::invalid_argument, "is no address to listen at", text,
                "give HOST:PORT, as 127.0.0.1:8000");
  return address;
}

}  // namespace superstep::edge
