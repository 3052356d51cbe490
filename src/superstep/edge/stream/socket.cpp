#include "superstep/edge/stream/socket.h"

#include <fmt/format.h>
#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <list>

#include "superstep/base/error.h"
#include "superstep/base/system/late_library.h"

namespace superstep::edge {
namespace {

constinit const LateLibrary zeromq("ZeroMQ", SUPERSTEP_LATE_ZEROMQ);
SUPERSTEP_LATE(zeromq, zmq_bind);
SUPERSTEP_LATE(zeromq, zmq_close);
SUPERSTEP_LATE(zeromq, zmq_connect);
SUPERSTEP_LATE(zeromq, zmq_ctx_new);
SUPERSTEP_LATE(zeromq, zmq_ctx_term);
SUPERSTEP_LATE(zeromq, zmq_errno);
SUPERSTEP_LATE(zeromq, zmq_getsockopt);
SUPERSTEP_LATE(zeromq, zmq_msg_close);
SUPERSTEP_LATE(zeromq, zmq_msg_data);
SUPERSTEP_LATE(zeromq, zmq_msg_init);
SUPERSTEP_LATE(zeromq, zmq_msg_more);
SUPERSTEP_LATE(zeromq, zmq_msg_recv);
SUPERSTEP_LATE(zeromq, zmq_msg_size);
SUPERSTEP_LATE(zeromq, zmq_poll);
SUPERSTEP_LATE(zeromq, zmq_send);
SUPERSTEP_LATE(zeromq, zmq_setsockopt);
SUPERSTEP_LATE(zeromq, zmq_socket);
SUPERSTEP_LATE(zeromq, zmq_socket_monitor);
SUPERSTEP_LATE(zeromq, zmq_strerror);

int type_of(SocketKind kind) {
  switch (kind) {
    case SocketKind::push: return ZMQ_PUSH;
    case SocketKind::pull: return ZMQ_PULL;
    case SocketKind::publish: return ZMQ_PUB;
    case SocketKind::subscribe: return ZMQ_SUB;
    case SocketKind::dealer: return ZMQ_DEALER;
    case SocketKind::router: return ZMQ_ROUTER;
  }
  return ZMQ_PAIR;
}

// One part that came; given back to the library when it ends.
class Part {
 public:
  Part() { zmq_msg_init(&message_); }
  ~Part() { zmq_msg_close(&message_); }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  zmq_msg_t* get() { return &message_; }
  std::span<const std::byte> bytes() {
    return {static_cast<const std::byte*>(zmq_msg_data(&message_)), zmq_msg_size(&message_)};
  }

 private:
  zmq_msg_t message_;
};

// A machine's own addresses and every address are bound to; "host" and "10.0.0.1" are where another one is.
bool is_bound(SocketKind kind, const std::string& endpoint) {
  if (endpoint.starts_with("tcp://*:") || endpoint.ends_with(":*") || endpoint.starts_with("tcp://0.0.0.0:"))
    return true;
  return kind == SocketKind::push || kind == SocketKind::publish || kind == SocketKind::dealer;
}

}  // namespace

class Socket::Implementation {
 public:
  Implementation(SocketKind kind, const std::string& endpoint, const Settings& settings)
      : context_(zmq_ctx_new()),
        socket_(context_ ? zmq_socket(context_, type_of(kind)) : nullptr),
        where_(endpoint) {
    if (!socket_) fail("a socket cannot be made");
    set(ZMQ_SNDHWM, settings.high_water);
    set(ZMQ_RCVHWM, settings.high_water);
    set(ZMQ_LINGER, static_cast<int>(settings.linger.count()));
    zmq_setsockopt(socket_, ZMQ_MAXMSGSIZE, &settings.most_bytes, sizeof settings.most_bytes);
    if (kind == SocketKind::subscribe) zmq_setsockopt(socket_, ZMQ_SUBSCRIBE, "", 0);
    if (settings.tells_of_connection) watch();
    const bool bound = !settings.connects && is_bound(kind, endpoint);
    const int failed = bound ? zmq_bind(socket_, endpoint.c_str()) : zmq_connect(socket_, endpoint.c_str());
    if (failed) fail(bound ? "cannot be listened at" : "cannot be connected to");
    char last[256];
    std::size_t size = sizeof last;
    if (bound && zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, last, &size) == 0) where_ = last;
  }
  ~Implementation() { close(); }

