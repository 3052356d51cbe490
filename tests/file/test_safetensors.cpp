#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "superstep/file/safetensors.h"
#include "tests/damage.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

std::vector<std::byte> file_with(const std::string& header, std::size_t data_bytes, std::uint64_t length);
std::vector<std::byte> file_with(const std::string& header, std::size_t data_bytes) {
  return file_with(header, data_bytes, header.size());
}
std::vector<std::byte> file_with(const std::string& header, std::size_t data_bytes, std::uint64_t length) {
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>(length >> (8 * i));
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

void expect_refused(const std::string& header, std::size_t data_bytes,
                    std::initializer_list<std::string> parts, ErrorCode code = ErrorCode::bad_file) {
  expect_error(code, parts,
               [&] { parse_safetensors(file_with(header, data_bytes, header.size()), "m.safetensors"); });
}

SafetensorsFile sample_file() {
  SafetensorsFile file;
  for (const ElementType type : all_element_types)
    file.tensors[std::string("layer.") + name_of(type)] = Tensor::full(type, {2, 3}, 1);
  file.tensors["scalar"] = Tensor::scalar(2.5);
  file.tensors["empty"] = Tensor(ElementType::f32, {0, 7});
  file.metadata = {{"format", "superstep"}, {"note", "\"quoted\""}};
  return file;
}

TEST(Safetensors, EverythingComesBack) {
  const ScratchFolder folder;
  const SafetensorsFile file = sample_file();
  write_safetensors(folder / "m.safetensors", file);
  const SafetensorsFile back = read_safetensors(folder / "m.safetensors");
  EXPECT_EQ(back.metadata, file.metadata);
  ASSERT_EQ(back.tensors.size(), file.tensors.size());
  for (const auto& [name, tensor] : file.tensors) {
    const Tensor& other = back.tensors.at(name);
    EXPECT_EQ(other.type(), tensor.type());
    EXPECT_EQ(other.shape(), tensor.shape());
    EXPECT_EQ(std::memcmp(other.bytes(), tensor.bytes(), tensor.byte_count()), 0) << name;
  }
}

// The layout of the format, byte by byte.
TEST(Safetensors, LayoutIsThatOfTheFormat) {
  const std::vector<std::byte> bytes =
      format_safetensors({{{"a", Tensor::full(ElementType::u8, {2}, 9)}}, {}});
  const std::string header = R"({"a":{"data_offsets":[0,2],"dtype":"U8","shape":[2]}})";
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(bytes.size(), 8 + length + 2);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()) + 8, header.size()), header);
  EXPECT_EQ(bytes.back(), std::byte{9});
}

TEST(Safetensors, RefusalsNameTheTensor) {
  expect_refused(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
                 {"m.safetensors", "'w'", "[2]", "4 bytes"});
  expect_refused(R"({"w":{"dtype":"F9","shape":[4],"data_offsets":[0,4]}})", 4, {"'w'", "F9"},
                 ErrorCode::unsupported);
  expect_refused(R"({"w":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,5]}})", 5,
                 {"'w'", "F8_E4M3", "5 bytes"});
  expect_refused(R"({"w":{"dtype":"F4","shape":[4],"data_offsets":[0,4]}})", 4, {"'w'", "F4", "4 bytes"});
  expect_refused(R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, {"'w'", "shape"});
  expect_refused(R"({"w":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4, {"'w'", "shape"});
  expect_refused(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, {"'w'", "data_offsets"});
  expect_refused(R"({"w":{"shape":[1],"data_offsets":[0,4]}})", 4, {"'w'", "dtype"});
  expect_refused(R"({"w":7})", 4, {"'w'"});
  expect_refused(R"({"w":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]}}x)", 4, {"JSON"});
  expect_refused(R"({"__metadata__":{"a":1}})", 0, {"metadata 'a'"});
  expect_refused(R"([])", 0, {"JSON"});
}

// Every number of eight bits, by the formats' own definitions.
TEST(Safetensors, NumbersOfEightBitsAreReadAsF32) {
  const auto read = [](const char* dtype) {
    std::vector<std::byte> bytes = file_with(
        fmt::format(R"({{"w":{{"dtype":"{}","shape":[256],"data_offsets":[0,256]}}}})", dtype), 256);
    for (std::size_t i = 0; i < 256; ++i) bytes[bytes.size() - 256 + i] = static_cast<std::byte>(i);
    return parse_safetensors(bytes, "m").tensors.at("w");
  };
  const Tensor e4m3 = read("F8_E4M3"), e5m2 = read("F8_E5M2"), fnuz = read("F8_E4M3FNUZ"),
               power = read("F8_E8M0");
  ASSERT_EQ(e4m3.type(), ElementType::f32);
  EXPECT_EQ(e4m3.at(0x7e), 448);
  EXPECT_EQ(e4m3.at(0x01), std::ldexp(1, -9));
  EXPECT_EQ(e4m3.at(0xb9), -1.125);
  EXPECT_TRUE(std::isnan(e4m3.at(0x7f)) && std::isnan(e4m3.at(0xff)));
  EXPECT_TRUE(std::signbit(e4m3.at(0x80)));
  EXPECT_EQ(e5m2.at(0x7b), 57344);
  EXPECT_EQ(e5m2.at(0x01), std::ldexp(1, -16));
  EXPECT_EQ(e5m2.at(0xfc), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(e5m2.at(0x7d)));
  EXPECT_EQ(fnuz.at(0x7f), 240);
  EXPECT_TRUE(std::isnan(fnuz.at(0x80)));
  EXPECT_EQ(read("F8_E5M2FNUZ").at(0x7f), 57344);
  EXPECT_EQ(power.at(127), 1);
  EXPECT_EQ(power.at(130), 8);
  EXPECT_TRUE(std::isnan(power.at(255)));
}

// A tensor of a type that is not read hides no other one.
TEST(Safetensors, OnlyTheTensorOfAnUnreadTypeIsMissing) {
  const SafetensorsFile file = parse_safetensors(
      file_with(
          R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
          3),
      "m");
  EXPECT_EQ(file.tensors.size(), 1u);
  EXPECT_TRUE(file.tensors.contains("b"));
  EXPECT_EQ(file.unread.at("a"), "F4");
}

TEST(Safetensors, RefusesHolesOverlapsAndHugeSizes) {
  expect_refused(
      R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
      3, {"'b'", "begins at byte 1"});
  expect_refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", 3, {"'a'", "begins at byte 1"});
  expect_refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 3,
                 {"describes 2 bytes", "has 3"});
  expect_refused(R"({"a":{"dtype":"U8","shape":[9000000000000],"data_offsets":[0,9000000000000]}})", 3,
                 {"9000000000000"});
  expect_refused(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0,
                 {"'a'", "too many"});
  expect_refused(R"({"a":{"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0, {"'a'"});
  expect_error(ErrorCode::bad_file, {"cut short"}, [] { parse_safetensors(file_with("{}", 0, 1000), "m"); });
  expect_error(ErrorCode::bad_file, {"too long"}, [] { parse_safetensors(file_with("{}", 0, ~0ull), "m"); });
}

TEST(Safetensors, DamagedFilesAreReadOrRefused) {
  const std::vector<std::byte> valid = format_safetensors(sample_file());
  const Refusals refused = read_damaged(valid, [](auto bytes) { parse_safetensors(bytes, "x"); });
  EXPECT_EQ(refused.truncations, static_cast<int>(valid.size()));
  EXPECT_GT(refused.flips, 500);
}

}  // namespace
}  // namespace superstep::data
