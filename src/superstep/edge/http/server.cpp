#include "superstep/edge/http/server.h"

#include <fmt/format.h>

#include <boost/asio.hpp>
#include <condition_variable>
#include <list>
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
  Implementation(const ServerSettings& settings, MemoryBudget& budget, Handler handle,
                 std::function<bool(const HttpRequest&)> takes_long);
  ~Implementation() override;

  void stop_accepting();
  void finish(SteadyClock::time_point until);
  std::uint16_t port() const { return port_; }
  ServerCounts counts() const;

  // --- of sessions
  const ServerSettings& settings() const override { return settings_; }
  MemoryBudget& budget() override { return budget_; }
  bool is_closing() const override { return closing_; }
  void handle(HttpRequest request, Reply reply) override;
  void count(std::uint64_t ServerCounts::*member) override;
  void became_idle(const SessionPointer& session) override;
  void became_busy(const Session* session) override;
  void ended() override;

 private:
  void accept();
  void accepted(error_code failed, tcp::socket socket);
  bool make_room();

  const ServerSettings settings_;
  MemoryBudget& budget_;
  const Handler handle_;
  const std::function<bool(const HttpRequest&)> takes_long_;
  // Before the context: sessions that it still holds at its end are counted out.
  mutable std::mutex mutex_;
  std::condition_variable none_left_;
  std::size_t sessions_ = 0;
  std::list<std::pair<const Session*, std::weak_ptr<Session>>> idle_;  // longest first
  ServerCounts counts_;

  asio::io_context context_;
  // Threads stay until the end: who waits for a model gives them nothing to do, and is still to be answered.
  const asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::uint16_t port_ = 0;
  std::atomic<bool> closing_ = false;
  asio::thread_pool changes_{1};

  std::vector<std::thread> threads_;
};

Server::Implementation::Implementation(const ServerSettings& settings, MemoryBudget& budget, Handler handle,
                                       std::function<bool(const HttpRequest&)> takes_long)
    : settings_(settings),
      budget_(budget),
      handle_(std::move(handle)),
      takes_long_(std::move(takes_long)),
      context_(settings.threads),
      acceptor_(context_),
      pause_(context_) {
  const std::string where = fmt::format("{}:{}", settings.address, settings.port);
  try {
    const tcp::endpoint endpoint(asio::ip::make_address(settings.address), settings.port);
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(asio::socket_base::reuse_address(true));
    acceptor_.bind(endpoint);
    acceptor_.listen();
    port_ = acceptor_.local_endpoint().port();
  } catch (const boost::system::system_error& error) {
    throw Error(ErrorCode::io, "cannot be listened at: " + error.code().message(), where,
                "give another --http HOST:PORT");
  }
  accept();
  try {
    for (int i = 0; i < settings.threads; ++i) threads_.push_back(start_thread([this] { context_.run(); }));
  } catch (...) {
    context_.stop();
    for (std::thread& thread : threads_) thread.join();
    throw;
  }
}

Server::Implementation::~Implementation() {
  stop_accepting();
  changes_.join();
  context_.stop();
  for (std::thread& thread : threads_) thread.join();
}

void Server::Implementation::accept() {
  acceptor_.async_accept(asio::make_strand(context_), [this](error_code failed, tcp::socket socket) {
    accepted(failed, std::move(socket));
  });
}

void Server::Implementation::accepted(error_code failed, tcp::socket socket) {
  if (closing_ || failed == asio::error::operation_aborted) return;
  if (failed) {  // no descriptors left, say: somebody may give one back
    make_room();
    pause_.expires_after(std::chrono::milliseconds(50));
    pause_.async_wait([this](error_code stopped) {
      if (!stopped) accept();
    });
    return;
  }
  count(&ServerCounts::connections);
  if (make_room()) {
    {
      const std::scoped_lock lock(mutex_);
      ++sessions_;
    }
    make_session(std::move(socket), *this)->start();
  } else {
    count(&ServerCounts::turned_away);  // closed by its end of life
  }
  accept();
}

// True: there is a place, or there will be one: who was idle longest has gone.
bool Server::Implementation::make_room() {
  SessionPointer leaving;
  const std::scoped_lock lock(mutex_);
  if (sessions_ < settings_.most_connections) return true;
  while (!idle_.empty() && !leaving) {
    leaving = idle_.front().second.lock();
    idle_.pop_front();
  }
  if (leaving) leaving->close_if_idle();
  return leaving != nullptr;
}

void Server::Implementation::handle(HttpRequest request, Reply reply) {
  if (!takes_long_(request)) return handle_(std::move(request), std::move(reply));
  auto held = std::make_shared<HttpRequest>(std::move(request));
  asio::post(changes_, [this, held, reply = std::move(reply)] { handle_(std::move(*held), reply); });
}

void Server::Implementation::count(std::uint64_t ServerCounts::*member) {
  const std::scoped_lock lock(mutex_);
  ++(counts_.*member);
}

ServerCounts Server::Implementation::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

void Server::Implementation::became_idle(const SessionPointer& session) {
  const std::scoped_lock lock(mutex_);
  idle_.emplace_back(session.get(), session);
}

void Server::Implementation::became_busy(const Session* session) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(idle_, [&](const auto& entry) { return entry.first == session; });
}

void Server::Implementation::ended() {
  const std::scoped_lock lock(mutex_);
  if (--sessions_ == 0) none_left_.notify_all();
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
    for (const auto& [address, session] : idle_)
      if (SessionPointer alive = session.lock()) idle.push_back(std::move(alive));
  }
  for (const SessionPointer& session : idle) session->close_if_idle();
  idle.clear();
  std::unique_lock lock(mutex_);
  none_left_.wait_until(lock, until, [&] { return sessions_ == 0; });
}

Server::Server(const ServerSettings& settings, MemoryBudget& budget, Handler handle,
               std::function<bool(const HttpRequest&)> takes_long)
    : implementation_(
          std::make_unique<Implementation>(settings, budget, std::move(handle), std::move(takes_long))) {}
Server::~Server() = default;
std::uint16_t Server::port() const { return implementation_->port(); }
ServerCounts Server::counts() const { return implementation_->counts(); }
void Server::stop_accepting() { implementation_->stop_accepting(); }
void Server::finish(std::chrono::steady_clock::time_point until) { implementation_->finish(until); }

}  // namespace superstep::edge
