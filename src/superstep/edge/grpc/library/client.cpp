#include "superstep/edge/grpc/client.h"

#include <fmt/format.h>
#include <grpc/support/log.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "superstep/base/error.h"
#include "superstep/base/threads/own_threads.h"
#include "superstep/edge/protocol/status.h"

namespace superstep::edge {
namespace {

int status_of(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK: return 200;
    case grpc::StatusCode::INVALID_ARGUMENT: return status::bad_request;
    case grpc::StatusCode::NOT_FOUND: return status::not_found;
    case grpc::StatusCode::RESOURCE_EXHAUSTED: return status::too_many;
    case grpc::StatusCode::UNAVAILABLE: return status::unavailable;
    case grpc::StatusCode::DEADLINE_EXCEEDED: return status::too_late;
    default: return status::our_fault;
  }
}

std::string text_of(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.DumpToSingleSlice(&slice).ok()) return {};
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

// A call on its way; told to the client's thread, as the tag of its end.
class Call {
 public:
  Call(std::shared_ptr<grpc::Channel> channel, const std::string& message, const std::string& token,
       GrpcChannel::Done done)
      : channel_(std::move(channel)), done_(std::move(done)) {
    const grpc::Slice slice(message);
    request_ = grpc::ByteBuffer(&slice, 1);
    if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
  }
  void start(grpc::CompletionQueue& queue, const std::string& method) {
    grpc::GenericStub stub(channel_);
    reader_ = stub.PrepareUnaryCall(&context_, "/inference.GRPCInferenceService/" + method, request_, &queue);
    reader_->StartCall();
    reader_->Finish(&answer_, &status_, this);
  }
  void cancel() { context_.TryCancel(); }
  // This may be gone when it returns.
  void tell() {
    const GrpcChannel::Done done = std::move(done_);
    const bool lost = status_.error_code() == grpc::StatusCode::UNAVAILABLE &&
                      channel_->GetState(false) != GRPC_CHANNEL_READY;
    done(lost ? 0 : status_of(status_.error_code()),
         status_.ok() ? text_of(answer_) : status_.error_message());
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  GrpcChannel::Done done_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_, answer_;
  grpc::Status status_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
};

class LibraryChannel : public GrpcChannel {
 public:
  LibraryChannel(std::shared_ptr<grpc::Channel> channel, grpc::CompletionQueue& queue, std::string token)
      : channel_(std::move(channel)), queue_(queue), token_(std::move(token)) {}
  ~LibraryChannel() override {
    std::unique_lock lock(mutex_);
    given_up_ = true;
    if (call_) call_->cancel();
    over_.wait(lock, [&] { return !call_; });
  }
  void call(const std::string& method, const std::string& message, Done done) override {
    const std::scoped_lock lock(mutex_);
    call_ = std::make_unique<Call>(channel_, message, token_,
                                   [this, done = std::move(done)](int status, const std::string& answer) {
                                     finish(done, status, answer);
                                   });
    call_->start(queue_, method);
  }

 private:
  void finish(const Done& done, int status, const std::string& answer) {
    std::unique_ptr<Call> ended;
    bool tell = false;
    {
      const std::scoped_lock lock(mutex_);
      ended = std::move(call_);
      tell = !given_up_;
      if (!tell) over_.notify_all();
    }
    if (tell) done(status, answer);
  }

  const std::shared_ptr<grpc::Channel> channel_;
  grpc::CompletionQueue& queue_;
  const std::string token_;
  std::mutex mutex_;
  std::condition_variable over_;
  std::unique_ptr<Call> call_;
  bool given_up_ = false;
};

std::shared_ptr<grpc::ChannelCredentials> credentials_of(bool secure, const ClientAccess& access) {
  if (!secure) return grpc::InsecureChannelCredentials();
  const AccessTexts texts = read_access(access);
  return grpc::SslCredentials(
      {.pem_root_certs = texts.ca, .pem_private_key = texts.key, .pem_cert_chain = texts.certificate});
}

class LibraryClient : public GrpcClient {
 public:
  LibraryClient(bool secure, const ClientAccess& access)
      : token_(access.token), credentials_(credentials_of(secure, access)) {
    gpr_set_log_function([](gpr_log_func_args*) {});  // what concerns a user is said by errors here
    thread_ = start_thread([this] {
      void* tag = nullptr;
      for (bool ok = false; queue_.Next(&tag, &ok);) static_cast<Call*>(tag)->tell();
    });
  }
  ~LibraryClient() override {
    queue_.Shutdown();
    thread_.join();
  }
  std::unique_ptr<GrpcChannel> connect(const std::string& where) override {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection that no other channel shares
    auto channel = grpc::CreateCustomChannel(where, credentials_, arguments);
    constexpr auto patience = std::chrono::seconds(10);
    if (!channel->WaitForConnected(std::chrono::system_clock::now() + patience))
      throw Error(ErrorCode::io, "does not answer over gRPC", where,
                  "start the server first: superstep serve MODEL --grpc HOST:PORT");
    return std::make_unique<LibraryChannel>(std::move(channel), queue_, token_);
  }

 private:
  const std::string token_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  grpc::CompletionQueue queue_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<GrpcClient> open_grpc_client(bool secure, const ClientAccess& access) {
  return std::make_unique<LibraryClient>(secure, access);
}

}  // namespace superstep::edge
