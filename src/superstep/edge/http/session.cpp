#include "superstep/edge/http/session.h"

#include <fmt/format.h>

#include <atomic>
#include <boost/asio.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast.hpp>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "superstep/edge/http/request_rules.h"

namespace superstep::edge {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr std::uint32_t most_header_bytes = 16 * 1024;
constexpr std::size_t slowest_body = 1 << 20;   // bytes per second that a body comes with at least
constexpr std::size_t piece_bytes = 64 * 1024;  // of a body, read at once
// That a header or a body may take before its connection gives way to others (chosen: a round trip over a
// continent, three times, with what a busy client adds).
constexpr std::chrono::seconds young{1};

using TlsStream = asio::ssl::stream<beast::tcp_stream>;

tcp::socket& socket_of(beast::tcp_stream& stream) { return stream.socket(); }
tcp::socket& socket_of(TlsStream& stream) { return stream.next_layer().socket(); }

std::string name_of(const tcp::socket& socket) {
  error_code failed;
  const tcp::endpoint endpoint = socket.remote_endpoint(failed);
  return failed ? std::string("?") : fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port());
}

// What is known of a request until it has ended.
struct UnderWay {
  Clock::time_point began = Clock::now();
  std::string method, path, token;
  std::size_t bytes_in = 0;
  bool counted_for_peer = false;
};

// One connection, over `Stream`. All of it runs on its strand, but claim() and what posts to it.
template <class Stream>
class Connection : public Session, public std::enable_shared_from_this<Connection<Stream>> {
 public:
  Connection(Stream stream, const std::string& peer, SessionHost& server)
      : stream_(std::move(stream)), server_(server), peer_(peer), where_(name_of(socket_of(stream_))) {
    error_code ignored;
    socket_of(stream_).set_option(tcp::no_delay(true), ignored);
  }
  ~Connection() override {
    if (under_way_) end_request(RequestEnd::unsent, 0);
    give_bytes();
    server_.door().connection_ended("http", where_, end_.value_or(ConnectionEnd::stopped));
    server_.ended(this);
  }

  void start() override {
    post([](Connection& self) {
      if constexpr (std::is_same_v<Stream, TlsStream>)
        self.shake_hands();
      else
        self.wait_for_request();
    });
  }
  void make_way() override {
    post([](Connection& self) {
      self.leaves_ = true;
      if (self.phase_ != Phase::at_work) self.close(ConnectionEnd::made_room);
    });
  }
  void close_if_idle() override {
    post([](Connection& self) {
      if (self.phase_ == Phase::idle) self.close(ConnectionEnd::stopped);
    });
  }
  Claim claim(Clock::time_point now) const override {
    const Clock::time_point since(Clock::duration(since_.load(std::memory_order_relaxed)));
    const bool is_young = now - since < young;
    const auto rank = [&] {
      switch (phase_.load(std::memory_order_relaxed)) {
        case Phase::idle: return Claim::idle;
        case Phase::header: return is_young ? Claim::young_header : Claim::slow_header;
        case Phase::body: {
          const double seconds = std::chrono::duration<double>(now - since).count();
          const auto due = static_cast<std::size_t>(seconds * static_cast<double>(slowest_body));
          return !is_young && body_bytes_.load(std::memory_order_relaxed) < due ? Claim::slow_body
                                                                                : Claim::at_work;
        }
        default: return Claim::at_work;
      }
    }();
    return {rank, since};
  }

 private:
  enum class Phase : std::uint8_t { idle, header, body, at_work };

  template <class Do>
  void post(Do work) {
    asio::post(stream_.get_executor(), [self = this->shared_from_this(), work] { work(*self); });
  }
  // A handler that keeps this alive.
  template <class Do>
  auto then(Do work) {
    return [self = this->shared_from_this(), work](error_code failed, std::size_t bytes = 0) {
      work(*self, failed, bytes);
    };
  }
  beast::tcp_stream& timed() { return beast::get_lowest_layer(stream_); }
  void enter(Phase phase) {
    since_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
    phase_.store(phase, std::memory_order_relaxed);
  }

