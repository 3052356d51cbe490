// One connection of the server: reads requests, books memory as it is filled, writes answers.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "superstep/edge/http/server.h"
#include "superstep/edge/service/durations.h"

namespace superstep::edge {

class Session;
using SessionPointer = std::shared_ptr<Session>;

// What a session needs of its server, which outlives it. Called from any of the server's threads.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  virtual const ServerSettings& settings() const = 0;
  virtual MemoryBudget& budget() = 0;
  virtual Door& door() = 0;
  virtual bool is_closing() const = 0;
  virtual std::optional<HttpResponse> admit(HttpRequest& request) = 0;
  virtual void handle(HttpRequest request, Reply reply) = 0;
  virtual void ended(const Session* session) = 0;
};

class Session {
 public:
  // Who gives its place first, when one is needed; nobody who is at work.
  struct Claim {
    enum Rank { slow_header, idle, slow_body, young_header, at_work } rank = at_work;
    Clock::time_point since;  // the earliest of a rank goes first
    friend auto operator<=>(const Claim&, const Claim&) = default;
  };

  virtual ~Session() = default;
  virtual void start() = 0;
  virtual Claim claim(Clock::time_point now) const = 0;
  // Gives its place, unless it is at work by now: then after its answer.
  virtual void make_way() = 0;
  // When the server stops: nothing is lost while it is idle.
  virtual void close_if_idle() = 0;
};

// `tls` null: in the clear. `peer`: as it counts (door/peers.h).
SessionPointer make_session(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context* tls,
                            const std::string& peer, SessionHost& server);

}  // namespace superstep::edge
