// Stores of Zarr as sources of samples, by hand and as zarr writes them.
#include <gtest/gtest.h>

#include <filesystem>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/npz.h"
#include "superstep/file/source/forms.h"
#include "tests/expect_error.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

class ZarrSources : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((folder / name).parent_path());
    write_file_atomically(folder / name, std::string_view(bytes));
  }
  // Version 2, u8 [5, 3] in chunks of [2, 2]: row r is 10 r, 10 r + 1, 10 r + 2; the chunk of the last row
  // and column is not there.
  void write_small() const {
    write("s.zarr/.zgroup", R"({"zarr_format": 2})");
    write("s.zarr/x/.zarray",
          R"({"zarr_format": 2, "shape": [5, 3], "chunks": [2, 2], "dtype": "|u1", "compressor": null,
              "fill_value": 42, "order": "C", "filters": null})");
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 2; ++j) {
        std::string chunk;
        for (int r = 2 * i; r < 2 * i + 2; ++r)
          for (int c = 2 * j; c < 2 * j + 2; ++c) chunk += static_cast<char>(10 * r + c);
        if (i < 2 || j < 1) write("s.zarr/x/" + std::to_string(i) + "." + std::to_string(j), chunk);
      }
  }
  Tensor whole(const std::string& store, const std::string& array) const {
    const auto source = open_source(folder / store);
    const std::size_t at = find_array(*source, array);
    if (at == source->arrays().size()) return Tensor();
    return read_whole(*source, at);
  }
  const ScratchFolder folder;
};

TEST_F(ZarrSources, OfChunksThatTheArrayDoesNotFill) {
  write_small();
  const Tensor x = whole("s.zarr", "x");
  ASSERT_EQ(x.shape(), (Shape{5, 3}));
  for (std::int64_t r = 0; r < 5; ++r)
    for (std::int64_t c = 0; c < 3; ++c)
      EXPECT_EQ(x.at(3 * r + c), r == 4 && c == 2 ? 42 : 10 * r + c) << r << c;
  const auto source = open_source(folder / "s.zarr");
  const std::int64_t rows[] = {3, 0, 3};
  const Tensor some = read_rows(*source, 0, rows);
  EXPECT_EQ(some.at(0), 30);
  EXPECT_EQ(some.at(3), 0);
  EXPECT_EQ(some.at(8), 32);
}

TEST_F(ZarrSources, WhatIsNotReadIsNamed) {
  write_small();
  const auto unread = [&](const std::string& metadata, const std::string& why) {
    write("s.zarr/y/.zarray", metadata);
    const auto source = open_source(folder / "s.zarr");
    ASSERT_EQ(source->arrays().size(), 1u) << why;
    ASSERT_EQ(source->others().size(), 1u) << why;
    EXPECT_NE(source->others()[0].find(why), std::string::npos) << source->others()[0];
  };
  const std::string shape = R"("shape": [4, 4], "chunks": [2, 2])";
  unread("{" + shape + R"(, "dtype": "|S5"})", "of the type");
  unread("{" + shape + R"(, "dtype": "<f4", "order": "F"})", "by columns");
  unread("{" + shape + R"(, "dtype": "<f4", "compressor": {"id": "lzma"}})", "packed by lzma");
  unread("{" + shape + R"(, "dtype": "<f4", "filters": [{"id": "delta"}]})", "filtered by delta");
  unread(R"({"shape": [4], "chunks": [2, 2], "dtype": "<f4"})", "another rank");
  unread(R"({"shape": [4], "chunks": [0], "dtype": "<f4"})", "its shape is none");
  unread(R"({"shape": [99999999999, 99999999999], "chunks": [9, 9], "dtype": "<f4"})", "more elements");
  write("s.zarr/y/.zarray", "no JSON");
  expect_error(ErrorCode::bad_file, {".zarray", "no metadata"}, [&] { open_source(folder / "s.zarr"); });
}

TEST_F(ZarrSources, DamagedChunksAreRefusedByTheirName) {
  write_small();
  write("s.zarr/x/1.0", "abc");
  expect_error(ErrorCode::bad_file, {"x/1.0", "another length"}, [&] { whole("s.zarr", "x"); });
}

constexpr const char* writes_stores = R"(
import warnings; warnings.simplefilter('ignore')
import numpy as np, zarr
from numcodecs import Blosc, Zlib, Zstd, GZip
rng = np.random.default_rng(5)
x = rng.integers(0, 3000, (23, 17, 5)).astype('f4')
y = rng.integers(-5, 5, 23)
np.savez('expected.npz', x=x, y=y)
two = zarr.open_group('two.zarr', mode='w', zarr_format=2)
packings = {'none': None, 'zlib': Zlib(), 'gzip': GZip(), 'zstd': Zstd()}
for name in ['lz4', 'zlib', 'zstd']:
    for shuffle in [0, 1]:
        packings[f'blosc_{name}_{shuffle}'] = Blosc(cname=name, shuffle=shuffle)
