#include "superstep/edge/zeromq/socket.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <utility>

#include "superstep/base/error.h"
#include "superstep/edge/zeromq/curve_gate.h"
#include "superstep/edge/zeromq/zeromq.h"

namespace superstep::edge {
namespace {

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

}  // namespace

// A machine's own addresses and every address are bound to; "host" and "10.0.0.1" are where another one is.
bool listens_at(SocketKind kind, const std::string& endpoint) {
  if (endpoint.starts_with("tcp://*:") || endpoint.ends_with(":*") || endpoint.starts_with("tcp://0.0.0.0:"))
    return true;
  return kind == SocketKind::push || kind == SocketKind::publish || kind == SocketKind::dealer;
}

bool is_of_this_machine(const std::string& endpoint) {
  return !endpoint.starts_with("tcp://") || endpoint.starts_with("tcp://127.") ||
         endpoint.starts_with("tcp://localhost:") || endpoint.starts_with("tcp://[::1]:");
}

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
    set(ZMQ_HANDSHAKE_IVL, handshake_ms);
    zmq_setsockopt(socket_, ZMQ_MAXMSGSIZE, &settings.most_bytes, sizeof settings.most_bytes);
    if (kind == SocketKind::subscribe) zmq_setsockopt(socket_, ZMQ_SUBSCRIBE, "", 0);
    if (settings.tells_of_connection) watch();
    const bool bound = !settings.connects && listens_at(kind, endpoint);
    if (settings.curve) guard(settings, bound);
    bound_ = bound;
    const int failed = bound ? zmq_bind(socket_, endpoint.c_str()) : zmq_connect(socket_, endpoint.c_str());
    if (failed) fail(bound ? "cannot be listened at" : "cannot be connected to");
    char last[256];
    std::size_t size = sizeof last;
    if (bound && zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, last, &size) == 0) where_ = last;
  }
  ~Implementation() { close(); }

  const std::string& endpoint() const { return where_; }
  std::uint64_t refused() const { return gate_ ? gate_->refused() : 0; }

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
    connect_again();
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
    connect_again();
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
  static constexpr int handshake_ms = 10'000;  // who has not said by then what it is holds its place no more

  void set(int option, int value) { zmq_setsockopt(socket_, option, &value, sizeof value); }
  void guard(const Settings& settings, bool bound) try {
    gate_ = std::make_unique<CurveGate>(context_, socket_, settings.curve, bound, where_,
                                        !settings.tells_of_connection);
  } catch (...) {
    close();
    throw;
  }
  // Once a second at most.
  void connect_again() {
    const auto now = std::chrono::steady_clock::now();
    if (!gate_ || bound_ || now < next_try_ || !gate_->take_given_up()) return;
    next_try_ = now + std::chrono::seconds(1);
    zmq_disconnect(socket_, where_.c_str());  // what is left of it
    if (zmq_connect(socket_, where_.c_str()) != 0) fail("cannot be connected to");
  }
  // Told by the library, over a socket within the process, of connections that are made.
  void watch() {
    constexpr const char* where = "inproc://connections";
    if (zmq_socket_monitor(socket_, where, ZMQ_EVENT_HANDSHAKE_SUCCEEDED) != 0) fail("cannot be watched");
    events_ = zmq_socket(context_, ZMQ_PAIR);
    if (!events_ || zmq_connect(events_, where) != 0) fail("cannot be watched");
  }
  void close() {
    held_.clear();
    gate_.reset();
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
  std::unique_ptr<CurveGate> gate_;  // null: the stream is in the clear
  bool bound_ = false;
  std::chrono::steady_clock::time_point next_try_;
  std::list<Part> held_;
};

Socket::Socket(SocketKind kind, const std::string& endpoint, const Settings& settings)
    : implementation_(std::make_unique<Implementation>(kind, endpoint, settings)) {}
Socket::~Socket() = default;
std::string Socket::endpoint() const { return implementation_->endpoint(); }
std::uint64_t Socket::refused() const { return implementation_->refused(); }
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
