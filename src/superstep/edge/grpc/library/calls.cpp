#include "superstep/edge/grpc/library/calls.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string_view>

#include "superstep/edge/grpc/messages.h"
#include "superstep/edge/http/message.h"

namespace superstep::edge {
namespace {

grpc::StatusCode code_of(int status) {
  switch (status) {
    case status::bad_request: return grpc::StatusCode::INVALID_ARGUMENT;
    case status::not_found: return grpc::StatusCode::NOT_FOUND;
    case status::too_large:
    case status::too_many: return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case status::unavailable: return grpc::StatusCode::UNAVAILABLE;
    case status::too_late: return grpc::StatusCode::DEADLINE_EXCEEDED;
    default: return grpc::StatusCode::INTERNAL;
  }
}

grpc::Status status_of(const StatusError& error) { return {code_of(error.status), error.message}; }

// gRPC tells of deadlines by the clock on the wall: what is left of it counts.
std::optional<Clock::time_point> deadline_of(const grpc::GenericCallbackServerContext& context) {
  const auto until = context.deadline();
  if (until == std::chrono::system_clock::time_point::max()) return std::nullopt;
  const auto left = until - std::chrono::system_clock::now();
  constexpr auto longest = std::chrono::hours(24);
  if (left > longest) return std::nullopt;
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(left);
}

grpc::ByteBuffer buffer_of(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

// A message that came, in one piece, and its share of the memory.
class Message {
 public:
  // Throws StatusError.
  Message(const grpc::ByteBuffer& buffer, MemoryBudget& budget)
      : share_(budget.take(bytes_of_request(buffer.Length(), true))) {
    if (!share_)
      throw StatusError{status::unavailable, "the server has no memory left for this request; try again"};
    if (!buffer.TrySingleSlice(&slice_).ok() && !buffer.DumpToSingleSlice(&slice_).ok())
      throw StatusError{status::our_fault, "the message cannot be read"};
  }
  onnx::Bytes bytes() const { return {reinterpret_cast<const std::byte*>(slice_.begin()), slice_.size()}; }

 private:
  MemoryBudget::Share share_;
  grpc::Slice slice_;
};

void ask(const CallSite& site, const std::shared_ptr<Message>& message,
         std::optional<Clock::time_point> deadline, std::function<void(Inference::Answer)> tell) {
  const ModelName name = decode_model_name(message->bytes());
  site.inference.ask(
      {.model = name.name, .version = name.version, .deadline = deadline},
      [&](const ServedPorts& ports, FunctionRef<void(std::int64_t)> admit) {
        return decode_infer_message(ports, message->bytes(), admit);
      },
      [message, tell = std::move(tell)](Inference::Answer answer) { tell(std::move(answer)); });
}

// --- what is answered at once

std::string server_live(const CallSite&, onnx::Bytes) { return encode_flag(true); }
std::string server_ready(const CallSite& site, onnx::Bytes) {
  return encode_flag(site.inference.repository().is_open());
}
std::string server_metadata(const CallSite& site, onnx::Bytes) {
  return encode_server_metadata(site.settings.server_version, {});
}
std::string model_ready(const CallSite& site, onnx::Bytes message) {
  const ModelName name = decode_model_name(message);
  const ModelService& model = site.inference.model(name.name);
  return encode_flag(site.inference.repository().is_open() && model.find(name.version) != nullptr);
}
std::string model_metadata(const CallSite& site, onnx::Bytes message) {
  const ModelName name = decode_model_name(message);
  const ModelService& model = site.inference.model(name.name);
  return encode_model_metadata(model, *Inference::version_of(model, name.version));
}

using AnswerAtOnce = std::string (*)(const CallSite& site, onnx::Bytes message);

// One message, one answer. Everything that starts an operation of gRPC is the last that a function does: the
// call may be over, and this gone, before that returns.
class Call : public grpc::ServerGenericBidiReactor {
 public:
  Call(const CallSite& site, const grpc::GenericCallbackServerContext& context, AnswerAtOnce at_once)
      : site_(site), deadline_(deadline_of(context)), at_once_(at_once) {
    site_.busy.begin();
    StartRead(&message_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish({grpc::StatusCode::INVALID_ARGUMENT, "the call brings no message"});
    try {
      const auto message = std::make_shared<Message>(message_, site_.budget);
      message_.Clear();
      if (!at_once_) return ask(site_, message, deadline_, [this](auto answer) { tell(std::move(answer)); });
      answer_ = buffer_of(at_once_(site_, message->bytes()));
    } catch (...) {
      return Finish(status_of(status_error(std::current_exception())));
    }
    StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnDone() override {
    Busy& busy = site_.busy;
    delete this;  // with its share of the memory, before it counts as ended
    busy.end();
  }

 private:
  void tell(Inference::Answer answer) {
    if (answer.failure) return Finish(status_of(*answer.failure));
    try {
      answer_ = buffer_of(encode_infer_message(answer));
    } catch (...) {
      return Finish(status_of(status_error(std::current_exception())));
    }
    held_ = std::move(answer.memory);
    StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
  }

  const CallSite site_;
  const std::optional<Clock::time_point> deadline_;
  const AnswerAtOnce at_once_;  // null: a model is asked
  grpc::ByteBuffer message_, answer_;
  MemoryBudget::Share held_;
};

// Question after question, each answered before the next is read: a failure is an answer, too.
class StreamCall : public grpc::ServerGenericBidiReactor {
 public:
  explicit StreamCall(const CallSite& site) : site_(site) { StartRead(&message_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);  // the client has said all it wanted
    site_.busy.begin();
    try {
      const auto message = std::make_shared<Message>(message_, site_.budget);
      message_.Clear();
      return ask(site_, message, std::nullopt, [this](auto answer) { tell(std::move(answer)); });
    } catch (...) {
      answer_ = buffer_of(encode_stream_failure(status_error(std::current_exception()).message, {}));
    }
    StartWrite(&answer_);
  }
  void OnWriteDone(bool ok) override {
    held_ = {};
    site_.busy.end();
    if (!ok) return Finish({grpc::StatusCode::CANCELLED, "the client is gone"});
    StartRead(&message_);
  }
  void OnDone() override { delete this; }

 private:
  void tell(Inference::Answer answer) {
    try {
      answer_ = buffer_of(answer.failure ? encode_stream_failure(answer.failure->message, answer.id)
                                         : encode_stream_answer(encode_infer_message(answer)));
    } catch (...) {
      answer_ = buffer_of(encode_stream_failure(status_error(std::current_exception()).message, answer.id));
    }
    held_ = std::move(answer.memory);
    StartWrite(&answer_);
  }

  const CallSite site_;
  grpc::ByteBuffer message_, answer_;
  MemoryBudget::Share held_;
};

class UnknownCall : public grpc::ServerGenericBidiReactor {
 public:
  explicit UnknownCall(const std::string& method) {
    Finish({grpc::StatusCode::UNIMPLEMENTED, fmt::format("there is no method '{}' here", method)});
  }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerGenericBidiReactor* InferenceCalls::CreateReactor(grpc::GenericCallbackServerContext* context) {
  static const std::map<std::string_view, AnswerAtOnce> methods{
      {"ServerLive", server_live}, {"ServerReady", server_ready},     {"ServerMetadata", server_metadata},
      {"ModelReady", model_ready}, {"ModelMetadata", model_metadata}, {"ModelInfer", nullptr}};
  constexpr std::string_view service = "/inference.GRPCInferenceService/";
  const std::string& path = context->method();
  const std::string_view method =
      path.starts_with(service) ? std::string_view(path).substr(service.size()) : std::string_view();
  if (method == "ModelStreamInfer") return new StreamCall(site_);
  const auto found = methods.find(method);
  if (found == methods.end()) return new UnknownCall(path);
  return new Call(site_, *context, found->second);
}

}  // namespace superstep::edge