packings['blosc_blocks'] = Blosc(cname='lz4', shuffle=1, blocksize=512)
packings['blosc_level0'] = Blosc(cname='lz4', clevel=0)
for name, packing in packings.items():
    a = two.create_array(name, shape=x.shape, chunks=(7, 10, 5), dtype='f4', compressors=packing)
    a[:] = x
a = two.create_array('big', shape=x.shape, chunks=(23, 17, 5), dtype='>f4', compressors=None); a[:] = x
a = two.create_array('deep/y', shape=y.shape, chunks=(4,), dtype='i8', compressors=Zlib()); a[:] = y
a = two.create_array('random', shape=(100, 100), chunks=(50, 50), dtype='f8', compressors=Blosc(cname='lz4', shuffle=1))
r = np.random.default_rng(1).random((100, 100)); a[:] = r
np.savez('random.npz', r=r)
bits = two.create_array('bits', shape=x.shape, chunks=(7, 10, 5), dtype='f4', compressors=Blosc(cname='lz4', shuffle=2)); bits[:] = x
three = zarr.open_group('three.zarr', mode='w', zarr_format=3)
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec, Crc32cCodec
for name, packing in {'default': 'auto', 'none': None, 'gzip': GzipCodec(), 'blosc': BloscCodec(cname='zstd', shuffle='shuffle'),
                      'sum': [ZstdCodec(), Crc32cCodec()], 'sum_alone': [Crc32cCodec()]}.items():
    a = three.create_array(name, shape=x.shape, chunks=(7, 10, 5), dtype='f4', compressors=packing); a[:] = x
a = three.create_array('deep/y', shape=y.shape, chunks=(4,), dtype='i8'); a[:] = y
a = three.create_array('sharded', shape=x.shape, chunks=(7, 5, 5), shards=(14, 10, 5), dtype='f4'); a[:] = x
)";

TEST_F(ZarrSources, AsZarrWritesThem) {
  const std::string python = python_with("numpy, zarr, numcodecs");
  if (python.empty()) GTEST_SKIP() << "zarr is not installed: tools/setup-oracles installs it";
  ASSERT_TRUE(run_python(python, folder / ".", writes_stores));
  const NamedTensors expected = read_npz(folder / "expected.npz");
  for (const char* store : {"two.zarr", "three.zarr"}) {
    const auto source = open_source(folder / store);
    EXPECT_GE(source->arrays().size(), 7u);
    for (std::size_t i = 0; i < source->arrays().size(); ++i) {
      const std::string& name = source->arrays()[i].name;
      if (name == "bits" || name == "random") continue;
      const Tensor& wanted = expected.at(name == "deep/y" ? "y" : "x");
      const Tensor found = read_whole(*source, i);
      ASSERT_EQ(found.shape(), wanted.shape()) << name;
      for (std::int64_t k = 0; k < found.element_count(); ++k)
        ASSERT_EQ(found.at(k), wanted.at(k)) << name << ' ' << k;
    }
  }
  const Tensor random = read_npz(folder / "random.npz").at("r"), found = whole("two.zarr", "random");
  for (std::int64_t k = 0; k < found.element_count(); ++k) ASSERT_EQ(found.at(k), random.at(k));
  expect_error(ErrorCode::unsupported, {"bits", "bits shuffled"}, [&] { whole("two.zarr", "bits"); });
  EXPECT_NE(open_source(folder / "three.zarr")->others().at(0).find("sharding_indexed"), std::string::npos);
  // Of any chunk that is damaged the numbers are other ones or it is refused: nothing is read beyond it.
  for (const char* name : {"blosc_lz4_1", "blosc_zstd_0", "blosc_blocks", "zlib", "gzip", "zstd"}) {
    const std::string chunk = "two.zarr/" + std::string(name) + "/0.0.0",
                      sound = read_text_file(folder / chunk);
    for (std::size_t at = 0; at < sound.size(); at += 1 + sound.size() / 40) {
      std::string changed = sound;
      changed[at] = static_cast<char>(changed[at] ^ 0x41);
      for (const std::string& bytes : {changed, sound.substr(0, at)}) {
        write(chunk, bytes);
        try {
          whole("two.zarr", name);
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find("0.0.0"), std::string::npos) << error.what();
        }
      }
    }
  }
}

}  // namespace
}  // namespace superstep::data
