// Shares of one address in what a server has of connections, memory and requests: nobody shuts the others
// out.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace superstep::edge {

struct PeerLimits {
  std::size_t connections = 512;
  std::size_t bytes = std::size_t{512} << 20;  // of requests that are being received or answered
  std::size_t requests = 256;                  // at the same time
};

// The address as it counts: of IPv6 the first 64 bits, which is what a household or an institute has; what is
// no address (a socket's path) as it is. Ports do not count.
std::string peer_of(const std::string& address);

class PeerShares {
 public:
  explicit PeerShares(PeerLimits limits) : limits_(limits) {}

  const PeerLimits& limits() const { return limits_; }

  // One more connection; false: the peer has all it may, and it is not counted.
  bool add_connection(const std::string& peer);
  void drop_connection(const std::string& peer);
  // How many it has.
  std::size_t connections_of(const std::string& peer) const;

  bool add_request(const std::string& peer);
  void drop_request(const std::string& peer);

  bool take_bytes(const std::string& peer, std::size_t bytes);
  void give_bytes(const std::string& peer, std::size_t bytes);

 private:
  struct Taken {
    std::size_t connections = 0, requests = 0, bytes = 0;
  };
  bool add(const std::string& peer, std::size_t Taken::*what, std::size_t count, std::size_t most);
  void drop(const std::string& peer, std::size_t Taken::*what, std::size_t count);

  const PeerLimits limits_;
  mutable std::mutex mutex_;
  std::map<std::string, Taken, std::less<>> taken_;  // of peers that have something
};

}  // namespace superstep::edge
