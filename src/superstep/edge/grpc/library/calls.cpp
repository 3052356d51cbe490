#include "superstep/edge/grpc/library/calls.h"

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <optional>
#include <string_view>

#include "superstep/edge/grpc/facts.h"
#include "superstep/edge/grpc/messages.h"
#include "superstep/edge/http/message.h"

namespace superstep::edge {
namespace {

grpc::StatusCode code_of(int status) {
  switch (status) {
    case status::bad_request: return grpc::StatusCode::INVALID_ARGUMENT;
    case status::unauthorized: return grpc::StatusCode::UNAUTHENTICATED;
    case status::forbidden: return grpc::StatusCode::PERMISSION_DENIED;
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

// Who asks, as the door knows them.
struct Asker {
  std::string where, peer, token, method;
};

// "ipv4:127.0.0.1:1234", "ipv6:%5B::1%5D:1234", "unix:..." without the port.
std::string address_of(std::string where) {
  where = where.substr(where.find(':') + 1);
  const std::size_t open = where.find("%5B"), close = where.find("%5D");
  if (open != std::string::npos && close != std::string::npos)
    return where.substr(open + 3, close - open - 3);
  return where.substr(0, where.rfind(':'));
}

// A question under way: counted, logged, and a part of its peer's share.
class Question {
 public:
  // Throws StatusError where the peer has its share.
  Question(const CallSite& site, const Asker& asker)
      : door_(site.door), connections_(site.connections), asker_(asker) {
    door_.grpc.request_began();
    connections_.question_began(asker.where);
    of_peer_ = door_.peers.add_request(asker.peer);
    if (of_peer_) return;
    finish(RequestEnd::peer_share, status::too_many);
    throw StatusError{status::too_many, "this address has as many requests under way as it may"};
  }
  ~Question() {
    if (!ended_) finish(RequestEnd::unsent, 0);
    if (of_peer_) door_.peers.drop_request(asker_.peer);
    door_.peers.give_bytes(asker_.peer, bytes_);
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  // Of the message; throws StatusError.
  MemoryBudget::Share book(std::size_t message_bytes, MemoryBudget& budget) {
    bytes_in_ = message_bytes;
    const std::size_t bytes = bytes_of_request(message_bytes);
    if (!door_.peers.take_bytes(asker_.peer, bytes)) {
      finish(RequestEnd::peer_share, status::too_many);
      throw StatusError{status::too_many, "this address has as much memory in requests as it may; try again"};
    }
    bytes_ = bytes;
    MemoryBudget::Share share = budget.take(bytes);
    if (share) return share;
    finish(RequestEnd::no_memory, status::unavailable);
    throw StatusError{status::unavailable, "the server has no memory left for this request; try again"};
  }
  // The first is what counts.
  void finish(RequestEnd end, int status, std::size_t bytes_out = 0) {
    if (std::exchange(ended_, true)) return;
    door_.grpc.request_ended(end, status);
    connections_.question_ended(asker_.where, end == RequestEnd::unsent || end == RequestEnd::no_message);
    door_.log_request({.door = "grpc",
                       .peer = asker_.where,
                       .method = asker_.method,
                       .path = asker_.method,
                       .token = asker_.token,
                       .status = status,
                       .end = end,
                       .bytes_in = bytes_in_,
                       .bytes_out = bytes_out,
                       .took = Clock::now() - began_});
  }

 private:
  Door& door_;
  GrpcConnections& connections_;
  const Asker asker_;
  const Clock::time_point began_ = Clock::now();
  std::size_t bytes_ = 0, bytes_in_ = 0;
  bool ended_ = false, of_peer_ = false;
};

// A message that came, in one piece, and its share of the memory.
class Message {
 public:
  // Throws StatusError.
  Message(const grpc::ByteBuffer& buffer, Question& question, MemoryBudget& budget)
      : share_(question.book(buffer.Length(), budget)) {
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
  return encode_flag(site.inference.repository().is_ready());
}
std::string server_metadata(const CallSite& site, onnx::Bytes) {
  return encode_server_metadata(site.settings.server_version,
                                {"model_configuration", "model_repository", "statistics"});
}
std::string model_ready(const CallSite& site, onnx::Bytes message) {
  const ModelName name = decode_model_name(message);
  const ModelService& model = site.inference.model(name.name);
  return encode_flag(site.inference.repository().is_ready() && model.find(name.version) != nullptr);
}
std::string model_metadata(const CallSite& site, onnx::Bytes message) {
  const ModelName name = decode_model_name(message);
  const ModelService& model = site.inference.model(name.name);
  return encode_model_metadata(model, *Inference::version_of(model, name.version));
}

std::string model_config(const CallSite& site, onnx::Bytes message) {
  const ModelName name = decode_model_name(message);
  const ModelService& model = site.inference.model(name.name);
  return encode_model_config(model, *Inference::version_of(model, name.version));
}
// Without a name of all.
std::string model_statistics(const CallSite& site, onnx::Bytes message) {
  const ModelName name = decode_model_name(message);
  const ModelService* const model = name.name.empty() ? nullptr : &site.inference.model(name.name);
  if (model && !name.version.empty()) Inference::version_of(*model, name.version);
  return encode_model_statistics(site.inference.repository(), model);
}
std::string repository_index(const CallSite& site, onnx::Bytes message) {
  return encode_repository_index(site.inference.repository(), decode_only_ready(message));
}

using AnswerAtOnce = std::string (*)(const CallSite& site, onnx::Bytes message);

// One message, one answer. Everything that starts an operation of gRPC is the last that a function does: the
// call may be over, and this gone, before that returns.
class Call : public grpc::ServerGenericBidiReactor {
 public:
  Call(const CallSite& site, const grpc::GenericCallbackServerContext& context, const Asker& asker,
       AnswerAtOnce at_once)
      : site_(site), question_(site, asker), deadline_(deadline_of(context)), at_once_(at_once) {
    site_.busy.begin();
    StartRead(&message_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) {
      came_ = false;
      return fail({status::bad_request, "the call brings no message"});
    }
    try {
      const auto message = std::make_shared<Message>(message_, question_, site_.budget);
      message_.Clear();
      if (!at_once_) return ask(site_, message, deadline_, [this](auto answer) { tell(std::move(answer)); });
      answer_ = buffer_of(at_once_(site_, message->bytes()));
    } catch (...) {
      return fail(status_error(std::current_exception()));
    }
    send();
  }
  void OnCancel() override { cancelled_ = true; }
  void OnDone() override {
    const RequestEnd without_answer = came_ ? RequestEnd::unsent : RequestEnd::no_message;
    question_.finish(cancelled_ ? without_answer : RequestEnd::answered, cancelled_ ? 0 : status_,
                     bytes_out_);
    Busy& busy = site_.busy;
    delete this;  // with its share of the memory, before it counts as ended
    busy.end();
  }

 private:
  void fail(const StatusError& error) {
    status_ = error.status;
    Finish(status_of(error));
  }
  void send() {
    bytes_out_ = answer_.Length();
    StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void tell(Inference::Answer answer) {
    if (answer.failure) return fail(*answer.failure);
    try {
      answer_ = buffer_of(encode_infer_message(answer));
    } catch (...) {
      return fail(status_error(std::current_exception()));
    }
    held_ = std::move(answer.memory);
    send();
  }

  const CallSite site_;
  Question question_;
  const std::optional<Clock::time_point> deadline_;
  const AnswerAtOnce at_once_;  // null: a model is asked
  grpc::ByteBuffer message_, answer_;
  MemoryBudget::Share held_;
  std::atomic<bool> cancelled_ = false;
  bool came_ = true;
  int status_ = 200;
  std::size_t bytes_out_ = 0;
};

// Question after question, each answered before the next is read: a failure is an answer, too.
class StreamCall : public grpc::ServerGenericBidiReactor {
 public:
  StreamCall(const CallSite& site, Asker asker) : site_(site), asker_(std::move(asker)) {
    site_.connections.stream_began(asker_.where);
    StartRead(&message_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);  // the client has said all it wanted, or too much
    waits_ = false;
    site_.busy.begin();
    try {
      question_.emplace(site_, asker_);
      const auto message = std::make_shared<Message>(message_, *question_, site_.budget);
      message_.Clear();
      return ask(site_, message, std::nullopt, [this](auto answer) { tell(std::move(answer)); });
    } catch (...) {
      fail(status_error(std::current_exception()), {});
    }
    StartWrite(&answer_);
  }
  void OnWriteDone(bool ok) override {
    held_ = {};
    if (question_)
      question_->finish(ok ? RequestEnd::answered : RequestEnd::unsent, ok ? status_ : 0, answer_.Length());
    question_.reset();
    site_.busy.end();
    if (!ok) return Finish({grpc::StatusCode::CANCELLED, "the client is gone"});
    waits_ = true;
    StartRead(&message_);
  }
  void OnCancel() override { cancelled_ = true; }
  void OnDone() override {
    if (cancelled_ && waits_) count_cancelled();
    delete this;
  }

 private:
  // A message that the library did not take, or a client that left: it does not say.
  void count_cancelled() {
    try {
      Question(site_, asker_).finish(RequestEnd::no_message, 0);
    } catch (const StatusError&) {  // the peer's share is full: counted as that
    }
  }
  void fail(const StatusError& error, const std::string& id) {
    status_ = error.status;
    answer_ = buffer_of(encode_stream_failure(error.message, id));
  }
  void tell(Inference::Answer answer) {
    status_ = 200;
    try {
      if (answer.failure)
        fail(*answer.failure, answer.id);
      else
        answer_ = buffer_of(encode_stream_answer(encode_infer_message(answer)));
    } catch (...) {
      fail(status_error(std::current_exception()), answer.id);
    }
    held_ = std::move(answer.memory);
    StartWrite(&answer_);
  }

  const CallSite site_;
  const Asker asker_;
  std::optional<Question> question_;
  grpc::ByteBuffer message_, answer_;
  MemoryBudget::Share held_;
  std::atomic<bool> cancelled_ = false;
  bool waits_ = true;  // for a message
  int status_ = 200;
};

// One that is not let in, or asks for what there is not.
class RefusedCall : public grpc::ServerGenericBidiReactor {
 public:
  explicit RefusedCall(grpc::Status why) { Finish(std::move(why)); }
  void OnDone() override { delete this; }
};

std::string authorization_of(const grpc::GenericCallbackServerContext& context) {
  const auto found = context.client_metadata().find("authorization");
  return found == context.client_metadata().end() ? std::string()
                                                  : std::string(found->second.data(), found->second.size());
}

// What is not let in is a request, too: counted and logged.
grpc::ServerGenericBidiReactor* refused(const CallSite& site, const Asker& asker, RequestEnd end,
                                        const StatusError& why, grpc::Status status) {
  try {
    Question(site, asker).finish(end, why.status);
  } catch (const StatusError& full) {
    return new RefusedCall(status_of(full));
  }
  return new RefusedCall(std::move(status));
}

// Null: `asker` may.
grpc::ServerGenericBidiReactor* refused_by_token(const CallSite& site, Asker& asker,
                                                 const std::string& authorization, Scope scope) {
  const Tokens::Judged judged = site.door.tokens()->judge(authorization, scope);
  asker.token = judged.name;
  if (judged.verdict == Tokens::Verdict::good) return nullptr;
  const StatusError error = refusal_of(judged.verdict, scope);
  return refused(site, asker, RequestEnd::no_token, error, status_of(error));
}

}  // namespace

grpc::ServerGenericBidiReactor* InferenceCalls::CreateReactor(grpc::GenericCallbackServerContext* context) {
  ++begun_;
  static const std::map<std::string_view, AnswerAtOnce> methods{{"ServerLive", server_live},
                                                                {"ServerReady", server_ready},
                                                                {"ServerMetadata", server_metadata},
                                                                {"ModelReady", model_ready},
                                                                {"ModelMetadata", model_metadata},
                                                                {"ModelConfig", model_config},
                                                                {"ModelStatistics", model_statistics},
                                                                {"RepositoryIndex", repository_index},
                                                                {"ModelInfer", nullptr}};
  constexpr std::string_view service = "/inference.GRPCInferenceService/";
  const std::string& path = context->method();
  const std::string_view method =
      path.starts_with(service) ? std::string_view(path).substr(service.size()) : std::string_view();
  Asker asker{.where = context->peer(), .peer = peer_of(address_of(context->peer())), .method = path};
  const bool asks_model = method == "ModelInfer" || method == "ModelStreamInfer";
  const bool is_health = method == "ServerLive" || method == "ServerReady";
  if (!is_health)
    if (auto* refusal = refused_by_token(site_, asker, authorization_of(*context),
                                         asks_model ? Scope::infer : Scope::read))
      return refusal;
  if (method == "ModelStreamInfer") return new StreamCall(site_, std::move(asker));
  const auto found = methods.find(method);
  if (found == methods.end())
    return refused(site_, asker, RequestEnd::answered, {status::not_found, {}},
                   {grpc::StatusCode::UNIMPLEMENTED, fmt::format("there is no method '{}' here", path)});
  try {
    return new Call(site_, *context, asker, found->second);
  } catch (const StatusError& error) {
    return new RefusedCall(status_of(error));
  }
}

}  // namespace superstep::edge
