#include <gtest/gtest.h>
#include <zip.h>

#include <cstring>

#include "superstep/base/file.h"
#include "superstep/file/npy.h"
#include "superstep/file/npz.h"
#include "superstep/file/zip.h"
#include "tests/damage.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

// A file of version `major` with this header and these elements.
std::vector<std::byte> npy_file(int major, const std::string& header, std::string_view elements) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(major);
  text += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) text += static_cast<char>(header.size() >> (8 * i));
  return bytes_of(text + header + std::string(elements));
}

bool same(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && a.shape() == b.shape() &&
         std::memcmp(a.bytes(), b.bytes(), a.byte_count()) == 0;
}

TEST(Npy, EveryTypeAndShapeComesBack) {
  for (const ElementType type : all_element_types) {
    if (type == ElementType::bf16) continue;
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3}, Shape{0, 4}, Shape{2, 1, 3, 2}}) {
      Tensor tensor(type, shape);
      for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, static_cast<double>(i % 2));
      const std::vector<std::byte> file = format_npy(tensor);
      EXPECT_TRUE(same(parse_npy(file, "x"), tensor)) << name_of(type) << to_string(shape);
      EXPECT_EQ((file.size() - tensor.byte_count()) % 64, 0u);
    }
  }
  expect_error(ErrorCode::unsupported, {"bf16"}, [] { format_npy(Tensor(ElementType::bf16, {1})); });
}

TEST(Npy, ReadsEveryVersionAndTheHeadersOfOldWriters) {
  const std::string header = "{'shape': (2L,), \"fortran_order\": False, 'descr': '<i2'}\n";
  for (int major : {1, 2, 3}) {
    const Tensor tensor = parse_npy(npy_file(major, header, std::string_view("\x01\x00\x02\x01", 4)), "x");
    EXPECT_EQ(tensor.as<std::int16_t>()[1], 258);
  }
}

TEST(Npy, ReadsBigEndianFortranOrderAndComplex) {
  const auto big =
      npy_file(1, "{'descr':'>u2','fortran_order':False,'shape':(2,)}", std::string_view("\0\1\1\0", 4));
  EXPECT_EQ(parse_npy(big, "x").as<std::uint16_t>()[0], 1);
  EXPECT_EQ(parse_npy(big, "x").as<std::uint16_t>()[1], 256);
  // Column-major [[0,1,2],[3,4,5]].
  const auto fortran =
      npy_file(1, "{'descr':'|u1','fortran_order':True,'shape':(2,3)}", std::string_view("\0\3\1\4\2\5", 6));
  const Tensor matrix = parse_npy(fortran, "x");
  for (int i = 0; i < 6; ++i) EXPECT_EQ(matrix.as<std::uint8_t>()[static_cast<std::size_t>(i)], i);
  const float pair[] = {1.5f, -2.0f};
  const auto complex = npy_file(1, "{'descr':'<c8','fortran_order':False,'shape':(1,)}",
                                std::string_view(reinterpret_cast<const char*>(pair), 8));
  EXPECT_EQ(parse_npy(complex, "x").shape(), (Shape{1, 2}));
  EXPECT_EQ(parse_npy(complex, "x").as<float>()[1], -2.0f);
}

TEST(Npy, RefusesWhatIsNotNumbersWithTheReason) {
  expect_error(ErrorCode::unsupported, {"'<U5'", "x.npy"}, [] {
    parse_npy(npy_file(1, "{'descr':'<U5','fortran_order':False,'shape':(0,)}", ""), "x.npy");
  });
  expect_error(ErrorCode::unsupported, {"records"}, [] {
    parse_npy(npy_file(1, "{'descr':[('a','<f4')],'fortran_order':False,'shape':(0,)}", ""), "x.npy");
  });
  expect_error(ErrorCode::bad_file, {"not a .npy file"},
               [] { parse_npy(bytes_of("hello, this is text"), "x"); });
  expect_error(ErrorCode::bad_file, {"version 9"}, [] { parse_npy(npy_file(9, "{}", ""), "x"); });
}

TEST(Npy, RefusesSizesBeforeAllocating) {
  expect_error(ErrorCode::bad_file, {"cut short", "needs 4000000000000 bytes"}, [] {
    parse_npy(npy_file(1, "{'descr':'<f4','fortran_order':False,'shape':(1000000,1000000,)}", "1234"), "x");
  });
  expect_error(ErrorCode::bad_file, {"too many elements"}, [] {
    parse_npy(npy_file(1, "{'descr':'<f4','fortran_order':False,'shape':(9000000000,9000000000,)}", "1234"),
              "x");
  });
  expect_error(ErrorCode::bad_file, {"too large"}, [] {
    parse_npy(npy_file(1, "{'descr':'<c16','fortran_order':False,'shape':(9000000000000000000,)}", "1234"),
              "x");
  });
}

