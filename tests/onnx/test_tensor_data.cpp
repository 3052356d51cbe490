#include <chrono>
#include <cmath>
#include <fstream>

#include "superstep/base/file.h"
#include "superstep/onnx/wire/element.h"
#include "superstep/onnx/wire/tensor_data.h"
#include "tests/onnx/support.h"
#include "tests/scratch.h"

namespace superstep::onnx {
namespace {

using testing::contains;
using testing::elements;
using testing::error_of;
namespace fs = std::filesystem;

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

Tensor read(const Message& message, const fs::path& folder = {}) {
  return read_tensor(parse_tensor(bytes_of(message.bytes())), ExternalData(folder));
}
std::string refusal(const Message& message, const fs::path& folder = {}) {
  return error_of([&] { read(message, folder); });
}

// The model's folder inside another one, where it has no business.
class Folder {
 public:
  Folder() { fs::create_directories(model()); }
  fs::path model() const { return scratch_ / "model"; }
  fs::path outside() const { return scratch_ / ""; }

 private:
  ScratchFolder scratch_;
};

TEST(TensorData, RawOfEveryType) {
  for (ElementType type : all_element_types) {
    for (std::int64_t number = 1; number <= 16; ++number) {
      if (element_type(number) != type) continue;
      Tensor original(type, {3});
      for (int i = 0; i < 3; ++i) original.set(i, i == 1 ? 1 : 0);
      const std::string raw(reinterpret_cast<const char*>(original.bytes()), original.byte_count());
      const Tensor back = read(testing::tensor("t", number, {3}, raw));
      EXPECT_EQ(back.type(), type);
      EXPECT_EQ(elements(back), elements(original)) << name_of(type);
    }
  }
}

// As often as they are asked for, and after whoever opened the file has gone.
TEST(TensorData, LargeOnesStayInTheFileUntilTheyAreRead) {
  constexpr std::int64_t count = 50'000;
  std::vector<float> values(count);
  for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i) / 7;
  const ScratchFolder folder;
  std::ofstream(folder / "tensor", std::ios::binary) << testing::floats("t", {count}, values).bytes();
  Tensor tensor;
  {
    const auto file = std::make_shared<MappedFile>(folder / "tensor");
    tensor = read_tensor_later(parse_tensor(file->bytes()), ExternalData(fs::path()), file);
  }
  for (int i = 0; i < 2; ++i) {
    std::vector<float> copy(count);
    tensor.copy_to(reinterpret_cast<std::byte*>(copy.data()));
    EXPECT_EQ(copy, values);
  }
  EXPECT_EQ(elements(tensor), elements(Tensor::from({count}, values)));
}

// Whoever changes a file that others read gets them an error, and does not end them.
TEST(TensorData, LargeOnesOfAFileThatWasChangedAreRefusedWhenTheyAreRead) {
  constexpr std::int64_t count = 50'000;
  const std::string text = testing::floats("t", {count}, std::vector<float>(count, 3)).bytes();
  const ScratchFolder folder;
  for (const bool shorter : {true, false}) {
    std::ofstream(folder / "tensor", std::ios::binary) << text;
    const auto file = std::make_shared<const MappedFile>(folder / "tensor");
    const Tensor tensor = read_tensor_later(parse_tensor(file->bytes()), ExternalData(fs::path()), file);
    if (shorter)
      fs::resize_file(folder / "tensor", 100);
    else
      fs::last_write_time(folder / "tensor",
                          fs::last_write_time(folder / "tensor") + std::chrono::seconds(2));
    std::vector<float> copy(count);
    const auto read = [&] { tensor.copy_to(reinterpret_cast<std::byte*>(copy.data())); };
    EXPECT_TRUE(contains(error_of(read), "was changed after it was opened"));
  }
}

TEST(TensorData, LargeOnesOfAnotherSizeAreRefusedAtOnce) {
  constexpr std::int64_t count = 50'000;
  const std::string text = testing::tensor("t", 1, {count + 1}, std::string(4 * count, 'x')).bytes();
  const ScratchFolder folder;
  std::ofstream(folder / "tensor", std::ios::binary) << text;
  const auto file = std::make_shared<const MappedFile>(folder / "tensor");
  EXPECT_TRUE(contains(
      error_of([&] { read_tensor_later(parse_tensor(file->bytes()), ExternalData(fs::path()), file); }),
      "the file has 200000"));
}

TEST(TensorData, TypedFields) {
  const auto typed = [](std::int64_t type, auto&& fill) {
    Message message;
    message.integer(1, 2).integer(2, type).text(8, "t");
    fill(message);
    return elements(read(message));
  };
  const std::vector<std::int64_t> integers{1, -2}, half_bits{0x3c00, 0xc000}, brain_bits{0x3f80, 0xc000};
  const std::vector<float> reals{1, -2};
  const std::vector<double> expected{1, -2};
  EXPECT_EQ(typed(1, [&](Message& m) { m.packed_reals(4, reals); }), expected);
  EXPECT_EQ(typed(1, [&](Message& m) { m.real(4, 1).real(4, -2); }), expected);
  EXPECT_EQ(typed(6, [&](Message& m) { m.packed_integers(5, integers); }), expected);
  EXPECT_EQ(typed(3, [&](Message& m) { m.packed_integers(5, integers); }), expected);
  EXPECT_EQ(typed(7, [&](Message& m) { m.packed_integers(7, integers); }), expected);
  EXPECT_EQ(typed(10, [&](Message& m) { m.packed_integers(5, half_bits); }), expected);
  EXPECT_EQ(typed(16, [&](Message& m) { m.packed_integers(5, brain_bits); }), expected);
  EXPECT_EQ(typed(9,
                  [&](Message& m) {
                    m.packed_integers(5, std::vector<std::int64_t>{5, 0});
                  }),
            (std::vector<double>{1, 0}));
  EXPECT_EQ(typed(13,
                  [&](Message& m) {
                    m.packed_integers(11, std::vector<std::int64_t>{1, 7});
                  }),
            (std::vector<double>{1, 7}));
}

TEST(TensorData, ABooleanIsNeverAnythingButZeroOrOne) {
  const Tensor read_back = read(testing::tensor("t", 9, {3}, std::string_view("\0\1\7", 3)));
  EXPECT_EQ(static_cast<int>(read_back.bytes()[2]), 1);
}

TEST(TensorData, IntegersOfTwoAndFourBitsBecomeEight) {
  // 0x8f: 15 or -1 in the low half, 8 or -8 in the high half.
  EXPECT_EQ(elements(read(testing::tensor("t", 21, {3}, "\x8f\x01"))), (std::vector<double>{15, 8, 1}));
  EXPECT_EQ(elements(read(testing::tensor("t", 22, {3}, "\x8f\x01"))), (std::vector<double>{-1, -8, 1}));
  EXPECT_EQ(read(testing::tensor("t", 22, {2}, "\x8f")).type(), ElementType::i8);
  // 0xe4: 0, 1, 2, 3 from the low bits up.
  EXPECT_EQ(elements(read(testing::tensor("t", 25, {4}, "\xe4"))), (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(elements(read(testing::tensor("t", 26, {4}, "\xe4"))), (std::vector<double>{0, 1, -2, -1}));
}

TEST(TensorData, SmallFloats) {
  // Largest, smallest and special values of the formats' own tables.
  EXPECT_EQ(small_float(type_f8e4m3fn, 0x7e), 448);
  EXPECT_EQ(small_float(type_f8e4m3fn, 0x01), std::ldexp(1.0f, -9));
  EXPECT_TRUE(std::isnan(small_float(type_f8e4m3fn, 0xff)));
  EXPECT_EQ(small_float(type_f8e4m3fnuz, 0x7f), 240);
  EXPECT_TRUE(std::isnan(small_float(type_f8e4m3fnuz, 0x80)));
  EXPECT_EQ(small_float(type_f8e5m2, 0x7b), 57344);
  EXPECT_TRUE(std::isinf(small_float(type_f8e5m2, 0xfc)));
  EXPECT_EQ(small_float(type_f8e5m2, 0x81), -std::ldexp(1.0f, -16));
  EXPECT_EQ(small_float(type_f8e5m2fnuz, 0x7f), 57344);
  EXPECT_EQ(small_float(type_f8e8m0, 127), 1);
  EXPECT_EQ(small_float(type_f4e2m1, 7), 6);
  EXPECT_EQ(small_float(type_f4e2m1, 9), -0.5f);
}

TEST(TensorData, RefusesCountsThatDoNotFit) {
  EXPECT_TRUE(contains(refusal(testing::tensor("t", 1, {3}, "12345678")),
                       "tensor 't': f32[3] needs 12 bytes, the file has 8"));
  EXPECT_TRUE(contains(refusal(Message().integer(1, 3).integer(2, 1).real(4, 1).text(8, "t")),
                       "f32[3] needs 3 numbers, the file has 1"));
  // A shape of terabytes is refused before anything is allocated.
  EXPECT_TRUE(
      contains(refusal(testing::tensor("t", 1, {1 << 20, 1 << 20}, "")), "needs 4398046511104 bytes"));
  EXPECT_TRUE(contains(refusal(testing::tensor("t", 1, {INT64_MAX, INT64_MAX}, "")), "too many elements"));
  EXPECT_TRUE(contains(refusal(testing::tensor("t", 1, {INT64_MAX}, "")), "more elements than there can be"));
  EXPECT_TRUE(contains(refusal(testing::tensor("t", 1, {-1}, "")), "negative extent"));
}

TEST(TensorData, RefusesTypesWithoutAPlace) {
  EXPECT_TRUE(contains(refusal(testing::tensor("t", 8, {1}, "")), "type string have no place in a graph"));
  EXPECT_TRUE(contains(refusal(testing::tensor("t", 14, {1}, "")), "complex64"));
  EXPECT_TRUE(contains(refusal(testing::tensor("t", 99, {1}, "")), "type 99"));
}

Message external(const std::string& location, std::int64_t offset = 0, std::int64_t length = -1) {
  const auto entry = [](const std::string& key, const std::string& value) {
    return Message().text(1, key).text(2, value);
  };
  Message message;
  message.integer(1, 2).integer(2, 1).text(8, "w").message(13, entry("location", location));
  if (offset) message.message(13, entry("offset", std::to_string(offset)));
  if (length >= 0) message.message(13, entry("length", std::to_string(length)));
  return message.integer(14, 1);
}

std::string float_bytes(const std::vector<float>& floats) {
  return {reinterpret_cast<const char*>(floats.data()), floats.size() * 4};
}

TEST(ExternalData, AreReadFromTheModelsFolder) {
  const Folder folder;
  fs::create_directories(folder.model() / "parts");
  write_file_atomically(folder.model() / "parts" / "w.bin", float_bytes({9, 1, 2, 8}));
  EXPECT_EQ(elements(read(external("parts/w.bin", 4, 8), folder.model())), (std::vector<double>{1, 2}));
  EXPECT_EQ(elements(read(external("parts/w.bin", 8), folder.model())), (std::vector<double>{2, 8}));
}

TEST(ExternalData, RefusesEveryWayOut) {
  const Folder folder;
  write_file_atomically(folder.outside() / "secret", float_bytes({1, 2}));
  write_file_atomically(folder.model() / "w.bin", float_bytes({1, 2}));
  fs::create_symlink(folder.outside() / "secret", folder.model() / "link");
  fs::create_directory_symlink(folder.outside(), folder.model() / "folder");
  fs::create_symlink(folder.model() / "w.bin", folder.model() / "inner");
  const auto why = [&](const std::string& location) { return refusal(external(location), folder.model()); };
  EXPECT_TRUE(contains(why("../secret"), "lies outside the model's folder"));
  EXPECT_TRUE(contains(why("x/../../secret"), "lies outside the model's folder"));
  EXPECT_TRUE(contains(why((folder.outside() / "secret").string()), "lies outside"));
  EXPECT_TRUE(contains(why("link"), "is a link that leads outside"));
  EXPECT_TRUE(contains(why("folder/secret"), "is a link that leads outside"));
  EXPECT_TRUE(contains(why(std::string("w.bin\0x", 7)), "is no file name"));
  EXPECT_TRUE(contains(why("."), "this is a folder, not a file"));
  EXPECT_EQ(why("inner"), "");  // a link that stays inside is fine
}

TEST(ExternalData, RefusesWhatIsNotThere) {
  const Folder folder;
  write_file_atomically(folder.model() / "w.bin", float_bytes({1, 2}));
  EXPECT_TRUE(contains(refusal(external("absent"), folder.model()), "there is no such file"));
  EXPECT_TRUE(contains(refusal(external("w.bin", 100), folder.model()), "start at byte 100 of a file of 8"));
  EXPECT_TRUE(
      contains(refusal(external("w.bin", 4, 8), folder.model()), "8 bytes at 4 do not fit a file of 8"));
  EXPECT_TRUE(contains(refusal(external("w.bin", 4), folder.model()), "needs 8 bytes, the file has 4"));
  EXPECT_TRUE(contains(refusal(external("w.bin")), "the model is not a file"));
}

Message sparse(const std::vector<std::int64_t>& places, const std::vector<std::int64_t>& index_dims) {
  Message message;
  message.message(1, testing::floats("s", {2}, {5, 6}));
  message.message(2, testing::integers("", index_dims, places));
  return message.integer(3, 2).integer(3, 3);
}

TEST(SparseTensor, IsMadeDense) {
  const auto dense = [](const Message& message) {
    return elements(read_sparse_tensor(parse_sparse_tensor(bytes_of(message.bytes())), ExternalData({})));
  };
  const std::vector<double> expected{0, 5, 0, 0, 0, 6};
  EXPECT_EQ(dense(sparse({1, 5}, {2})), expected);
  EXPECT_EQ(dense(sparse({0, 1, 1, 2}, {2, 2})), expected);
  EXPECT_TRUE(contains(error_of([&] { dense(sparse({1, 6}, {2})); }), "outside the sparse tensor"));
  EXPECT_TRUE(contains(error_of([&] { dense(sparse({0, 1, 2, 0}, {2, 2})); }), "outside the sparse tensor"));
  EXPECT_TRUE(contains(error_of([&] { dense(sparse({0, 1, 2}, {3})); }), "do not fit each other"));
}

}  // namespace
}  // namespace superstep::onnx
