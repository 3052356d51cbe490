// HTTP/1.1 over TCP, in the clear or by TLS, for Routes: connections, limits and timeouts.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "superstep/edge/door/door.h"
#include "superstep/edge/http/message.h"
#include "superstep/edge/http/tls.h"

namespace superstep::edge {

struct ServerSettings {
  std::string address = "127.0.0.1";
  std::uint16_t port = 8000;  // 0: any that is free
  int threads = 1;
  std::size_t most_body_bytes = std::size_t{64} << 20;
  std::size_t most_connections = 1024;  // one more takes the place of who is slowest or idle longest
  std::chrono::milliseconds header_time{10'000}, idle_time{300'000};
  TlsFiles tls;  // none: in the clear
};

struct ServerHandlers {
  std::function<void(HttpRequest request, Reply reply)> handle;
  // None: all at once.
  std::function<Lane(const HttpRequest& request)> lane{};
  // Asked when the header is there, before the body is read: an answer refuses it. None: all are let in.
  std::function<std::optional<HttpResponse>(HttpRequest& request)> admit{};
};

class Server {
 public:
  // Listens and answers from then on. `budget` and `door` must outlive it, and so must what the handlers use.
  // Throws Error: io where the address cannot be listened at; what read_tls() throws.
  Server(const ServerSettings& settings, MemoryBudget& budget, Door& door, ServerHandlers handlers);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  DoorAccount account() const;

  // Connections from now on are shown what the files of its certificate hold now. Throws as read_tls(); then
  // all stays as it was.
  void renew_tls();

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
