// Models over gRPC: a client of this house asks, streams, goes too far and goes away.
#include <gtest/gtest.h>

#include "superstep/edge/grpc/server.h"
#include "superstep/edge/load/load.h"
#include "tests/edge/given_back.h"
#include "tests/edge/models.h"
#include "tests/expect_error.h"

#ifdef SUPERSTEP_HAS_GRPC
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <future>

#include "superstep/onnx/wire/wire.h"
#include "superstep/onnx/wire/wire_reader.h"
#include "tests/contains.h"
#include "tests/edge/client.h"
#endif

namespace superstep::edge {
namespace {

struct Served {
  explicit Served(const ServiceSettings& service = small_service(), std::size_t memory = 1 << 28,
                  DoorSettings at_the_door = {})
      : budget(memory), door(std::move(at_the_door)), inference(repository, budget, Nanoseconds(0)) {
    repository.add(std::make_unique<ModelService>("m", ModelSource{.what = "mlp"}, service));
    repository.open();
  }
  std::unique_ptr<GrpcServer> start(GrpcSettings settings = {}) {
    settings.port = 0;
    return start_grpc_server(settings, inference, budget, door);
  }
  Account account() const { return repository.find("m")->batcher().account(); }
  ServedPort port() const { return repository.find("m")->current()->ports().inputs[0]; }

  MemoryBudget budget;
  Door door;
  Repository repository;
  Inference inference;
};

#ifndef SUPERSTEP_HAS_GRPC

TEST(Grpc, IsSaidToBeAbsent) {
  Served served;
  expect_error(ErrorCode::unsupported, {"built without gRPC", "libgrpc++-dev"}, [&] { served.start(); });
  expect_error(ErrorCode::unsupported, {"built without gRPC"}, [&] { open_target("grpc://127.0.0.1:1/m"); });
}

#else

using onnx::FieldReader;
using onnx::Message;

onnx::Bytes view(const std::string& bytes) { return std::as_bytes(std::span(bytes)); }

grpc::ByteBuffer buffer_of(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}
std::string text_of(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  return buffer.DumpToSingleSlice(&slice).ok()
             ? std::string(reinterpret_cast<const char*>(slice.begin()), slice.size())
             : "";
}

std::shared_ptr<grpc::Channel> channel_to(std::uint16_t port) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
  return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(),
                                   arguments);
}

std::string method(const std::string& name) { return "/inference.GRPCInferenceService/" + name; }

struct Reply {
  grpc::Status status;
  std::string message;
};

class Client {
 public:
  explicit Client(std::uint16_t port) : stub_(channel_to(port)) {}

  Reply call(const std::string& path, const std::string& message,
             std::chrono::milliseconds patience = std::chrono::seconds(30), const std::string& header = {}) {
    grpc::ClientContext context;
    if (!header.empty()) context.AddMetadata("x-header", header);
    context.set_deadline(std::chrono::system_clock::now() + patience);
    const grpc::ByteBuffer request = buffer_of(message);
    grpc::ByteBuffer response;
    std::promise<grpc::Status> done;
    stub_.UnaryCall(&context, path, {}, &request, &response,
                    [&](grpc::Status status) { done.set_value(std::move(status)); });
    Reply reply{.status = done.get_future().get(), .message = {}};
    if (reply.status.ok()) reply.message = text_of(response);
    return reply;
  }
  grpc::GenericStub& stub() { return stub_; }

 private:
  grpc::GenericStub stub_;
};

std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  RandomStream(4, 0).fill_uniform(values, -1, 1);
  return values;
}

std::string infer_message(const Served& served, std::int64_t rows, const std::string& model = "m",
                          const std::string& id = "7") {
  const ServedPort port = served.port();
  std::vector<std::int64_t> shape = port.shape.extents();
  shape.insert(shape.begin(), rows);
  const std::vector<float> values = numbers(static_cast<std::size_t>(rows * port.shape.element_count()));
  Message input;
  input.text(1, port.name).text(2, "FP32").packed_integers(3, shape);
  Message message;
  message.text(1, model).text(3, id).message(5, input);
  return message.text(7, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)})
      .bytes();
}

