#include "superstep/edge/load/connection.h"

#include <fmt/format.h>

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast.hpp>
#include <optional>
#include <type_traits>

#include "superstep/base/error.h"
#include "superstep/edge/grpc/client.h"
#include "superstep/edge/load/secure.h"

namespace superstep::edge {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

// --- HTTP

// Lives as long as what it waits for.
template <class Stream>
class HttpExchange : public std::enable_shared_from_this<HttpExchange<Stream>> {
 public:
  HttpExchange(Stream stream, const std::string& message) : stream_(std::move(stream)), message_(message) {}

  void connect(const asio::ip::tcp::resolver::results_type& endpoints, const LoadTarget& target) {
    asio::connect(stream_.lowest_layer(), endpoints);
    stream_.lowest_layer().set_option(asio::ip::tcp::no_delay(true));
    if constexpr (!std::is_same_v<Stream, asio::ip::tcp::socket>) begin_tls(stream_, target);
  }
  void send(Connection::Answered answered) {
    answered_ = std::move(answered);
    asio::async_write(stream_, asio::buffer(message_),
                      [self = this->shared_from_this()](error_code failed, std::size_t) {
                        if (failed) return self->tell(0);
                        self->read();
                      });
  }
  void close() {
    answered_ = nullptr;
    error_code ignored;
    stream_.lowest_layer().close(ignored);
  }

 private:
  void read() {
    parser_.emplace();
    parser_->body_limit(std::size_t{1} << 30);
    http::async_read(stream_, buffer_, *parser_,
                     [self = this->shared_from_this()](error_code failed, std::size_t) {
                       const int status = failed ? 0 : static_cast<int>(self->parser_->get().result_int());
                       if (failed || !self->parser_->get().keep_alive()) {
                         error_code ignored;
                         self->stream_.lowest_layer().close(ignored);
                       }
                       self->tell(status);
                     });
  }
  void tell(int status) {
    const auto now = Connection::Clock::now();
    if (const Connection::Answered answered = std::exchange(answered_, nullptr)) answered(status, now);
  }

  Stream stream_;
  const std::string& message_;
  Connection::Answered answered_;
  beast::flat_buffer buffer_;
  std::optional<http::response_parser<http::string_body>> parser_;
};

template <class Stream>
class HttpConnection : public Connection {
 public:
  explicit HttpConnection(std::shared_ptr<HttpExchange<Stream>> exchange) : exchange_(std::move(exchange)) {}
  ~HttpConnection() override { exchange_->close(); }
  void send(Answered answered) override { exchange_->send(std::move(answered)); }
  void close() override { exchange_->close(); }

 private:
  const std::shared_ptr<HttpExchange<Stream>> exchange_;
};

class HttpConnections : public Connections {
 public:
  HttpConnections(const LoadTarget& target, const std::string& message, asio::io_context& context)
      : target_(target),
        message_(message),
        context_(context),
        tls_(target.secure ? client_tls(target.access) : nullptr) {}
  std::unique_ptr<Connection> connect() override {
    try {
      if (!endpoints_) endpoints_ = asio::ip::tcp::resolver(context_).resolve(target_.host, target_.port);
      using asio::ip::tcp;
      if (tls_) return connected(asio::ssl::stream<tcp::socket>(tcp::socket(context_), *tls_));
      return connected(tcp::socket(context_));
    } catch (const boost::system::system_error& error) {
      throw Error(ErrorCode::io, "cannot be reached: " + error.code().message(),
                  target_.host + ":" + target_.port);
    }
  }

 private:
  template <class Stream>
  std::unique_ptr<Connection> connected(Stream stream) {
    const auto exchange = std::make_shared<HttpExchange<Stream>>(std::move(stream), message_);
    exchange->connect(*endpoints_, target_);
    return std::make_unique<HttpConnection<Stream>>(exchange);
  }

  const LoadTarget& target_;
  const std::string& message_;
  asio::io_context& context_;
  const std::shared_ptr<asio::ssl::context> tls_;
  std::optional<asio::ip::tcp::resolver::results_type> endpoints_;
};

// --- gRPC, whose own thread hears of answers first

class GrpcConnection : public Connection {
 public:
  GrpcConnection(std::unique_ptr<GrpcChannel> channel, const std::string& message, asio::io_context& context)
      : channel_(std::move(channel)), message_(message), context_(context) {}
  void send(Answered answered) override {
    channel_->call("ModelInfer", message_,
                   [this, answered = std::move(answered)](int status, const std::string&) {
                     asio::post(context_, [answered, status, now = Clock::now()] { answered(status, now); });
                   });
  }
  void close() override { channel_.reset(); }

 private:
  std::unique_ptr<GrpcChannel> channel_;
  const std::string& message_;
  asio::io_context& context_;
};

class GrpcConnections : public Connections {
 public:
  GrpcConnections(const LoadTarget& target, const std::string& message, asio::io_context& context)
      : where_(target.host + ":" + target.port),
        message_(message),
        context_(context),
        client_(open_grpc_client(target.secure, target.access)) {}
  std::unique_ptr<Connection> connect() override {
    return std::make_unique<GrpcConnection>(client_->connect(where_), message_, context_);
  }

 private:
  const std::string where_;
  const std::string& message_;
  asio::io_context& context_;
  const std::unique_ptr<GrpcClient> client_;
};

}  // namespace

std::unique_ptr<Connections> connections_to(const LoadTarget& target, const std::string& message,
                                            asio::io_context& context) {
  if (target.transport == Transport::grpc) return std::make_unique<GrpcConnections>(target, message, context);
  return std::make_unique<HttpConnections>(target, message, context);
}

}  // namespace superstep::edge
