#include <fmt/format.h>
#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "superstep/edge/grpc/library/calls.h"

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
        calls_(
            {.settings = settings_, .inference = inference, .budget = budget, .door = door, .busy = busy_}) {
    gpr_set_log_function([](gpr_log_func_args*) {});  // what concerns a user is said by errors here
    const bool v6 = settings.address.find(':') != std::string::npos;
    const std::string where =
        fmt::format("{}:{}", v6 ? "[" + settings.address + "]" : settings.address, settings.port);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(where, credentials_of(settings.tls), &port);
    set_limits(builder);
    builder.RegisterCallbackGenericService(&calls_);
    server_ = builder.BuildAndStart();
    if (!server_ || port == 0)
      throw Error(ErrorCode::io, "cannot be listened at", where, "give another --grpc HOST:PORT");
    port_ = static_cast<std::uint16_t>(port);
  }
  ~LibraryServer() override { finish(std::chrono::steady_clock::now()); }

  std::uint16_t port() const override { return port_; }

  void finish(std::chrono::steady_clock::time_point until) override {
    if (!server_) return;
    busy_.wait_for_none(until);
    // Streams whose client has nothing to ask are cut off.
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
    server_.reset();
  }

 private:
  void set_limits(grpc::ServerBuilder& builder) const {
    const auto milliseconds = [](std::chrono::milliseconds time) { return static_cast<int>(time.count()); };
    constexpr std::size_t most = std::size_t{1} << 30;
    builder.SetMaxReceiveMessageSize(static_cast<int>(std::min(settings_.most_message_bytes, most)));
    builder.SetMaxSendMessageSize(-1);
    builder.SetResourceQuota(grpc::ResourceQuota("superstep").Resize(settings_.memory));
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, settings_.most_streams);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, milliseconds(settings_.handshake_time));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, milliseconds(settings_.idle_time));
  }

  const GrpcSettings settings_;
  Busy busy_;
  InferenceCalls calls_;
  std::unique_ptr<grpc::Server> server_;
  std::uint16_t port_ = 0;
};

}  // namespace

std::unique_ptr<GrpcServer> start_grpc_server(const GrpcSettings& settings, const Inference& inference,
                                              MemoryBudget& budget, Door& door) {
  return std::make_unique<LibraryServer>(settings, inference, budget, door);
}

}  // namespace superstep::edge
