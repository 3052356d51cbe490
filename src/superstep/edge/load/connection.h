// A connection to a server that load is put on, over HTTP or gRPC.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "superstep/edge/load/target.h"

namespace superstep::edge {

class Connection {
 public:
  using Clock = std::chrono::steady_clock;
  // The status as HTTP has it, 0: the connection is lost; and when the answer was there.
  using Answered = std::function<void(int status, Clock::time_point when)>;

  virtual ~Connection() = default;
  // The message, whose answer `answered` is told of, in the context's thread; one at a time.
  virtual void send(Answered answered) = 0;
  virtual void close() = 0;  // nobody is told of anything any more
};

class Connections {
 public:
  virtual ~Connections() = default;
  virtual std::unique_ptr<Connection> connect() = 0;  // throws Error (io)
};

// Of requests that are `message`; target, message and context must outlive it, and it its connections. Throws
// Error (unsupported): built without gRPC.
std::unique_ptr<Connections> connections_to(const LoadTarget& target, const std::string& message,
                                            boost::asio::io_context& context);

}  // namespace superstep::edge
