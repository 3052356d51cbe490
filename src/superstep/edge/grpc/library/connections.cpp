#include "superstep/edge/grpc/library/connections.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <boost/asio.hpp>
#include <cerrno>
#include <map>
#include <optional>
#include <thread>

#include "superstep/base/threads/own_threads.h"
#include "superstep/edge/service/durations.h"

namespace superstep::edge {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds a_while{250};    // between two looks at what has no event (chosen)
constexpr std::chrono::milliseconds of_a_timer{50};  // by which the library's timers may be early (chosen)
// Within which the library closes who kept it waiting: its timer, and the thread that it wakes (chosen).
constexpr std::chrono::seconds after_handshake{1};

// An open descriptor, or none.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) close();
    number_ = std::exchange(other.number_, -1);
    return *this;
  }
  explicit operator bool() const { return number_ >= 0; }
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_;
};

struct Connection {
  Descriptor watched;
  std::string where;  // its name in `names_`
  std::string peer;   // as it counts
  Clock::time_point since = Clock::now(), quiet_since = since;
  Clock::time_point cut = {};  // when a question of it last went without its answer
  std::size_t under_way = 0;
  bool had_a_call = false, had_a_stream = false;
  bool is_over = false;  // and waits for its questions to end
};

// The zone of a link-local address is written in two ways; nobody needs it here.
std::string name_of(const tcp::endpoint& endpoint) {
  const asio::ip::address address = endpoint.address();
  if (address.is_v4()) return fmt::format("ipv4:{}:{}", address.to_string(), endpoint.port());
  if (address.to_v6().is_v4_mapped())
    return fmt::format("ipv4:{}:{}", make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string(),
                       endpoint.port());
  std::string text = address.to_string();
  return fmt::format("ipv6:%5B{}%5D:{}", text.substr(0, text.find('%')), endpoint.port());
}
std::string without_zone(const std::string& peer) {
  const std::size_t zone = peer.find("%25"), end = peer.find("%5D");
  return zone == std::string::npos || end == std::string::npos || zone > end
             ? peer
             : peer.substr(0, zone) + peer.substr(end);
}

Error cannot_listen(const std::string& why, const std::string& where) {
  return {ErrorCode::io, "cannot be listened at: " + why, where, "give another --grpc HOST:PORT"};
}

}  // namespace

class GrpcConnections::Implementation {
 public:
  Implementation(const GrpcSettings& settings, Door& door);
  ~Implementation();

  std::uint16_t port() const { return port_; }
  void start(std::function<void(int)> hand_over, std::function<void()> each_while);
  void stop_accepting();
  void end();
  void question_began(const std::string& peer);
  void question_ended(const std::string& peer, bool cut);
  void stream_began(const std::string& peer);

 private:
  using Connections = std::map<int, Connection>;  // by the watched descriptor

  void listen();
  bool watch(int descriptor, std::uint32_t events, int operation = EPOLL_CTL_ADD);
  void run();
  void accept_all();
  bool make_room(const std::string* peer, bool in_any_case = false);
  Connections::iterator least_claim(const std::string* peer);
  bool take_in(Descriptor& socket, const tcp::endpoint& endpoint);
  void begin(Descriptor socket, const tcp::endpoint& endpoint);
  void is_over(int descriptor);
  ConnectionEnd end_of(const Connection& connection) const;
  void leave(Connections::iterator which, ConnectionEnd end);
  Connection* find(const std::string& peer);  // null: not known (any more)
  void wake() const;

  const GrpcSettings settings_;
  Door& door_;
  std::function<void(int)> hand_over_;
  std::function<void()> each_while_;
  asio::io_context context_;
  tcp::acceptor acceptor_{context_};
  std::uint16_t port_ = 0;
  Descriptor events_, wake_;
  std::optional<Clock::time_point> accept_again_;  // there were no descriptors left

  mutable std::mutex mutex_;
  Connections connections_;
  std::map<std::string, int, std::less<>> names_;
  bool accepting_ = true, stopping_ = false, ended_ = false;
  std::thread thread_;
};

GrpcConnections::Implementation::Implementation(const GrpcSettings& settings, Door& door)
    : settings_(settings),
      door_(door),
      events_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  listen();
  if (!events_ || !wake_ || !watch(wake_.get(), EPOLLIN) || !watch(acceptor_.native_handle(), EPOLLIN))
    throw Error(ErrorCode::io, "the server cannot start: " + std::generic_category().message(errno), "--grpc",
                "raise the limit on open files (ulimit -n)");
}

GrpcConnections::Implementation::~Implementation() { end(); }

void GrpcConnections::Implementation::listen() {
  const bool v6 = settings_.address.find(':') != std::string::npos;
  const std::string where =
      fmt::format("{}:{}", v6 ? "[" + settings_.address + "]" : settings_.address, settings_.port);
  try {
    const auto found = tcp::resolver(context_).resolve(settings_.address, std::to_string(settings_.port),
                                                       tcp::resolver::passive);
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(asio::socket_base::reuse_address(true));
    acceptor_.bind(endpoint);
    acceptor_.listen();
    acceptor_.native_non_blocking(true);
    port_ = acceptor_.local_endpoint().port();
  } catch (const boost::system::system_error& error) {
    throw cannot_listen(error.code().message(), where);
  }
}

