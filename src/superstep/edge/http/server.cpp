#include "superstep/edge/http/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "superstep/base/error.h"
#include "superstep/base/threads/own_threads.h"
#include "superstep/edge/http/session.h"

namespace superstep::edge {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;

}  // namespace

class Server::Implementation : public SessionHost {
 public:
  Implementation(const ServerSettings& settings, MemoryBudget& budget, Door& door, ServerHandlers handlers);
  ~Implementation() override;

  void renew_tls();
  void stop_accepting();
  void finish(SteadyClock::time_point until);
  std::uint16_t port() const { return port_; }

  // --- of sessions
  const ServerSettings& settings() const override { return settings_; }
  MemoryBudget& budget() override { return budget_; }
  Door& door() override { return door_; }
  bool is_closing() const override { return closing_; }
  std::optional<HttpResponse> admit(HttpRequest& request) override {
    return handlers_.admit ? handlers_.admit(request) : std::nullopt;
  }
  void handle(HttpRequest request, Reply reply) override;
  void ended(const Session* session) override;

 private:
  struct Present {
    std::weak_ptr<Session> session;
    std::string peer;
  };

  void listen();
  void serve();
  void accept();
  void accepted(error_code failed, tcp::socket socket);
  void begin(tcp::socket socket);
  void turn_away(const tcp::endpoint& endpoint, ConnectionEnd end);
  bool make_room(const std::string* peer, bool in_any_case = false);
  void make_way_for_descriptors() { make_room(nullptr, true); }
  void leave(std::map<const Session*, Present>::iterator who);

  const ServerSettings settings_;
  MemoryBudget& budget_;
  Door& door_;
  const ServerHandlers handlers_;
  // Before the context: sessions that it still holds at its end are counted out.
  mutable std::mutex mutex_;
  std::condition_variable none_left_;
  std::size_t alive_ = 0;                      // sessions, those that are leaving among them
  std::shared_ptr<asio::ssl::context> tls_;    // of sessions that begin; null: in the clear
  std::map<const Session*, Present> present_;  // those that are not

  asio::io_context context_;
  // Threads stay until the end: who waits for a model gives them nothing to do, and is still to be answered.
  const asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::uint16_t port_ = 0;
  std::atomic<bool> closing_ = false;
  asio::thread_pool changes_{1};
  // Two at least: a long text must not keep others of a page or two waiting behind it.
  asio::thread_pool parsers_;

  std::vector<std::thread> threads_;
};

Server::Implementation::Implementation(const ServerSettings& settings, MemoryBudget& budget, Door& door,
                                       ServerHandlers handlers)
    : settings_(settings),
      budget_(budget),
      door_(door),
      handlers_(std::move(handlers)),
      tls_(settings.tls ? tls_context(settings.tls) : nullptr),
      context_(settings.threads),
      acceptor_(context_),
      pause_(context_),
      parsers_(static_cast<std::size_t>(std::max(2, settings.threads))) {
  listen();
  accept();
  try {
    for (int i = 0; i < settings.threads; ++i) threads_.push_back(start_thread([this] { serve(); }));
  } catch (...) {
    context_.stop();
    for (std::thread& thread : threads_) thread.join();
    throw;
  }
}

void Server::Implementation::listen() {
  const std::string where = fmt::format("{}:{}", settings_.address, settings_.port);
  try {
    const tcp::endpoint endpoint(asio::ip::make_address(settings_.address), settings_.port);
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(asio::socket_base::reuse_address(true));
    acceptor_.bind(endpoint);
    acceptor_.listen();
    port_ = acceptor_.local_endpoint().port();
  } catch (const boost::system::system_error& error) {
    const bool no_more_files = error.code() == boost::system::errc::too_many_files_open;
    throw Error(
        ErrorCode::io, "cannot be listened at: " + error.code().message(), where,
        no_more_files ? "raise the limit on open files (ulimit -n)" : "give another --http HOST:PORT");
  }
}

Server::Implementation::~Implementation() {
  stop_accepting();
  changes_.join();
  parsers_.join();
  context_.stop();
  for (std::thread& thread : threads_) thread.join();
}

// What one connection has no memory for ends that connection alone.
void Server::Implementation::serve() {
  for (;;) {
    try {
      context_.run();
      return;
    } catch (const std::exception&) {
    }
  }
}

void Server::Implementation::accept() {
  acceptor_.async_accept(asio::make_strand(context_), [this](error_code failed, tcp::socket socket) {
    accepted(failed, std::move(socket));
  });
}

void Server::Implementation::accepted(error_code failed, tcp::socket socket) {
  if (closing_ || failed == asio::error::operation_aborted) return;
  if (failed) {  // no descriptors left, say: somebody may give one back
    make_way_for_descriptors();
    pause_.expires_after(std::chrono::milliseconds(50));
    pause_.async_wait([this](error_code stopped) {
      if (!stopped) accept();
    });
    return;
  }
  begin(std::move(socket));
  accept();
}

