#include <fmt/format.h>
#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "superstep/edge/grpc/library/calls.h"
#include "superstep/edge/grpc/library/refused.h"

namespace superstep::edge {
namespace {

std::shared_ptr<grpc::ServerCredentials> credentials_of(const TlsFiles& files) {
  if (!files) return grpc::InsecureServerCredentials();
  static_cast<void>(tls_context(files));  // says what is wrong with them
  constexpr unsigned looks_each_s = 5;    // at the files: the library has no other way to renew them (chosen)
  namespace tls = grpc::experimental;
  tls::TlsServerCredentialsOptions options(std::make_shared<tls::FileWatcherCertificateProvider>(
      files.key.string(), files.certificate.string(), files.client_ca.string(), looks_each_s));
  options.watch_identity_key_cert_pairs();
  if (!files.client_ca.empty()) options.watch_root_certs();
  options.set_cert_request_type(files.client_ca.empty()
                                    ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                    : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return tls::TlsServerCredentials(options);
}

class LibraryServer : public GrpcServer {
 public:
  LibraryServer(const GrpcSettings& settings, const Inference& inference, MemoryBudget& budget, Door& door)
      : settings_(settings),
        door_(door),
        connections_(settings, door),
        calls_({.settings = settings_,
                .inference = inference,
                .budget = budget,
                .door = door,
                .busy = busy_,
                .connections = connections_}) {
    gpr_set_log_function([](gpr_log_func_args*) {});  // what concerns a user is said by errors here
    grpc::ServerBuilder builder;
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        credentials_of(settings.tls));
    set_limits(builder);
    builder.RegisterCallbackGenericService(&calls_);
    refused_ = counted([&] {
      server_ = builder.BuildAndStart();
      return server_ != nullptr;
    });
    if (!server_) throw Error(ErrorCode::io, "gRPC's library does not start a server", settings.address, "");
    connections_.start([this](int descriptor) { hand_over(descriptor); },
                       [this] { count_refused(refused_->news(calls_.begun())); });
  }
  ~LibraryServer() override { finish(std::chrono::steady_clock::now()); }

  std::uint16_t port() const override { return connections_.port(); }

  void finish(std::chrono::steady_clock::time_point until) override {
    if (!server_) return;
    connections_.stop_accepting();
    busy_.wait_for_none(until);
    // Streams whose client has nothing to ask are cut off.
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
    connections_.end();
    count_refused(refused_->rest(calls_.begun()));
    server_.reset();
  }

 private:
  void set_limits(grpc::ServerBuilder& builder) const {
    const auto milliseconds = [](std::chrono::milliseconds time) { return static_cast<int>(time.count()); };
    constexpr std::size_t most = std::size_t{1} << 30;
    builder.SetMaxReceiveMessageSize(static_cast<int>(std::min(settings_.most_message_bytes, most)));
    builder.SetMaxSendMessageSize(-1);
    builder.SetResourceQuota(grpc::ResourceQuota("superstep").Resize(settings_.memory));
    builder.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 1);  // what is refused is counted by it
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, settings_.most_streams);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, milliseconds(settings_.handshake_time));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, milliseconds(settings_.idle_time));
  }

  void hand_over(int descriptor) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.fd = descriptor;
    acceptor_->HandleNewConnection(&connection);
  }
  // Who asked is not known: the access log has no line of them.
  void count_refused(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      door_.grpc.request_began();
      door_.grpc.request_ended(RequestEnd::not_begun, 0);
    }
  }

  const GrpcSettings settings_;
  Door& door_;
  Busy busy_;
  GrpcConnections connections_;
  InferenceCalls calls_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::optional<RefusedByLibrary> refused_;
};

}  // namespace

std::unique_ptr<GrpcServer> start_grpc_server(const GrpcSettings& settings, const Inference& inference,
                                              MemoryBudget& budget, Door& door) {
  return std::make_unique<LibraryServer>(settings, inference, budget, door);
}

}  // namespace superstep::edge
