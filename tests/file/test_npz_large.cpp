// Archives that unpack to more than they should, and to more than 4 GB.
#include <gtest/gtest.h>
#include <zlib.h>

#include <chrono>
#include <fstream>

#include "superstep/base/system/free_memory.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/file/npy.h"
#include "superstep/file/npz.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

// The checksum of `count` zeros behind bytes of the checksum `crc`.
uLong crc_of_zeros(uLong crc, z_off64_t count) {
  const unsigned char zero = 0;
  uLong power = crc32(0, &zero, 1);  // of 2^k zeros
  for (z_off64_t bit = 1; bit <= count; bit <<= 1) {
    if (count & bit) crc = crc32_combine64(crc, power, bit);
    power = crc32_combine64(power, power, bit);
  }
  return crc;
}

class Bytes {
 public:
  Bytes& put(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) text_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  Bytes& put(std::string_view text) {
    text_ += text;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// What an archive says of its one entry "x.npy", at its beginning (local) and at its end.
struct Entry {
  std::uint64_t size, packed;
  int method;  // 0: stored, 8: deflated
  uLong crc;
};

std::string entry_record(const Entry& entry, bool local) {
  Bytes record;
  record.put(local ? 0x04034b50 : 0x02014b50, 4);
  if (!local) record.put(45, 2);
  record.put(45, 2).put(0, 2).put(static_cast<std::uint64_t>(entry.method), 2);
  record.put(0, 2).put(0x21, 2).put(entry.crc, 4);                    // 1 January 1980
  record.put(0xffffffff, 4).put(0xffffffff, 4).put(5, 2).put(20, 2);  // sizes: in the ZIP64 part
  if (!local) record.put(0, 2).put(0, 2).put(0, 2).put(0, 4).put(0, 4);
  return record.put("x.npy").put(1, 2).put(16, 2).put(entry.size, 8).put(entry.packed, 8).text();
}

std::string npy_header(const std::string& shape) {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.append(117 - header.size(), ' ');
  return Bytes().put("\x93NUMPY").put(1, 2).put(118, 2).put(header + "\n").text();
}

Entry entry_of(const std::string& npy, std::uint64_t zeros) {
  const uLong crc = crc32(0, reinterpret_cast<const Bytef*>(npy.data()), static_cast<uInt>(npy.size()));
  const std::uint64_t size = npy.size() + zeros;
  return {size, size, 0, crc_of_zeros(crc, static_cast<z_off64_t>(zeros))};
}

// What follows the entry's bytes, which end at `at`.
std::string end_of_archive(const Entry& entry, std::uint64_t at) {
  const std::string record = entry_record(entry, false);
  Bytes tail;
  tail.put(record);
  tail.put(0x06064b50, 4).put(44, 8).put(45, 2).put(45, 2).put(0, 4).put(0, 4).put(1, 8).put(1, 8);
  tail.put(record.size(), 8).put(at, 8);
  tail.put(0x07064b50, 4).put(0, 4).put(at + record.size(), 8).put(1, 4);
  tail.put(0x06054b50, 4).put(0, 2).put(0, 2).put(1, 2).put(1, 2).put(record.size(), 4);
  return tail.put(0xffffffff, 4).put(0, 2).text();
}

// An archive with an array of zeros, declared as in `shape`: stored, which takes no room on the disk.
void write_stored(const std::filesystem::path& path, std::uint64_t zeros, const std::string& shape) {
  const std::string npy = npy_header(shape);
  const Entry entry = entry_of(npy, zeros);
  const std::string beginning = entry_record(entry, true) + npy;
  const std::uint64_t at = beginning.size() + zeros;
  std::ofstream file(path, std::ios::binary);
  file << beginning;
  file.seekp(static_cast<std::streamoff>(at));
  file << end_of_archive(entry, at);
}

// Deflated on its own, so that copies can stand one behind another.
std::string deflated(std::string bytes) {
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()) + 16, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FULL_FLUSH), Z_OK);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  return packed;
}