void Server::Implementation::begin(tcp::socket socket) {
  error_code gone;
  const tcp::endpoint endpoint = socket.remote_endpoint(gone);
  const std::string peer = gone ? std::string("?") : peer_of(endpoint.address().to_string());
  door_.http.connection_began();
  bool of_peer = door_.peers.add_connection(peer);
  if (!of_peer) of_peer = make_room(&peer) && door_.peers.add_connection(peer);
  if (!of_peer) return turn_away(endpoint, ConnectionEnd::peer_share);
  if (!make_room(nullptr)) {
    door_.peers.drop_connection(peer);
    return turn_away(endpoint, ConnectionEnd::full);
  }
  const std::shared_ptr<asio::ssl::context> tls = [this] {
    const std::scoped_lock lock(mutex_);
    return tls_;
  }();
  SessionPointer session = make_session(std::move(socket), tls.get(), peer, *this);
  {
    const std::scoped_lock lock(mutex_);
    ++alive_;
    present_.emplace(session.get(), Present{session, peer});
  }
  session->start();
}

// The socket closes by its end of life.
void Server::Implementation::turn_away(const tcp::endpoint& endpoint, ConnectionEnd end) {
  door_.connection_ended("http", fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port()), end);
}

// True: there is a place, or there will be one: who has the least claim to its own has been told to go. Of
// one peer's connections where `peer` is given: then, and `in_any_case`, one of them goes whatever there is.
bool Server::Implementation::make_room(const std::string* peer, bool in_any_case) {
  SessionPointer leaving;
  std::vector<SessionPointer> looked_at;  // let go of outside of the lock: the last to hold one ends it
  {
    const std::scoped_lock lock(mutex_);
    if (!peer && !in_any_case && present_.size() < settings_.most_connections) return true;
    const auto now = Clock::now();
    auto first = present_.end();
    Session::Claim least{.rank = Session::Claim::at_work};
    for (auto each = present_.begin(); each != present_.end(); ++each) {
      if (peer && each->second.peer != *peer) continue;
      const SessionPointer& session = looked_at.emplace_back(each->second.session.lock());
      const Session::Claim claim = session ? session->claim(now) : Session::Claim{};
      if (!session || claim.rank == Session::Claim::at_work) continue;
      if (first != present_.end() && least <= claim) continue;
      first = each;
      least = claim;
      leaving = session;
    }
    if (!leaving) return false;
    leave(first);
  }
  leaving->make_way();
  return true;
}

// It counts no more, though it may take a moment to go.
void Server::Implementation::leave(std::map<const Session*, Present>::iterator who) {
  door_.peers.drop_connection(who->second.peer);
  present_.erase(who);
}

void Server::Implementation::handle(HttpRequest request, Reply reply) {
  const Lane lane = handlers_.lane ? handlers_.lane(request) : Lane::at_once;
  if (lane == Lane::at_once) return handlers_.handle(std::move(request), std::move(reply));
  auto held = std::make_shared<HttpRequest>(std::move(request));
  auto work = [this, held, reply = std::move(reply)] { handlers_.handle(std::move(*held), reply); };
  if (lane == Lane::parse)
    asio::post(parsers_, std::move(work));
  else
    asio::post(changes_, std::move(work));
}

void Server::Implementation::ended(const Session* session) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = present_.find(session); found != present_.end()) leave(found);
  if (--alive_ == 0) none_left_.notify_all();
}

void Server::Implementation::renew_tls() {
  if (!settings_.tls) return;
  auto renewed = tls_context(settings_.tls);
  const std::scoped_lock lock(mutex_);
  tls_ = std::move(renewed);
}

void Server::Implementation::stop_accepting() {
  if (closing_.exchange(true)) return;
  asio::post(context_, [this] {
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  });
}

void Server::Implementation::finish(SteadyClock::time_point until) {
  stop_accepting();
  std::vector<SessionPointer> idle;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [address, present] : present_)
      if (SessionPointer alive = present.session.lock()) idle.push_back(std::move(alive));
  }
  for (const SessionPointer& session : idle) session->close_if_idle();
  idle.clear();
  std::unique_lock lock(mutex_);
  none_left_.wait_until(lock, until, [&] { return alive_ == 0; });
}

// What the system refuses before there is an address to listen at.
Server::Server(const ServerSettings& settings, MemoryBudget& budget, Door& door, ServerHandlers handlers) try
    : implementation_(std::make_unique<Implementation>(settings, budget, door, std::move(handlers))) {
} catch (const boost::system::system_error& error) {
  throw Error(ErrorCode::io, "the server cannot start: " + error.code().message(), "--http",
              "raise the limit on open files (ulimit -n)");
}
Server::~Server() = default;
std::uint16_t Server::port() const { return implementation_->port(); }
DoorAccount Server::account() const { return implementation_->door().http.account(); }
void Server::renew_tls() { implementation_->renew_tls(); }
void Server::stop_accepting() { implementation_->stop_accepting(); }
void Server::finish(std::chrono::steady_clock::time_point until) { implementation_->finish(until); }

}  // namespace superstep::edge
