// ZeroMQ sockets: messages of several parts, with time limits.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "superstep/edge/zeromq/curve.h"

namespace superstep::edge {

// `dealer` and `router` send and receive: a router's messages have the address of the other side as first
// part.
enum class SocketKind { push, pull, publish, subscribe, dealer, router };

// Who sends listens and who receives connects, but where the address says otherwise: "tcp://*:31001" and a
// port "*" are listened at.
bool listens_at(SocketKind kind, const std::string& endpoint);
// Nobody from elsewhere reaches it.
bool is_of_this_machine(const std::string& endpoint);

// What a receiver has of a message: valid until the next one is received.
using MessageParts = std::vector<std::span<const std::byte>>;

// Used by one thread at a time.
class Socket {
 public:
  struct Settings {
    int high_water = 64;                  // messages that wait in it
    std::int64_t most_bytes = 1 << 28;    // of a part that comes
    std::chrono::milliseconds linger{0};  // for what is not sent when it is closed
    bool connects = false;                // also where it sends
    bool tells_of_connection = false;     // of wait_for_connection()
    CurvePointer curve{};                 // keys; null: in the clear, and from anybody
  };

  // Listens or connects as listens_at() says, but for `connects`. Throws Error: invalid_argument (no address,
  // keys that are not given), io.
  Socket(SocketKind kind, const std::string& endpoint, const Settings& settings);
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // What it is bound to, with the port that the system chose where "tcp://127.0.0.1:*" was asked for.
  std::string endpoint() const;
  // Connections that did not come about for want of keys that are known. Called from any thread.
  std::uint64_t refused() const;

  // Of a socket that connects and tells: the other side is there and speaks ZeroMQ. False: not within the
  // time.
  bool wait_for_connection(std::chrono::milliseconds wait);

  // False: there was no room within the time; nothing of it was sent.
  bool send(std::span<const std::string> parts, std::chrono::milliseconds wait);
  // False: nothing came within the time.
  bool receive(MessageParts& parts, std::chrono::milliseconds wait);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace superstep::edge