bool GrpcConnections::Implementation::watch(int descriptor, std::uint32_t events, int operation) {
  epoll_event event{.events = events, .data = {.fd = descriptor}};
  return epoll_ctl(events_.get(), operation, descriptor, &event) == 0;
}

void GrpcConnections::Implementation::start(std::function<void(int)> hand_over,
                                            std::function<void()> each_while) {
  hand_over_ = std::move(hand_over);
  each_while_ = std::move(each_while);
  thread_ = start_thread([this] { run(); });
}

void GrpcConnections::Implementation::run() {
  auto looked = Clock::now();
  for (;;) {
    std::array<epoll_event, 64> events;
    const int count = epoll_wait(events_.get(), events.data(), static_cast<int>(events.size()),
                                 static_cast<int>((accept_again_ ? of_a_timer : a_while).count()));
    for (int i = 0; i < count; ++i) {
      const int descriptor = events[static_cast<std::size_t>(i)].data.fd;
      if (descriptor == wake_.get()) {
        std::uint64_t woken = 0;
        static_cast<void>(!::read(wake_.get(), &woken, sizeof woken));
      } else if (descriptor == acceptor_.native_handle()) {
        accept_all();
      } else {
        is_over(descriptor);
      }
    }
    if (accept_again_ && Clock::now() >= *accept_again_) {
      accept_again_.reset();
      watch(acceptor_.native_handle(), EPOLLIN);
    }
    if (Clock::now() - looked >= a_while) {
      looked = Clock::now();
      each_while_();
    }
    const std::scoped_lock lock(mutex_);
    if (ended_) return;
  }
}