TEST(Npy, DamagedFilesAreReadOrRefused) {
  const std::vector<std::byte> valid = format_npy(Tensor::full(ElementType::f32, {2, 3}, 1));
  const Refusals refused = read_damaged(valid, [](auto bytes) { parse_npy(bytes, "x"); });
  EXPECT_EQ(refused.truncations, static_cast<int>(valid.size()));
  EXPECT_GT(refused.flips, 50);
}

TEST(Npy, MissingFileIsNamed) {
  expect_error(ErrorCode::not_found, {"nowhere.npy"}, [] { read_npy("nowhere.npy"); });
  expect_error(ErrorCode::bad_file, {"this is a folder"}, [] { read_npy("."); });
}

TEST(Npz, ArraysComeBackByName) {
  const ScratchFolder folder;
  const NamedTensors arrays{{"a", Tensor::full(ElementType::f64, {3}, 2.5)},
                            {"b/c", Tensor::full(ElementType::u8, {2, 2}, 7)}};
  write_npz(folder / "x.npz", arrays);
  const NamedTensors back = read_npz(folder / "x.npz");
  ASSERT_EQ(back.size(), 2u);
  EXPECT_TRUE(same(back.at("a"), arrays.at("a")));
  EXPECT_TRUE(same(back.at("b/c"), arrays.at("b/c")));
  EXPECT_EQ(folder.file_count(), 1);
  const std::string first = read_text_file(folder / "x.npz");
  write_npz(folder / "x.npz", arrays);
  EXPECT_EQ(read_text_file(folder / "x.npz"), first);
}

// The bytes of an archive with one deflated entry, a.npy of 1000 equal numbers.
std::vector<std::byte> deflated_archive(const std::filesystem::path& path) {
  const std::vector<std::byte> content = format_npy(Tensor::full(ElementType::f64, {1000}, 3));
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE, nullptr);
  zip_source_t* source = zip_source_buffer(archive, content.data(), content.size(), 0);
  const auto index = static_cast<zip_uint64_t>(zip_file_add(archive, "a.npy", source, 0));
  zip_set_file_compression(archive, index, ZIP_CM_DEFLATE, 9);
  EXPECT_EQ(zip_close(archive), 0);
  return bytes_of(read_text_file(path));
}

TEST(Npz, ReadsDeflatedEntriesAndRefusesImpossibleOnes) {
  const ScratchFolder folder;
  std::vector<std::byte> bytes = deflated_archive(folder / "x.npz");
  EXPECT_LT(bytes.size(), 1000u);
  EXPECT_EQ(parse_npz(bytes, "x").at("a").at(999), 3);
  // The central directory's uncompressed size: 24 bytes into the record that begins with PK\1\2.
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t size_at = text.find(std::string_view("PK\x01\x02")) + 24;
  bytes[size_at + 3] = std::byte{0x7f};  // 2 GB
  expect_error(ErrorCode::bad_file, {"x: entry 'a.npy'", "cannot hold"}, [&] { parse_npz(bytes, "x"); });
}

TEST(Npz, DamagedArchivesAreReadOrRefused) {
  const ScratchFolder folder;
  write_npz(folder / "x.npz",
            {{"a", Tensor::full(ElementType::f32, {2, 3}, 1)}, {"b", Tensor::full(ElementType::i8, {4}, 1)}});
  const std::vector<std::byte> valid = bytes_of(read_text_file(folder / "x.npz"));
  const Refusals refused = read_damaged(valid, [](auto bytes) { parse_npz(bytes, "x"); });
  EXPECT_EQ(refused.truncations, static_cast<int>(valid.size()));
  EXPECT_GT(refused.flips, 1000);  // the checksum covers the arrays
}

TEST(Npz, NamesTheEntryThatIsWrong) {
  const ScratchFolder folder;
  write_zip(folder / "x.npz", {{"notes.txt", bytes_of("no array here")}});
  expect_error(ErrorCode::bad_file, {"x.npz", "notes.txt", "not a .npy file"},
               [&] { read_npz(folder / "x.npz"); });
  expect_error(ErrorCode::bad_file, {"zip"}, [&] { parse_npz(bytes_of("text"), "x"); });
  expect_error(ErrorCode::io, {"cannot write"}, [&] {
    write_npz(folder / "no/such/folder.npz", {{"a", Tensor()}});
  });
}

}  // namespace
}  // namespace superstep::data