struct InferReply {
  std::string id, version;
  std::vector<float> values;
};

InferReply read_infer(const std::string& message) {
  InferReply reply;
  for (FieldReader fields(view(message), "answer"); fields.next();) {
    if (fields.field() == 2) reply.version = fields.text();
    if (fields.field() == 3) reply.id = fields.text();
    if (fields.field() != 6) continue;
    reply.values.resize(fields.bytes().size() / sizeof(float));
    std::memcpy(reply.values.data(), fields.bytes().data(), fields.bytes().size());
  }
  return reply;
}

// What the model says, without a network.
std::vector<float> said_by_the_model(const Served& served, std::int64_t rows) {
  ModelService& service = *served.repository.find("m");
  const JobPointer job = make_job(service.current(), rows);
  const std::vector<float> values = numbers(job->inputs[0].as<float>().size());
  std::ranges::copy(values, job->inputs[0].as<float>().begin());
  std::promise<void> done;
  job->done = [&](Job&, Outcome, const std::string&) { done.set_value(); };
  EXPECT_TRUE(service.batcher().submit(job));
  done.get_future().wait();
  const auto outputs = job->outputs[0].as<float>();
  return {outputs.begin(), outputs.end()};
}

TEST(Grpc, SpeaksTheProtocol) {
  Served served;
  const auto server = served.start({.server_version = "9.9"});
  Client client(server->port());
  const std::string yes{'\x08', '\x01'}, no{'\x08', '\0'};
  EXPECT_EQ(client.call(method("ServerLive"), "").message, yes);
  EXPECT_EQ(client.call(method("ServerReady"), "").message, yes);
  EXPECT_EQ(client.call(method("ModelReady"), Message().text(1, "m").bytes()).message, yes);
  EXPECT_EQ(client.call(method("ModelReady"), Message().text(1, "m").text(2, "12").bytes()).message, no);
  EXPECT_TRUE(contains(client.call(method("ServerMetadata"), "").message, "9.9"));
  const Reply metadata = client.call(method("ModelMetadata"), Message().text(1, "m").bytes());
  ASSERT_TRUE(metadata.status.ok()) << metadata.status.error_message();
  EXPECT_TRUE(contains(metadata.message, served.port().name));
  EXPECT_TRUE(contains(metadata.message, "FP32"));
  const Reply reply = client.call(method("ModelInfer"), infer_message(served, 5));
  ASSERT_TRUE(reply.status.ok()) << reply.status.error_message();
  const InferReply answer = read_infer(reply.message);
  EXPECT_EQ(answer.id, "7");
  EXPECT_EQ(answer.version, served.repository.find("m")->current()->id());
  EXPECT_EQ(answer.values, said_by_the_model(served, 5));
}

// The last field of that number; "" and -1: there is none.
std::string text_in(const std::string& message, int field) {
  std::string text;
  for (FieldReader reader(view(message), "answer"); reader.next();)
    if (reader.field() == field) text = reader.text();
  return text;
}
std::int64_t number_in(const std::string& message, int field) {
  std::int64_t number = -1;
  for (FieldReader reader(view(message), "answer"); reader.next();)
    if (reader.field() == field) number = reader.integer();
  return number;
}

