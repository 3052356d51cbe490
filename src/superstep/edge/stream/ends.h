// The two ends of a stream of messages: where they come from and where they go, over ZeroMQ or Kafka.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "superstep/edge/zeromq/socket.h"

namespace superstep::edge {

// Used by one thread at a time.
class Inlet {
 public:
  virtual ~Inlet() = default;
  virtual std::string endpoint() const = 0;
  // Connections that did not come about for want of keys that are known. Called from any thread.
  virtual std::uint64_t refused() const { return 0; }

  // False: nothing came within the time. `parts` are valid until the next call; none: a message that nobody
  // could be told of.
  virtual bool receive(MessageParts& parts, std::chrono::milliseconds wait) = 0;

  // Of a sender that waits to hear what is kept: whether there is something to be said, whether it is time,
  // and that all that was received is kept.
  virtual bool has_unkept() const { return false; }
  virtual bool is_due() const { return false; }
  virtual void acknowledge() {}
};

// Used by one thread at a time.
class Outlet {
 public:
  virtual ~Outlet() = default;
  virtual std::string endpoint() const = 0;
  virtual std::uint64_t refused() const { return 0; }  // as an inlet's
  // False: there was no room within the time; nothing of it was sent.
  virtual bool send(std::span<const std::string> parts, std::chrono::milliseconds wait) = 0;
  // All that was sent has arrived, where the other side says so. Throws Error (io): not within the time, or
  // not at all.
  virtual void flush(std::chrono::milliseconds) {}
};

// "tcp://HOST:PORT" (and what else ZeroMQ has), "kafka://HOST:PORT/TOPIC" (kafka/kafka.h). Throw Error:
// invalid_argument (no such address), unsupported (the program was built without Kafka), io.
//
// `waits`: the sender waits for acknowledgements (acknowledged.h). `curve`: keys of a stream over ZeroMQ that
// is encrypted (curve.h); over Kafka there are none.
std::unique_ptr<Inlet> open_inlet(const std::string& address, bool waits, std::size_t most_bytes,
                                  CurvePointer curve = nullptr);
// To whoever listens: what there is no room for is lost, over ZeroMQ.
std::unique_ptr<Outlet> open_publisher(const std::string& address, CurvePointer curve = nullptr);
// To one receiver of several; `key`: what messages have in common that stay in their order.
std::unique_ptr<Outlet> open_sender(const std::string& address, int high_water, const std::string& key,
                                    CurvePointer curve = nullptr);

}  // namespace superstep::edge