// All that wait, or until there are no descriptors: then who has least claim gives its own.
void GrpcConnections::Implementation::accept_all() {
  bool gave_way = false;
  for (;;) {
    {
      const std::scoped_lock lock(mutex_);
      if (!accepting_) return static_cast<void>(watch(acceptor_.native_handle(), 0, EPOLL_CTL_DEL));
    }
    tcp::endpoint endpoint;
    socklen_t size = static_cast<socklen_t>(endpoint.capacity());
    Descriptor socket(
        accept4(acceptor_.native_handle(), endpoint.data(), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket && (errno == ECONNABORTED || errno == EINTR)) continue;
    if (!socket && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (!socket) {
      // Once at once: who gives way gives one descriptor back.
      if (make_room(nullptr, true) && !std::exchange(gave_way, true)) continue;
      accept_again_ = Clock::now() + of_a_timer;
      watch(acceptor_.native_handle(), 0, EPOLL_CTL_DEL);
      return;
    }
    gave_way = false;
    endpoint.resize(size);
    begin(std::move(socket), endpoint);
  }
}

void GrpcConnections::Implementation::begin(Descriptor socket, const tcp::endpoint& endpoint) {
  const std::string peer = peer_of(endpoint.address().to_string());
  door_.grpc.connection_began();
  bool of_peer = door_.peers.add_connection(peer);
  if (!of_peer) of_peer = make_room(&peer) && door_.peers.add_connection(peer);
  if (!of_peer) return door_.connection_ended("grpc", name_of(endpoint), ConnectionEnd::peer_share);
  if (make_room(nullptr) && take_in(socket, endpoint)) return;
  if (socket && make_room(nullptr, true) && take_in(socket, endpoint))
    return;  // there was no descriptor left
  door_.peers.drop_connection(peer);
  door_.connection_ended("grpc", name_of(endpoint), ConnectionEnd::full);
}

// False: there is no descriptor left to watch it by, and the socket is still ours.
bool GrpcConnections::Implementation::take_in(Descriptor& socket, const tcp::endpoint& endpoint) {
  Connection connection{.watched = Descriptor(fcntl(socket.get(), F_DUPFD_CLOEXEC, 0)),
                        .where = name_of(endpoint),
                        .peer = peer_of(endpoint.address().to_string())};
  const int watched = connection.watched.get();
  if (!connection.watched) return false;
  {
    const std::scoped_lock lock(mutex_);
    names_[connection.where] = watched;
    connections_.emplace(watched, std::move(connection));
  }
  // Nothing but its end: what comes is the library's to read.
  if (!watch(watched, EPOLLONESHOT)) {
    const std::scoped_lock lock(mutex_);
    names_.erase(name_of(endpoint));
    connections_.erase(watched);
    return false;
  }
  hand_over_(socket.release());
  return true;
}

// True: there is a place. Who never had a call gives way first, then who is quiet longest; nobody at work.
bool GrpcConnections::Implementation::make_room(const std::string* peer, bool in_any_case) {
  const std::scoped_lock lock(mutex_);
  if (!peer && !in_any_case && connections_.size() < settings_.most_connections) return true;
  const auto leaving = least_claim(peer);
  if (leaving == connections_.end()) return false;
  ::shutdown(leaving->second.watched.get(), SHUT_RDWR);
  leave(leaving, ConnectionEnd::made_room);
  return true;
}

GrpcConnections::Implementation::Connections::iterator GrpcConnections::Implementation::least_claim(
    const std::string* peer) {
  auto least = connections_.end();
  for (auto each = connections_.begin(); each != connections_.end(); ++each) {
    const Connection& connection = each->second;
    if (connection.under_way > 0 || connection.is_over || (peer && connection.peer != *peer)) continue;
    if (least == connections_.end() || std::pair(connection.had_a_call, connection.quiet_since) <
                                           std::pair(least->second.had_a_call, least->second.quiet_since))
      least = each;
  }
  return least;
}

// Of one whose questions have ended.
ConnectionEnd GrpcConnections::Implementation::end_of(const Connection& connection) const {
  if (stopping_) return ConnectionEnd::stopped;
  const auto now = Clock::now();
  if (connection.cut != Clock::time_point() && now - connection.cut < of_a_timer) return ConnectionEnd::lost;
  if (!connection.had_a_stream && now - connection.quiet_since >= settings_.idle_time - of_a_timer)
    return ConnectionEnd::idle;
  if (connection.had_a_call) return ConnectionEnd::closed;
  const auto age = now - connection.since;
  const bool kept_waiting =
      age >= settings_.handshake_time - of_a_timer && age <= settings_.handshake_time + after_handshake;
  return kept_waiting ? ConnectionEnd::slow : ConnectionEnd::no_call;
}

void GrpcConnections::Implementation::is_over(int descriptor) {
  // The word may be of one whose number went to a newer connection meanwhile.
  pollfd now{.fd = descriptor, .events = 0, .revents = 0};
  if (::poll(&now, 1, 0) == 0) return;
  const std::scoped_lock lock(mutex_);
  const auto found = connections_.find(descriptor);
  if (found == connections_.end()) return;
  found->second.is_over = true;
  if (found->second.under_way == 0) leave(found, end_of(found->second));
}

// Closing takes it out of what is watched.
void GrpcConnections::Implementation::leave(Connections::iterator which, ConnectionEnd end) {
  door_.peers.drop_connection(which->second.peer);
  door_.connection_ended("grpc", which->second.where, end);
  if (const auto name = names_.find(which->second.where);
      name != names_.end() && name->second == which->first)
    names_.erase(name);
  connections_.erase(which);
}

Connection* GrpcConnections::Implementation::find(const std::string& peer) {
  const auto name = names_.find(without_zone(peer));
  return name == names_.end() ? nullptr : &connections_.at(name->second);
}

void GrpcConnections::Implementation::question_began(const std::string& peer) {
  const std::scoped_lock lock(mutex_);
  Connection* const connection = find(peer);
  if (!connection) return;
  ++connection->under_way;
  connection->had_a_call = true;
}

void GrpcConnections::Implementation::question_ended(const std::string& peer, bool cut) {
  const std::scoped_lock lock(mutex_);
  Connection* const connection = find(peer);
  if (!connection) return;
  if (connection->under_way > 0) --connection->under_way;
  connection->quiet_since = Clock::now();
  if (cut) connection->cut = Clock::now();
  if (connection->is_over && connection->under_way == 0)
    leave(connections_.find(connection->watched.get()), end_of(*connection));
}

void GrpcConnections::Implementation::stream_began(const std::string& peer) {
  const std::scoped_lock lock(mutex_);
  if (Connection* const connection = find(peer)) connection->had_a_call = connection->had_a_stream = true;
}

void GrpcConnections::Implementation::wake() const {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof one));
}

void GrpcConnections::Implementation::stop_accepting() {
  const std::scoped_lock lock(mutex_);
  if (!std::exchange(accepting_, false)) return;
  stopping_ = true;
  ::shutdown(acceptor_.native_handle(), SHUT_RDWR);  // who is waiting is told so
}

void GrpcConnections::Implementation::end() {
  stop_accepting();
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
  const std::scoped_lock lock(mutex_);
  while (!connections_.empty()) leave(connections_.begin(), ConnectionEnd::stopped);
}

GrpcConnections::GrpcConnections(const GrpcSettings& settings, Door& door)
    : implementation_(std::make_unique<Implementation>(settings, door)) {}
GrpcConnections::~GrpcConnections() = default;
std::uint16_t GrpcConnections::port() const { return implementation_->port(); }
void GrpcConnections::start(std::function<void(int)> hand_over, std::function<void()> each_while) {
  implementation_->start(std::move(hand_over), std::move(each_while));
}
void GrpcConnections::stop_accepting() { implementation_->stop_accepting(); }
void GrpcConnections::end() { implementation_->end(); }
void GrpcConnections::question_began(const std::string& peer) { implementation_->question_began(peer); }
void GrpcConnections::question_ended(const std::string& peer, bool cut) {
  implementation_->question_ended(peer, cut);
}
void GrpcConnections::stream_began(const std::string& peer) { implementation_->stream_began(peer); }

}  // namespace superstep::edge
