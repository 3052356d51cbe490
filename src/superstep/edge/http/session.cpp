#include "superstep/edge/http/session.h"

#include <fmt/format.h>

#include <boost/asio.hpp>
#include <boost/beast.hpp>
#include <charconv>

namespace superstep::edge {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr std::uint32_t most_header_bytes = 16 * 1024;
constexpr std::size_t slowest_body = 1 << 20;  // bytes a second that a body comes with at least

// One connection. All of it runs on its strand.
class Connection : public Session, public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, SessionHost& server) : stream_(std::move(socket)), server_(server) {
    error_code ignored;
    stream_.socket().set_option(tcp::no_delay(true), ignored);
  }
  ~Connection() override { server_.ended(); }

  void start() override {
    asio::post(stream_.get_executor(), [self = shared_from_this()] { self->wait_for_request(); });
  }
  void close_if_idle() override {
    asio::post(stream_.get_executor(), [self = shared_from_this()] {
      if (self->idle_) self->close();
    });
  }

 private:
  void wait_for_request() {
    if (server_.is_closing()) return close();
    if (buffer_.size() > 0) return read_header();  // sent before the last answer
    idle_ = true;
    server_.became_idle(shared_from_this());
    stream_.expires_after(server_.settings().idle_time);
    stream_.async_read_some(buffer_.prepare(4096),
                            [self = shared_from_this()](error_code failed, std::size_t bytes) {
                              self->idle_ = false;
                              self->server_.became_busy(self.get());
                              if (failed) return self->close();
                              self->buffer_.commit(bytes);
                              self->read_header();
                            });
  }

  void read_header() {
    parser_.emplace();
    parser_->header_limit(most_header_bytes);
    parser_->body_limit(server_.settings().most_body_bytes);
    stream_.expires_after(server_.settings().header_time);
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code failed, std::size_t) { self->on_header(failed); });
  }

  void on_header(error_code failed) {
    if (failed == beast::error::timeout) {
      server_.count(&ServerCounts::timed_out);
      return close();
    }
    if (failed == http::error::body_limit) return refuse_size();
    if (failed && failed != http::error::end_of_stream &&
        failed.category() == http::make_error_code(http::error::bad_method).category()) {
      server_.count(&ServerCounts::malformed);
      return refuse(400, "this is no HTTP request");
    }
    if (failed) return close();
    if (parser_->chunked()) return refuse(411, "the request needs a Content-Length");
    const auto length = parser_->content_length();
    if (length && *length > server_.settings().most_body_bytes) return refuse_size();
    if (parser_->get()[http::field::content_encoding] != "" &&
        parser_->get()[http::field::content_encoding] != "identity")
      return refuse(415, "compressed bodies are not taken: send the tensors as they are, in binary");
    const auto body = static_cast<std::size_t>(length.value_or(0));
    const bool has_tensors = parser_->get().count("Inference-Header-Content-Length") > 0;
    memory_ = server_.budget().take(bytes_of_request(body, has_tensors));
    if (!memory_) {
      server_.count(&ServerCounts::no_memory);
      return refuse(503, "the server has no memory left for this request; try again");
    }
    if (beast::iequals(parser_->get()[http::field::expect], "100-continue")) return send_continue(body);
    read_body(body);
  }

  void refuse_size() {
    server_.count(&ServerCounts::too_large);
    refuse(413, fmt::format("a body has at most {} bytes here", server_.settings().most_body_bytes));
  }

  void send_continue(std::size_t body) {
    auto go = std::make_shared<http::response<http::empty_body>>(http::status::continue_, 11);
    http::async_write(stream_, *go, [self = shared_from_this(), go, body](error_code failed, std::size_t) {
      if (failed) return self->close();
      self->read_body(body);
    });
  }

  void read_body(std::size_t bytes) {
    stream_.expires_after(server_.settings().header_time + std::chrono::seconds(bytes / slowest_body));
    http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](error_code failed, std::size_t) {
      if (failed == beast::error::timeout) self->server_.count(&ServerCounts::timed_out);
      if (failed) return self->close();
      self->handle();
    });
  }

  void handle() {
    http::request<http::string_body> message = parser_->release();
    stream_.expires_never();  // computing takes what it takes
    keep_alive_ = message.keep_alive();
    without_body_ = message.method() == http::verb::head;
    HttpRequest request;
    request.method = std::string(message.method_string());
    request.path = std::string(message.target().substr(0, message.target().find('?')));
    request.authorization = std::string(message[http::field::authorization]);
    request.from_a_page = message.count(http::field::origin) > 0;
    if (message.count("Inference-Header-Content-Length") > 0) {
      std::size_t size = 0;
      const auto text = message["Inference-Header-Content-Length"];
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
      if (error != std::errc() || end != text.data() + text.size())
        return refuse(400, "Inference-Header-Content-Length is no number");
      request.json_bytes = size;
    }
    request.body = std::move(message.body());
    request.memory = std::move(memory_);
    server_.handle(std::move(request), [self = shared_from_this()](HttpResponse response) {
      asio::post(self->stream_.get_executor(),
                 [self, response = std::make_shared<HttpResponse>(std::move(response))] {
                   self->write(std::move(*response));
                 });
    });
  }

  void refuse(int status, std::string_view message) {
    keep_alive_ = false;  // the body that may follow is not kept
    refused_ = true;
    write({.status = status, .body = fmt::format(R"({{"error":"{}"}})", message)});
  }

  void write(HttpResponse response) {
    auto message =
        std::make_shared<http::response<http::string_body>>(static_cast<http::status>(response.status), 11);
    message->set(http::field::server, "superstep");
    message->set(http::field::content_type, response.content_type);
    message->set(http::field::cache_control, "no-store");
    message->set("X-Content-Type-Options", "nosniff");
    if (response.json_bytes)
      message->set("Inference-Header-Content-Length", std::to_string(*response.json_bytes));
    message->keep_alive(keep_alive_ && !server_.is_closing());
    const std::size_t bytes = response.body.size();
    if (without_body_) {
      message->content_length(bytes);
    } else {
      message->body() = std::move(response.body);
      message->prepare_payload();
    }
    auto memory = std::make_shared<MemoryBudget::Share>(std::move(response.memory));
    stream_.expires_after(server_.settings().header_time + std::chrono::seconds(bytes / slowest_body));
    auto written = [self = shared_from_this(), message, memory](error_code failed, std::size_t) {
      if (!failed && self->refused_) return self->hear_out();
      if (failed || !message->keep_alive()) return self->close();
      self->wait_for_request();
    };
    if (without_body_) {
      auto head = std::make_shared<http::response_serializer<http::string_body>>(*message);
      http::async_write_header(stream_, *head,
                               [head, written](error_code failed, std::size_t n) { written(failed, n); });
    } else {
      http::async_write(stream_, *message, std::move(written));
    }
  }

  // Who is still sending a body would lose the answer if the connection ended under it: the rest is read and
  // forgotten, for a while.
  void hear_out() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(std::chrono::seconds(2));
    forget_more(std::size_t{256} << 20);
  }
  void forget_more(std::size_t most) {
    buffer_.consume(buffer_.size());
    stream_.async_read_some(buffer_.prepare(65536),
                            [self = shared_from_this(), most](error_code failed, std::size_t bytes) {
                              if (failed || bytes >= most) return self->close();
                              self->forget_more(most - bytes);
                            });
  }

  void close() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.close();
  }

  beast::tcp_stream stream_;
  SessionHost& server_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  MemoryBudget::Share memory_;
  bool idle_ = false, keep_alive_ = true, without_body_ = false, refused_ = false;
};

}  // namespace

SessionPointer make_session(tcp::socket socket, SessionHost& server) {
  return std::make_shared<Connection>(std::move(socket), server);
}

}  // namespace superstep::edge
