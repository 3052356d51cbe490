// One connection of the server: reads requests, asks for memory before it takes any, writes answers.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "superstep/edge/http/server.h"

namespace superstep::edge {

class Session;
using SessionPointer = std::shared_ptr<Session>;

// What a session needs of its server, which outlives it. Called from any of the server's threads.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  virtual const ServerSettings& settings() const = 0;
  virtual MemoryBudget& budget() = 0;
  virtual bool is_closing() const = 0;
  virtual void handle(HttpRequest request, Reply reply) = 0;
  virtual void count(std::uint64_t ServerCounts::*member) = 0;
  virtual void became_idle(const SessionPointer& session) = 0;
  virtual void became_busy(const Session* session) = 0;
  virtual void ended() = 0;
};

class Session {
 public:
  virtual ~Session() = default;
  virtual void start() = 0;
  // When its place is needed, or the server stops: nothing is lost while it is idle.
  virtual void close_if_idle() = 0;
};

SessionPointer make_session(boost::asio::ip::tcp::socket socket, SessionHost& server);

}  // namespace superstep::edge
