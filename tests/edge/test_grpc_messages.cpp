// Messages of gRPC: what is understood, what is refused, and that nothing is taken in before it fits.
#include <gtest/gtest.h>

#include <cstring>

#include "superstep/edge/grpc/messages.h"
#include "superstep/edge/protocol/datatype.h"
#include "superstep/onnx/wire/wire.h"
#include "tests/expect_error.h"

namespace superstep::edge {
namespace {

using onnx::Message;

const ServedPorts floats{.inputs = {{"x", ElementType::f32, {2}}}, .outputs = {{"y", ElementType::f32, {2}}}};

Message input_of(const std::string& name, const std::string& datatype,
                 const std::vector<std::int64_t>& shape) {
  Message input;
  input.text(1, name).text(2, datatype);
  return input.packed_integers(3, shape);
}

onnx::Bytes view(const std::string& bytes) { return std::as_bytes(std::span(bytes)); }

InferRequest decode(const ServedPorts& ports, const Message& message, std::int64_t most = 100) {
  const std::string bytes = message.bytes();
  return decode_infer_message(ports, view(bytes), [&](std::int64_t rows) {
    if (rows > most) throw Error(ErrorCode::out_of_memory, "too many");
  });
}

std::string raw_floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

TEST(GrpcMessages, TensorsAreRawOrTyped) {
  const std::vector<float> values{1, -2, 3.5, 4};
  Message raw;
  raw.text(1, "m").text(2, "v").text(3, "id").message(5, input_of("x", "FP32", {2, 2}));
  raw.text(7, raw_floats(values));
  Message typed;
  typed.text(1, "m").message(5, input_of("x", "FP32", {2, 2}).message(5, Message().packed_reals(6, values)));
  for (const Message& message : {raw, typed}) {
    const InferRequest request = decode(floats, message);
    EXPECT_EQ(request.rows, 2);
    const auto read = request.inputs.at(0).as<float>();
    EXPECT_EQ(std::vector<float>(read.begin(), read.end()), values);
    ASSERT_EQ(request.outputs.size(), 1U);
  }
  EXPECT_EQ(decode(floats, raw).id, "id");
  const std::string bytes = raw.bytes();
  EXPECT_EQ(decode_model_name(view(bytes)).name, "m");
  EXPECT_EQ(decode_model_name(view(bytes)).version, "v");
}

template <class T>
void expect_typed(ElementType type, int field, const std::vector<std::int64_t>& values) {
  const ServedPorts ports{
      .batched = false, .inputs = {{"x", type, {static_cast<std::int64_t>(values.size())}}}, .outputs = {}};
  const Message message =
      Message().message(5, input_of("x", datatype_of(type), {static_cast<std::int64_t>(values.size())})
                               .message(5, Message().packed_integers(field, values)));
  const InferRequest request = decode(ports, message);
  const auto read = request.inputs.at(0).as<T>();
  ASSERT_EQ(read.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(read[i], static_cast<T>(values[i]));
}

TEST(GrpcMessages, EveryTypeHasItsField) {
  expect_typed<std::int8_t>(ElementType::i8, 2, {-128, 127});
  expect_typed<std::int16_t>(ElementType::i16, 2, {-32768, 5});
  expect_typed<std::int32_t>(ElementType::i32, 2, {-5, 1 << 30});
  expect_typed<std::int64_t>(ElementType::i64, 3, {INT64_MIN, INT64_MAX});
  expect_typed<std::uint8_t>(ElementType::u8, 4, {0, 255});
  expect_typed<std::uint16_t>(ElementType::u16, 4, {65535});
  expect_typed<std::uint32_t>(ElementType::u32, 4, {4294967295});
  expect_typed<std::uint64_t>(ElementType::u64, 5, {-1});
  expect_typed<bool>(ElementType::boolean, 1, {1, 0, 1});
}

TEST(GrpcMessages, NumbersBeyondTheirTypeAreRefused) {
  for (const auto& [type, field, value] : {std::tuple(ElementType::i8, 2, std::int64_t{128}),
                                           {ElementType::u8, 4, 256},
                                           {ElementType::u16, 4, -1}}) {
    const ServedPorts ports{.batched = false, .inputs = {{"x", type, {1}}}, .outputs = {}};
    const std::int64_t one[] = {value};
    const Message message = Message().message(
        5, input_of("x", datatype_of(type), {1}).message(5, Message().packed_integers(field, one)));
    expect_error(ErrorCode::invalid_argument, {"which is no", datatype_of(type)},
                 [&] { decode(ports, message); });
  }
}

TEST(GrpcMessages, WhatDoesNotFitIsRefused) {
  const auto refused = [](const Message& message, const std::string& part) {
    expect_error(ErrorCode::invalid_argument, {part}, [&] { decode(floats, message); });
  };
  const std::string two = raw_floats({1, 2});
  refused(Message(), "is missing");
  refused(Message().message(5, input_of("z", "FP32", {1, 2})).text(7, two), "no input 'z'");
  refused(Message().message(5, input_of("x", "FP64", {1, 2})).text(7, two), "takes FP32");
  refused(Message().message(5, input_of("x", "FP32", {1, 3})).text(7, two), "takes [N,2]");
  refused(Message().message(5, input_of("x", "FP32", {0, 2})).text(7, ""), "takes [N,2]");
  refused(Message().message(5, input_of("x", "FP32", {2, 2})).text(7, two), "has 8 bytes");
  refused(Message().message(5, input_of("x", "FP32", {1, 2})), "has 0 values");
  refused(Message().message(5, input_of("x", "FP32", {1, 2})).text(7, two).text(7, two), "more raw_input");
  refused(Message().message(5, input_of("x", "FP32", {1, 2})).message(5, input_of("x", "FP32", {1, 2})),
          "more inputs");
  refused(Message().message(5, input_of("x", "FP32", std::vector<std::int64_t>(33, 1))), "at most 32");
  const Message shared = Message().text(1, "shared_memory_region").message(2, Message().text(3, "r"));
  refused(Message().message(5, input_of("x", "FP32", {1, 2}).message(4, shared)), "shared memory");
  refused(Message().text(3, std::string(2000, 'a')), "1024 bytes");
  refused(Message().message(5, input_of("x", "FP32", {1, 2})).message(6, Message().text(1, "z")).text(7, two),
          "no output 'z'");
  const std::string cut = Message().message(5, input_of("x", "FP32", {1, 2})).bytes();
  for (std::size_t size = 1; size < cut.size(); ++size)
    expect_error(ErrorCode::invalid_argument, {},
                 [&] { decode_infer_message(floats, view(cut).first(size), [](std::int64_t) {}); });
}

TEST(GrpcMessages, RowsAreAdmittedBeforeMemoryIsTaken) {
  // The message of forty bytes says rows for an exabyte.
  expect_error(ErrorCode::out_of_memory, {"too many"}, [&] {
    decode(floats, Message().message(5, input_of("x", "FP32", {std::int64_t{1} << 57, 2})).text(7, ""));
  });
}

TEST(GrpcMessages, ATimeoutIsAskedFor) {
  const auto with = [](std::int64_t microseconds) {
    const Message entry = Message().text(1, "timeout").message(2, Message().integer(2, microseconds));
    return Message().message(4, entry).message(5, input_of("x", "FP32", {1, 2})).text(7, raw_floats({1, 2}));
  };
  EXPECT_EQ(decode(floats, with(250)).timeout, std::chrono::microseconds(250));
  EXPECT_FALSE(decode(floats, with(0)).timeout);
  expect_error(ErrorCode::invalid_argument, {"timeout"}, [&] { decode(floats, with(-1)); });
}

}  // namespace
}  // namespace superstep::edge
