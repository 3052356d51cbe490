#include "superstep/onnx/wire/wire_reader.h"
#include "tests/onnx/support.h"

namespace superstep::onnx {
namespace {

using testing::contains;
using testing::error_of;

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Reads everything there is to read; gives the error.
std::string damage(const std::string& text) {
  return error_of([&] {
    for (FieldReader reader(bytes_of(text), "Thing"); reader.next();) {
    }
  });
}

TEST(WireReader, ReadsWhatTheWriterWrites) {
  const std::vector<std::int64_t> integers{0, 1, -1, 300, INT64_MIN, INT64_MAX};
  const std::vector<float> reals{0, -1.5f, 3e38f};
  Message message;
  message.integer(1, -7).real(2, 0.25f).text(3, "name").packed_integers(4, integers).packed_reals(5, reals);
  const std::string bytes = message.bytes();
  FieldReader reader(bytes_of(bytes), "Thing");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.field(), 1);
  EXPECT_EQ(reader.integer(), -7);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.real(), 0.25f);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.text(), "name");
  ASSERT_TRUE(reader.next());
  std::vector<std::int64_t> read_integers;
  reader.append(read_integers);
  EXPECT_EQ(read_integers, integers);
  ASSERT_TRUE(reader.next());
  std::vector<float> read_reals;
  reader.append(read_reals);
  EXPECT_EQ(read_reals, reals);
  EXPECT_FALSE(reader.next());
}

TEST(WireReader, WhatStaysInPlaceIsWrittenLikeACopy) {
  const std::string large = "elements", more = "others";
  const auto outer = [&](Message& (Message::*add)(int, std::string_view)) {
    Message inner, first, message;
    (inner.integer(1, 7).*add)(2, large).text(3, "after");
    (first.*add)(9, more);
    message.text(1, "before").message(2, inner);
    (message.message(3, inner).*add)(4, more);
    return message.message(5, first);
  };
  const Message copied = outer(&Message::text), in_place = outer(&Message::text_in_place);
  EXPECT_EQ(in_place.bytes(), copied.bytes());
  EXPECT_EQ(in_place.size(), copied.bytes().size());
  EXPECT_EQ(in_place.pieces()[1].data(), large.data());
}

TEST(WireReader, NumbersOneAFieldAreReadLikePackedOnes) {
  std::vector<std::int64_t> values;
  const std::string bytes = Message().integer(8, 4).integer(8, 5).bytes();
  for (FieldReader reader(bytes_of(bytes), "Thing"); reader.next();) reader.append(values);
  EXPECT_EQ(values, (std::vector<std::int64_t>{4, 5}));
}

TEST(WireReader, RefusesEveryCutOfAMessage) {
  const std::string whole = Message().text(3, "name").real(2, 1).bytes();
  ASSERT_EQ(damage(whole), "");
  for (std::size_t size : {1u, 2u, 5u, 7u, 9u, 10u}) EXPECT_NE(damage(whole.substr(0, size)), "") << size;
}

TEST(WireReader, RefusesLengthsBeyondTheEnd) {
  EXPECT_TRUE(contains(damage(std::string("\x0a\x05") + "abc"), "claims 5 bytes where 3 are left"));
  // 2^64 - 1: a length that would wrap around.
  EXPECT_TRUE(
      contains(damage("\x0a" + std::string(9, '\xff') + "\x01"), "claims 18446744073709551615 bytes"));
}

TEST(WireReader, RefusesNumbersOfMoreThan64Bits) {
  EXPECT_TRUE(contains(damage("\x08" + std::string(10, '\xff') + "\x01"), "more than 64 bits"));
}

TEST(WireReader, RefusesGroupsAndFieldNumberZero) {
  EXPECT_TRUE(contains(damage("\x0b"), "wire type that ONNX does not use"));
  EXPECT_TRUE(contains(damage(std::string("\x00\x00", 2)), "field number that cannot be"));
}

TEST(WireReader, RefusesOtherKindsThanAsked) {
  const std::string text = Message().text(1, "abc").bytes(), number = Message().integer(1, 3).bytes();
  const auto first = [](const std::string& bytes) {
    FieldReader reader(bytes_of(bytes), "Thing");
    reader.next();
    return reader;
  };
  EXPECT_TRUE(contains(error_of([&] { first(text).integer(); }), "Thing (field 1) should hold an integer"));
  EXPECT_TRUE(contains(error_of([&] { first(number).text(); }), "should hold text"));
  EXPECT_TRUE(contains(error_of([&] { first(text).real(); }), "should hold a 32-bit number"));
  std::vector<float> reals;
  EXPECT_TRUE(contains(error_of([&] { first(text).append(reals); }), "cut off"));
}

}  // namespace
}  // namespace superstep::onnx