  const std::string& endpoint() const { return where_; }

  bool wait_for_connection(std::chrono::milliseconds wait) {
    if (!events_) return false;
    zmq_pollitem_t event{.socket = events_, .fd = 0, .events = ZMQ_POLLIN, .revents = 0};
    constexpr long look_up = 100;  // ms: a signal ends a wait early
    const auto until = std::chrono::steady_clock::now() + wait;
    do {
      if (zmq_poll(&event, 1, std::min<long>(wait.count(), look_up)) > 0) return true;
    } while (std::chrono::steady_clock::now() < until);
    return false;
  }

  bool send(std::span<const std::string> parts, std::chrono::milliseconds wait) {
    set(ZMQ_SNDTIMEO, static_cast<int>(wait.count()));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      // A message is sent whole or not at all: only its first part can find no room.
      const int flags = i + 1 < parts.size() ? ZMQ_SNDMORE : 0;
      while (zmq_send(socket_, parts[i].data(), parts[i].size(), flags) < 0) {
        if (zmq_errno() == EAGAIN && i == 0) return false;
        if (zmq_errno() != EINTR && zmq_errno() != EAGAIN) fail("cannot be sent to");
      }
    }
    return true;
  }

  bool receive(MessageParts& parts, std::chrono::milliseconds wait) {
    set(ZMQ_RCVTIMEO, static_cast<int>(wait.count()));
    parts.clear();
    held_.clear();
    for (;;) {
      Part& part = held_.emplace_back();
      while (zmq_msg_recv(part.get(), socket_, 0) < 0) {
        if (zmq_errno() == EAGAIN) return false;
        if (zmq_errno() != EINTR) fail("cannot be received from");
        if (held_.size() == 1) return false;  // a signal: who waits looks up
      }
      if (held_.size() <= most_parts) parts.push_back(part.bytes());
      if (!zmq_msg_more(part.get())) return true;
    }
  }

 private:
  static constexpr std::size_t most_parts = 16;

  void set(int option, int value) { zmq_setsockopt(socket_, option, &value, sizeof value); }
  // Told by the library, over a socket within the process, of connections that are made.
  void watch() {
    constexpr const char* where = "inproc://connections";
    if (zmq_socket_monitor(socket_, where, ZMQ_EVENT_HANDSHAKE_SUCCEEDED) != 0) fail("cannot be watched");
    events_ = zmq_socket(context_, ZMQ_PAIR);
    if (!events_ || zmq_connect(events_, where) != 0) fail("cannot be watched");
  }
  void close() {
    held_.clear();
    if (events_) zmq_close(std::exchange(events_, nullptr));
    if (socket_) zmq_close(std::exchange(socket_, nullptr));
    if (context_) zmq_ctx_term(std::exchange(context_, nullptr));
  }
  [[noreturn]] void fail(const char* what) {
    const int error = zmq_errno();
    close();
    const bool no_address = error == EINVAL || error == EPROTONOSUPPORT || error == ENODEV;
    throw Error(no_address ? ErrorCode::invalid_argument : ErrorCode::io,
                fmt::format("{}: {}", what, zmq_strerror(error)), where_,
                "an address is tcp://HOST:PORT, or tcp://*:PORT");
  }

  void* context_;
  void* socket_;
  void* events_ = nullptr;
  std::string where_;
  std::list<Part> held_;
};

Socket::Socket(SocketKind kind, const std::string& endpoint, const Settings& settings)
    : implementation_(std::make_unique<Implementation>(kind, endpoint, settings)) {}
Socket::~Socket() = default;
std::string Socket::endpoint() const { return implementation_->endpoint(); }
bool Socket::wait_for_connection(std::chrono::milliseconds wait) {
  return implementation_->wait_for_connection(wait);
}
bool Socket::send(std::span<const std::string> parts, std::chrono::milliseconds wait) {
  return implementation_->send(parts, wait);
}
bool Socket::receive(MessageParts& parts, std::chrono::milliseconds wait) {
  return implementation_->receive(parts, wait);
}

}  // namespace superstep::edge