TEST(Grpc, SaysWhatModelsAre) {
  Served served;
  const auto server = served.start();
  Client client(server->port());
  const Reply reply = client.call(method("ModelConfig"), Message().text(1, "m").bytes());
  ASSERT_TRUE(reply.status.ok()) << reply.status.error_message();
  const std::string config = text_in(reply.message, 1), input = text_in(config, 5);
  EXPECT_EQ(text_in(config, 1), "m");
  EXPECT_EQ(number_in(config, 4), served.repository.find("m")->current()->max_batch());
  EXPECT_EQ(text_in(input, 1), served.port().name);
  EXPECT_EQ(number_in(input, 2), 11) << "TYPE_FP32";
  const Message other_version = Message().text(1, "m").text(2, "12");
  EXPECT_EQ(client.call(method("ModelConfig"), other_version.bytes()).status.error_code(),
            grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(text_in(text_in(client.call(method("RepositoryIndex"), "").message, 1), 3), "READY");
  served.repository.find("m")->unload();
  EXPECT_EQ(text_in(text_in(client.call(method("RepositoryIndex"), "").message, 1), 3), "UNAVAILABLE");
  EXPECT_EQ(client.call(method("RepositoryIndex"), Message().integer(2, 1).bytes()).message, "")
      << "of those that are ready there is none";
  EXPECT_EQ(client.call(method("RepositoryIndex"), "\x2a\x7f").status.error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(Grpc, SaysWhatModelsDid) {
  Served served;
  const auto server = served.start();
  Client client(server->port());
  ASSERT_TRUE(client.call(method("ModelInfer"), infer_message(served, 5)).status.ok());
  for (const char* name : {"m", ""}) {
    const Reply reply = client.call(method("ModelStatistics"), Message().text(1, name).bytes());
    ASSERT_TRUE(reply.status.ok()) << reply.status.error_message();
    const std::string statistics = text_in(reply.message, 1);
    EXPECT_EQ(text_in(statistics, 1), "m");
    EXPECT_EQ(text_in(statistics, 2), served.repository.find("m")->current()->id());
    EXPECT_EQ(number_in(statistics, 4), 5) << "rows";
    EXPECT_EQ(number_in(text_in(text_in(statistics, 6), 1), 1), 1) << "requests that were answered";
  }
  EXPECT_EQ(client.call(method("ModelStatistics"), Message().text(1, "n").bytes()).status.error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST(Grpc, SaysWhatIsWrong) {
  Served served;
  const auto server = served.start({.most_message_bytes = 1 << 16});
  Client client(server->port());
  const auto expect = [&](grpc::StatusCode code, const std::string& part, const std::string& path,
                          const std::string& message) {
    const Reply reply = client.call(path, message);
    EXPECT_EQ(reply.status.error_code(), code) << reply.status.error_message();
    EXPECT_TRUE(contains(reply.status.error_message(), part));
  };
  expect(grpc::StatusCode::UNIMPLEMENTED, "Nothing", method("Nothing"), "");
  expect(grpc::StatusCode::UNIMPLEMENTED, "other", "/other.Service/ModelInfer", "");
  expect(grpc::StatusCode::NOT_FOUND, "'n'", method("ModelMetadata"), Message().text(1, "n").bytes());
  expect(grpc::StatusCode::NOT_FOUND, "'n'", method("ModelInfer"), infer_message(served, 1, "n"));
  expect(grpc::StatusCode::INVALID_ARGUMENT, "is missing", method("ModelInfer"),
         Message().text(1, "m").bytes());
  expect(grpc::StatusCode::INVALID_ARGUMENT, "", method("ModelInfer"), "\x2a\x7f");
  expect(grpc::StatusCode::RESOURCE_EXHAUSTED, "", method("ModelInfer"),
         Message().text(1, std::string(1 << 17, 'x')).bytes());
  EXPECT_TRUE(client.call(method("ModelInfer"), infer_message(served, 1)).status.ok());
  const Account account = served.account();
  EXPECT_TRUE(account.balances());
  EXPECT_EQ(account.of(Outcome::served).requests, 1U);
  // A client may have its answer before the call has ended here.
  server->finish(std::chrono::steady_clock::now() + std::chrono::seconds(10));
  expect_all_given_back(served.budget);
}

TEST(Grpc, TakesNoMoreMemoryThanThereIs) {
  Served served(small_service(), 2000);
  const auto server = served.start();
  Client client(server->port());
  const Reply reply = client.call(method("ModelInfer"), infer_message(served, 16));
  EXPECT_EQ(reply.status.error_code(), grpc::StatusCode::UNAVAILABLE) << reply.status.error_message();
  EXPECT_TRUE(contains(reply.status.error_message(), "no memory left"));
  server->finish(std::chrono::steady_clock::now() + std::chrono::seconds(10));
  EXPECT_EQ(served.budget.left(), 2000U);
}

// A stream of questions, all of which are written before the answers are read.
class Stream : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Stream(Client& client, std::vector<std::string> questions) : questions_(std::move(questions)) {
    client.stub().PrepareBidiStreamingCall(&context_, method("ModelStreamInfer"), {}, this);
    StartRead(&answer_);
    write();
    StartCall();
  }
  void OnWriteDone(bool ok) override {
    if (ok) write();
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    answers_.push_back(text_of(answer_));
    StartRead(&answer_);
  }
  void OnDone(const grpc::Status& status) override { done_.set_value(status); }
  std::vector<std::string> answers() {
    const grpc::Status status = done_.get_future().get();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return answers_;
  }
  grpc::StatusCode code() { return done_.get_future().get().error_code(); }

 private:
  void write() {
    if (next_ == questions_.size()) return StartWritesDone();
    question_ = buffer_of(questions_[next_++]);
    StartWrite(&question_);
  }
  std::vector<std::string> questions_, answers_;
  std::size_t next_ = 0;
  grpc::ClientContext context_;
  grpc::ByteBuffer question_, answer_;
  std::promise<grpc::Status> done_;
};

TEST(Grpc, StreamsAnswersInTheirOrder) {
  Served served;
  const auto server = served.start();
  Client client(server->port());
  std::vector<std::string> questions;
  for (int i = 0; i < 20; ++i)
    questions.push_back(i == 7 ? infer_message(served, 1, "n", std::to_string(i))
                               : infer_message(served, 1 + i % 3, "m", std::to_string(i)));
  const std::vector<std::string> answers = Stream(client, questions).answers();
  ASSERT_EQ(answers.size(), 20U);
  for (int i = 0; i < 20; ++i) {
    std::string failure, message;
    for (FieldReader fields(view(answers[static_cast<std::size_t>(i)]), "answer"); fields.next();)
      (fields.field() == 1 ? failure : message) = fields.text();
    if (i == 7) {
      EXPECT_TRUE(contains(failure, "'n'"));
      continue;
    }
    EXPECT_EQ(failure, "");
    EXPECT_EQ(read_infer(message).id, std::to_string(i));
    EXPECT_EQ(read_infer(message).values, said_by_the_model(served, 1 + i % 3));
  }
}

TEST(Grpc, AClientsDeadlineIsKept) {
  ServiceSettings slow = small_service(1);
  slow.batcher.max_delay = std::chrono::milliseconds(600);  // an idle worker waits for more
  Served served(slow);
  const auto server = served.start();
  Client client(server->port());
  const Reply reply =
      client.call(method("ModelInfer"), infer_message(served, 1), std::chrono::milliseconds(150));
  EXPECT_EQ(reply.status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  for (int i = 0; i < 500 && served.account().of(Outcome::expired).requests == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(served.account().of(Outcome::expired).requests, 1U);
  EXPECT_TRUE(served.account().balances());
}

TEST(Grpc, WhatIsAskedIsAnsweredBeforeTheEnd) {
  ServiceSettings slow = small_service(1);
  slow.batcher.max_delay = std::chrono::milliseconds(200);
  Served served(slow);
  const auto server = served.start();
  Client client(server->port());
  auto reply = std::async(std::launch::async,
                          [&] { return client.call(method("ModelInfer"), infer_message(served, 1)); });
  while (served.account().received.requests == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const Reply refused = [&] {
    served.repository.drain(Clock::now() + std::chrono::seconds(10));
    return client.call(method("ModelInfer"), infer_message(served, 1));
  }();
  server->finish(Clock::now() + std::chrono::seconds(10));
  EXPECT_TRUE(reply.get().status.ok());
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  expect_all_given_back(served.budget);
}

// A client of this house: what it says was answered is what the server counts; a server that goes is missed.
TEST(Grpc, IsPutUnderLoad) {
  Served served;
  auto server = served.start();
  const std::string where = "grpc://127.0.0.1:" + std::to_string(server->port());
  const LoadTarget target = open_target(where + "/m");
  ASSERT_EQ(target.inputs.size(), 1U);
  EXPECT_EQ(target.inputs[0].name, served.port().name);
  EXPECT_EQ(target.version, served.repository.find("m")->current()->id());
  EXPECT_EQ(target.inputs[0].extents[0], -1);
  std::uint64_t all = 0;
  for (const double rate : {0.0, 300.0}) {
    const LoadReport report =
        apply_load(target, {.rate = rate, .connections = 4, .rows = 3, .warm_up = 0, .seconds = 0.5});
    EXPECT_EQ(report.unanswered, 0U);
    ASSERT_EQ(report.statuses.size(), 1U);
    EXPECT_GT(report.statuses.at(200), 50U);
    EXPECT_EQ(report.latencies.size(), report.statuses.at(200));
    all += report.statuses.at(200);
  }
  EXPECT_EQ(served.account().of(Outcome::served).requests, all);
  EXPECT_EQ(served.account().of(Outcome::served).rows, 3 * all);
  expect_error(ErrorCode::not_found, {"'n'"}, [&] { open_target(where + "/n"); });
  expect_error(ErrorCode::invalid_argument, {"grpc://HOST:PORT/NAME"}, [&] { open_target(where); });
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    server->finish(Clock::now());
  });
  const LoadReport report = apply_load(target, {.connections = 4, .warm_up = 0, .seconds = 60});
  end.join();
  EXPECT_GE(report.statuses.at(0), 1U) << "it ends when nobody is left to ask";
}

// --- what becomes of connections, and of calls that never come so far as to a method

// The account once `is_so`, or as it is after twenty seconds.
DoorAccount account_when(const Served& served, const std::function<bool(const DoorAccount&)>& is_so) {
  for (int i = 0; i < 2000 && !is_so(served.door.grpc.account()); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return served.door.grpc.account();
}
void expect_end(const Served& served, ConnectionEnd end, std::uint64_t count) {
  EXPECT_EQ(account_when(served, [&](const auto& account) { return account.of(end) >= count; }).of(end),
            count)
      << name_of(end);
}

TEST(Grpc, EveryConnectionEndsInOneCounter) {
  Served served;
  const auto server = served.start(
      {.handshake_time = std::chrono::milliseconds(400), .idle_time = std::chrono::milliseconds(3000)});
  Client idle(server->port());
  EXPECT_TRUE(idle.call(method("ServerLive"), "").status.ok());
  for (int i = 0; i < 5; ++i) {
    Client client(server->port());
    EXPECT_TRUE(client.call(method("ModelInfer"), infer_message(served, 1)).status.ok());
  }
  expect_end(served, ConnectionEnd::closed, 5);
  RawClient(server->port()).send("G");  // and leaves
  RawClient other_tongue(server->port());
  other_tongue.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  expect_end(served, ConnectionEnd::no_call, 2);
  RawClient silent(server->port());
  expect_end(served, ConnectionEnd::slow, 1);
  EXPECT_TRUE(silent.is_closed(20'000));
  expect_end(served, ConnectionEnd::idle, 1);
  Client last(server->port());
  EXPECT_TRUE(last.call(method("ServerLive"), "").status.ok());
  EXPECT_EQ(served.door.grpc.account().open, 1U);
  server->finish(Clock::now() + std::chrono::seconds(10));
  const DoorAccount account = served.door.grpc.account();
  EXPECT_EQ(account.of(ConnectionEnd::stopped), 1U);
  EXPECT_EQ(account.open, 0U);
  EXPECT_EQ(account.connections, 10U);
  EXPECT_TRUE(account.balances());
  EXPECT_EQ(served.door.peers.connections_of("127.0.0.1"), 0U);
}

TEST(Grpc, WhoLeavesBeforeTheAnswerIsLost) {
  ServiceSettings slow = small_service(1);
  slow.batcher.max_delay = std::chrono::milliseconds(600);
  Served served(slow);
  const auto server = served.start();
  {
    Client client(server->port());
    EXPECT_EQ(client.call(method("ModelInfer"), infer_message(served, 1), std::chrono::milliseconds(100))
                  .status.error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  expect_end(served, ConnectionEnd::lost, 1);
  server->finish(Clock::now() + std::chrono::seconds(10));
  EXPECT_EQ(served.door.grpc.account().of(RequestEnd::unsent), 1U);
  EXPECT_TRUE(served.door.grpc.account().balances());
}

TEST(Grpc, WhatTheLibraryRefusesIsCounted) {
  Served served;
  const auto server = served.start({.most_message_bytes = 1 << 16});
  Client client(server->port());
  EXPECT_TRUE(client.call(method("ServerLive"), "").status.ok());
  // A connection may end over it: what then never came to the server is asked again.
  const auto ask_with_a_large_header = [&] {
    Reply reply;
    do reply = client.call(method("ServerLive"), "", std::chrono::seconds(30), std::string(1 << 15, 'x'));
    while (reply.status.error_code() == grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(reply.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  };
  for (int i = 0; i < 3; ++i) ask_with_a_large_header();
  const auto refused = [](const DoorAccount& account) { return account.of(RequestEnd::not_begun) >= 3; };
  EXPECT_EQ(account_when(served, refused).of(RequestEnd::not_begun), 3U) << "while it serves";
  const std::string large = Message().text(1, std::string(1 << 17, 'x')).bytes();
  EXPECT_EQ(client.call(method("ModelInfer"), large).status.error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  Stream stream(client, {infer_message(served, 1), large});
  EXPECT_EQ(stream.code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ask_with_a_large_header();
  server->finish(Clock::now() + std::chrono::seconds(10));
  const DoorAccount account = served.door.grpc.account();
  EXPECT_EQ(account.of(RequestEnd::not_begun), 4U) << "at the end";
  EXPECT_EQ(account.of(RequestEnd::no_message), 2U);
  EXPECT_EQ(account.of(RequestEnd::answered), 2U);
  EXPECT_EQ(account.requests, 8U);
  EXPECT_TRUE(account.balances());
}

TEST(Grpc, OneAddressDoesNotShutOutTheOthers) {
  Served served(small_service(), 1 << 28, {.peers = {.connections = 8}});
  const auto server = served.start({.most_connections = 16});
  std::vector<std::unique_ptr<RawClient> > silent;
  for (int i = 0; i < 100; ++i) silent.push_back(std::make_unique<RawClient>(server->port(), 2 + i % 3));
  Client client(server->port());
  EXPECT_TRUE(client.call(method("ModelInfer"), infer_message(served, 1)).status.ok());
  const DoorAccount now =
      account_when(served, [](const auto& account) { return account.of(ConnectionEnd::made_room) >= 85; });
  EXPECT_EQ(now.of(ConnectionEnd::made_room), 85U);
  EXPECT_EQ(now.open, 16U);
  EXPECT_LE(served.door.peers.connections_of("127.0.0.2"), 8U);
  EXPECT_TRUE(client.call(method("ServerLive"), "").status.ok()) << "who was served keeps its place";
  server->finish(Clock::now() + std::chrono::seconds(10));
  EXPECT_TRUE(served.door.grpc.account().balances());
}

TEST(Grpc, NobodyAtWorkGivesWay) {
  ServiceSettings slow = small_service(1);
  slow.batcher.max_delay = std::chrono::milliseconds(1500);
  Served served(slow);
  const auto server = served.start({.most_connections = 1});
  Client client(server->port());
  auto reply = std::async(std::launch::async,
                          [&] { return client.call(method("ModelInfer"), infer_message(served, 1)); });
  while (served.account().received.requests == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  RawClient refused(server->port());
  EXPECT_TRUE(refused.is_closed(20'000));
  expect_end(served, ConnectionEnd::full, 1);
  EXPECT_TRUE(reply.get().status.ok());
}

TEST(Grpc, AnAddressThatIsTakenIsAnError) {
  Served served;
  const auto server = served.start();
  expect_error(ErrorCode::io, {"cannot be listened at", "--grpc"}, [&] {
    start_grpc_server({.port = server->port()}, served.inference, served.budget, served.door);
  });
}

#endif

}  // namespace
}  // namespace superstep::edge