// The same, deflated; `zeros` are a multiple of `pieces`. `empty_blocks`: of five bytes that hold nothing, so
// that it packs no better than data do.
void write_deflated(const std::filesystem::path& path, std::uint64_t zeros, std::uint64_t pieces,
                    const std::string& shape, std::uint64_t empty_blocks = 0) {
  const std::string npy = npy_header(shape), piece = deflated(std::string(zeros / pieces, '\0'));
  std::string packed = deflated(npy);
  for (std::uint64_t i = 0; i < pieces; ++i) packed += piece;
  for (std::uint64_t i = 0; i < empty_blocks; ++i) packed += std::string("\x00\x00\x00\xff\xff", 5);
  packed += std::string("\x03\x00", 2);  // the last block, empty
  Entry entry = entry_of(npy, zeros);
  entry.method = 8;
  entry.packed = packed.size();
  const std::string beginning = entry_record(entry, true) + packed;
  std::ofstream(path, std::ios::binary) << beginning << end_of_archive(entry, beginning.size());
}

constexpr std::uint64_t above_four_gigabytes = 4'300'000'000;

TEST(NpzLarge, SmallOnesAreRead) {
  const ScratchFolder folder;
  write_stored(folder / "x.npz", 1000, "10, 100");
  EXPECT_EQ(read_npz(folder / "x.npz").at("x").shape(), (Shape{10, 100}));
  write_deflated(folder / "y.npz", 100'000, 10, "100000,");
  EXPECT_EQ(read_npz(folder / "y.npz").at("x").shape(), (Shape{100'000}));
}

TEST(NpzLarge, AnEntryAbove4GigabytesIsRead) {
  if (available_memory() < 6e9) GTEST_SKIP() << "less than 6 GB of memory are free";
  const ScratchFolder folder;
  write_deflated(folder / "x.npz", above_four_gigabytes, 100, "43, 100000000", 5'000'000);
  const NamedTensors arrays = read_npz(folder / "x.npz");
  EXPECT_EQ(arrays.at("x").shape(), (Shape{43, 100'000'000}));
  EXPECT_EQ(arrays.at("x").at(above_four_gigabytes - 1), 0);
}

// A bomb: some MB that are GB, refused by what the archive says before anything is unpacked.
TEST(NpzLarge, WhatPacksAsNoDataDoIsRefusedBeforeItIsUnpacked) {
  const ScratchFolder folder;
  write_deflated(folder / "x.npz", above_four_gigabytes, 100, "43, 100000000");
  const double before = available_memory();
  expect_error(ErrorCode::bad_file, {"x.npz", "unpacks to 4.30 GB from", "unpack it first"},
               [&] { read_npz(folder / "x.npz"); });
  EXPECT_LT(before - available_memory(), 1e9);
}

TEST(NpzLarge, AnInterruptIsHeardWithinASecond) {
  if (available_memory() < 6e9) GTEST_SKIP() << "less than 6 GB of memory are free";
  const ScratchFolder folder;
  write_stored(folder / "x.npz", above_four_gigabytes, "43, 100000000");
  request_interrupt();
  const auto start = std::chrono::steady_clock::now();
  expect_error(ErrorCode::interrupted, {"x.npz", "stopped while reading"},
               [&] { read_npz(folder / "x.npz"); });
  clear_interrupt();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(NpzLarge, WhatDoesNotFitInMemoryIsRefusedBeforeItIsUnpacked) {
  const ScratchFolder folder;
  write_stored(folder / "x.npz", 3'000'000'000'000, "3000000000000,");
  const auto start = std::chrono::steady_clock::now();
  expect_error(ErrorCode::out_of_memory, {"x.npz", "needs 3 TB of memory", "are free"},
               [&] { read_npz(folder / "x.npz"); });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(NpzLarge, AnEntryLargerThanItsArrayIsRefusedBeforeItIsUnpacked) {
  const ScratchFolder folder;
  write_stored(folder / "x.npz", 4'000'000'000, "10,");
  expect_error(ErrorCode::bad_file,
               {"x.npz: entry 'x.npy'", "shape [10] of u8 needs 10 bytes and the archive holds 4000000000"},
               [&] { read_npz(folder / "x.npz"); });
}

}  // namespace
}  // namespace superstep::data