  void shake_hands() {
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      enter(Phase::header);
      timed().expires_after(server_.settings().header_time);
      stream_.async_handshake(asio::ssl::stream_base::server,
                              then([](Connection& self, error_code failed, std::size_t) {
                                if (failed == beast::error::timeout) return self.close(ConnectionEnd::slow);
                                if (failed) return self.close(ConnectionEnd::no_tls);
                                self.wait_for_request();
                              }));
    }
  }

  void wait_for_request() {
    if (server_.is_closing()) return close(ConnectionEnd::stopped);
    if (leaves_) return close(ConnectionEnd::made_room);
    if (buffer_.size() > 0) return read_header();  // sent before the last answer
    buffer_ = {};                                  // what a large body took is given back
    enter(Phase::idle);
    timed().expires_after(server_.settings().idle_time);
    stream_.async_read_some(buffer_.prepare(4096),
                            then([](Connection& self, error_code failed, std::size_t n) {
                              if (failed == beast::error::timeout) return self.close(ConnectionEnd::idle);
                              if (failed) return self.close(ConnectionEnd::closed);
                              self.buffer_.commit(n);
                              self.read_header();
                            }));
  }

  void read_header() {
    enter(Phase::header);
    parser_.emplace();
    parser_->header_limit(most_header_bytes);
    parser_->body_limit(std::numeric_limits<std::uint64_t>::max());  // framing_fault() judges it
    timed().expires_after(server_.settings().header_time);
    http::async_read_header(
        stream_, buffer_, *parser_,
        then([](Connection& self, error_code failed, std::size_t) { self.on_header(failed); }));
  }

  void on_header(error_code failed) {
    if (failed == beast::error::timeout) return close(ConnectionEnd::slow);
    const bool is_http_error = failed.category() == http::make_error_code(http::error::bad_method).category();
    if (failed && (!is_http_error || failed == http::error::end_of_stream))
      return close(failed == http::error::end_of_stream ? ConnectionEnd::closed : ConnectionEnd::lost);
    if (failed == http::error::partial_message) return close(ConnectionEnd::lost);
    begin_request();
    if (failed == http::error::header_limit)
      return refuse(
          {RequestEnd::too_large, 431, fmt::format("a header has at most {} bytes here", most_header_bytes)});
    if (failed) return refuse({RequestEnd::malformed, 400, "this is no HTTP request"});
    const RequestHeader& header = parser_->get();
    under_way_->method = std::string(header.method_string());
    under_way_->path = std::string(header.target().substr(0, header.target().find('?')));
    without_body_ = header.method() == http::verb::head;
    if (auto fault = framing_fault(header, server_.settings().most_body_bytes))
      return refuse(std::move(*fault));
    if (auto fault = host_fault(header, server_.door().hosts)) return refuse(std::move(*fault));
    if (auto fault = origin_fault(header, std::is_same_v<Stream, TlsStream>))
      return refuse(std::move(*fault));
    under_way_->counted_for_peer = server_.door().peers.add_request(peer_);
    if (!under_way_->counted_for_peer)
      return refuse({RequestEnd::peer_share, 429, "this address has as many requests under way as it may"});
    if (take_header(header)) expect_body();
  }

  // False: it was refused.
  bool take_header(const RequestHeader& header) {
    request_ = HttpRequest{.method = under_way_->method,
                           .path = under_way_->path,
                           .authorization = std::string(header[http::field::authorization]),
                           .host = std::string(header[http::field::host]),
                           .secure = std::is_same_v<Stream, TlsStream>,
                           .peer = where_};
    length_ = static_cast<std::size_t>(parser_->content_length().value_or(0));
    keep_alive_ = parser_->keep_alive();
    is_old_ = header.version() < 11;
    if (header.count("Inference-Header-Content-Length") > 0) {
      std::size_t size = 0;
      const auto text = header["Inference-Header-Content-Length"];
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
      if (error != std::errc() || end != text.data() + text.size()) {
        refuse({RequestEnd::malformed, 400, "Inference-Header-Content-Length is no number"});
        return false;
      }
      request_.json_bytes = size;
    }
    auto refusal = server_.admit(request_);
    under_way_->token = request_.token;
    if (!refusal) return true;
    keep_alive_ = false;
    refused_ = true;
    write(std::move(*refusal));
    return false;
  }

  void expect_body() {
    body_bytes_ = 0;
    enter(Phase::body);
    until_ = Clock::now() + server_.settings().header_time + std::chrono::seconds(length_ / slowest_body);
    if (is_old_ || !beast::iequals(parser_->get()[http::field::expect], "100-continue")) return read_body();
    auto go = std::make_shared<http::response<http::empty_body>>(http::status::continue_, 11);
    timed().expires_at(until_);
    http::async_write(stream_, *go, then([go](Connection& self, error_code failed, std::size_t) {
                        if (failed) return self.end_early(failed);
                        self.read_body();
                      }));
  }

  // Booked as it comes: who announces much and sends nothing takes nothing from others.
  void read_body() {
    if (!take_piece()) return;
    if (request_.body.size() == length_) return handle();
    const std::size_t wanted = std::min(length_ - request_.body.size(), piece_bytes);
    timed().expires_at(until_);
    stream_.async_read_some(buffer_.prepare(wanted),
                            then([](Connection& self, error_code failed, std::size_t n) {
                              if (failed) return self.end_early(failed);
                              self.buffer_.commit(n);
                              self.read_body();
                            }));
  }

  // What is in the buffer of it. False: there is no memory for it.
  bool take_piece() {
    const std::size_t bytes = std::min(buffer_.size(), length_ - request_.body.size());
    const std::size_t booked = bytes_of_request(bytes);
    under_way_->bytes_in += bytes;
    if (!server_.door().peers.take_bytes(peer_, booked)) {
      refuse(
          {RequestEnd::peer_share, 429, "this address has as much memory in requests as it may; try again"});
      return false;
    }
    peer_bytes_ += booked;
    try {
      if (bytes > 0 && !request_.memory.grow(server_.budget(), booked)) throw std::bad_alloc();
      request_.body.append(static_cast<const char*>(buffer_.data().data()), bytes);
    } catch (const std::bad_alloc&) {
      refuse({RequestEnd::no_memory, 503, "the server has no memory left for this request; try again"});
      return false;
    }
    buffer_.consume(bytes);
    body_bytes_.store(request_.body.size(), std::memory_order_relaxed);
    return true;
  }

  // While a body was read.
  void end_early(error_code failed) {
    const bool slow = failed == beast::error::timeout;
    end_request(slow ? RequestEnd::slow : RequestEnd::lost, 0);
    close(slow ? ConnectionEnd::slow : ConnectionEnd::lost);
  }

  void handle() {
    enter(Phase::at_work);
    timed().expires_never();  // computing takes what it takes
    server_.handle(std::move(request_), [self = this->shared_from_this()](HttpResponse response) {
      asio::post(self->stream_.get_executor(),
                 [self, response = std::make_shared<HttpResponse>(std::move(response))] {
                   self->write(std::move(*response));
                 });
    });
  }

  void refuse(Refusal refusal) {
    keep_alive_ = false;  // the body that may follow is not kept
    refused_ = true;
    give_request();
    write({.status = refusal.status,
           .body = nlohmann::json{{"error", refusal.message}}.dump(),
           .end = refusal.end});
  }

  std::shared_ptr<http::response<http::string_body>> message_of(HttpResponse& response) const {
    auto message =
        std::make_shared<http::response<http::string_body>>(static_cast<http::status>(response.status), 11);
    message->set(http::field::server, "superstep");
    message->set(http::field::content_type, response.content_type);
    message->set(http::field::cache_control, "no-store");
    message->set("X-Content-Type-Options", "nosniff");
    message->set("X-Frame-Options", "DENY");
    if (response.status == 401)
      message->set(http::field::www_authenticate, "Bearer realm=\"superstep\", Basic realm=\"superstep\"");
    if (response.json_bytes)
      message->set("Inference-Header-Content-Length", std::to_string(*response.json_bytes));
    const bool stays = keep_alive_ && !leaves_ && !server_.is_closing();
    message->keep_alive(stays);
    if (stays && is_old_) message->set(http::field::connection, "keep-alive");  // HTTP/1.0 wants to hear it
    if (without_body_) {
      message->content_length(response.body.size());
    } else {
      message->body() = std::move(response.body);
      message->prepare_payload();
    }
    return message;
  }

  void write(HttpResponse response) {
    enter(Phase::at_work);
    const std::size_t bytes = response.body.size();
    auto message = message_of(response);
    auto memory = std::make_shared<MemoryBudget::Share>(std::move(response.memory));
    timed().expires_after(server_.settings().header_time + std::chrono::seconds(bytes / slowest_body));
    auto written =
        then([message, memory, end = response.end](Connection& self, error_code failed, std::size_t n) {
          self.on_written(failed, n, end, message->result_int(), message->keep_alive());
        });
    if (without_body_) {
      auto head = std::make_shared<http::response_serializer<http::string_body>>(*message);
      http::async_write_header(stream_, *head,
                               [head, written](error_code failed, std::size_t n) { written(failed, n); });
    } else {
      http::async_write(stream_, *message, std::move(written));
    }
  }

  void on_written(error_code failed, std::size_t bytes, RequestEnd end, unsigned status, bool keep_alive) {
    end_request(failed ? RequestEnd::unsent : end, failed ? 0 : static_cast<int>(status), bytes);
    give_bytes();
    if (!failed && refused_) return hear_out();
    if (failed) return close(failed == beast::error::timeout ? ConnectionEnd::slow : ConnectionEnd::lost);
    if (!keep_alive) return close(server_.is_closing() ? ConnectionEnd::stopped : ConnectionEnd::closed);
    wait_for_request();
  }

  // Who is still sending a body would lose the answer if the connection ended under it: the rest is read and
  // forgotten, for a while.
  void hear_out() {
    error_code ignored;
    if constexpr (!std::is_same_v<Stream, TlsStream>)
      socket_of(stream_).shutdown(tcp::socket::shutdown_send, ignored);
    timed().expires_after(std::chrono::seconds(2));
    enter(Phase::header);  // gives way to others
    forget_more(std::size_t{256} << 20);
  }
  void forget_more(std::size_t most) {
    buffer_.consume(buffer_.size());
    stream_.async_read_some(buffer_.prepare(piece_bytes),
                            then([most](Connection& self, error_code failed, std::size_t n) {
                              if (failed || n >= most) return self.close(ConnectionEnd::refused);
                              self.forget_more(most - n);
                            }));
  }

  void begin_request() {
    under_way_.emplace();
    without_body_ = false;
    server_.door().http.request_began();
  }
  void end_request(RequestEnd end, int status, std::size_t bytes_out = 0) {
    if (!under_way_) return;
    Door& door = server_.door();
    door.http.request_ended(end, status);
    if (under_way_->counted_for_peer) door.peers.drop_request(peer_);
    door.log_request({.door = "http",
                      .peer = where_,
                      .method = under_way_->method,
                      .path = under_way_->path,
                      .token = under_way_->token,
                      .status = status,
                      .end = end,
                      .bytes_in = under_way_->bytes_in,
                      .bytes_out = bytes_out,
                      .took = Clock::now() - under_way_->began});
    under_way_.reset();
  }
  void give_request() { request_ = {}; }
  void give_bytes() { server_.door().peers.give_bytes(peer_, std::exchange(peer_bytes_, 0)); }

  void close(ConnectionEnd end) {
    if (!end_) end_ = end;
    error_code ignored;
    socket_of(stream_).shutdown(tcp::socket::shutdown_both, ignored);
    timed().close();
  }

  Stream stream_;
  SessionHost& server_;
  const std::string peer_, where_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::buffer_body>> parser_;
  HttpRequest request_;  // while its body is read
  std::size_t length_ = 0, peer_bytes_ = 0;
  Clock::time_point until_;
  std::optional<UnderWay> under_way_;
  std::optional<ConnectionEnd> end_;
  std::atomic<Phase> phase_ = Phase::idle;
  std::atomic<Clock::rep> since_ = Clock::now().time_since_epoch().count();  // of the phase
  std::atomic<std::size_t> body_bytes_ = 0;
  bool keep_alive_ = true, is_old_ = false, without_body_ = false, refused_ = false, leaves_ = false;
};

}  // namespace

SessionPointer make_session(tcp::socket socket, asio::ssl::context* tls, const std::string& peer,
                            SessionHost& server) {
  if (tls)
    return std::make_shared<Connection<TlsStream>>(TlsStream(beast::tcp_stream(std::move(socket)), *tls),
                                                   peer, server);
  return std::make_shared<Connection<beast::tcp_stream>>(beast::tcp_stream(std::move(socket)), peer, server);
}

}  // namespace superstep::edge
