// HTTP/1.1 over TCP for Routes: connections, limits and timeouts.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "superstep/edge/http/message.h"

namespace superstep::edge {

struct ServerSettings {
  std::string address = "127.0.0.1";
  std::uint16_t port = 8000;  // 0: any that is free
  int threads = 1;
  std::size_t most_body_bytes = std::size_t{64} << 20;
  std::size_t most_connections = 1024;  // one more takes the place of the one that is idle longest
  std::chrono::milliseconds header_time{10'000}, idle_time{300'000};
};

// Counts of what never reached the routes.
struct ServerCounts {
  std::uint64_t connections = 0, turned_away = 0, timed_out = 0, malformed = 0, too_large = 0, no_memory = 0;
};

class Server {
 public:
  using Handler = std::function<void(HttpRequest request, Reply reply)>;

  // Listens and answers from then on. `budget` must outlive it, and so must what `handle` uses. Requests for
  // which `takes_long` holds are handled by a thread of their own, one at a time. Throws Error (io) where the
  // address cannot be listened at.
  Server(const ServerSettings& settings, MemoryBudget& budget, Handler handle,
         std::function<bool(const HttpRequest&)> takes_long);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  ServerCounts counts() const;

  // Takes no further connection.
  void stop_accepting();
  // Lets answers that are made be sent and closes every connection, until `until` at most.
  void finish(std::chrono::steady_clock::time_point until);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

struct Address {
  std::string host;
  std::uint16_t port = 0;
  bool is_loopback() const;
};
// "127.0.0.1:8000", "[::1]:8000", ":8000" (of this machine alone). Throws Error (invalid_argument).
Address parse_address(const std::string& text);

}  // namespace superstep::edge
