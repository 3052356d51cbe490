// Archives, tables and lines packed by gzip and zstd, as sources of samples.
#include <gtest/gtest.h>

#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/packing/content.h"
#include "superstep/file/source/forms.h"
#include "tests/expect_error.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

// The same rows in every form, plain and packed: 2 MB of lines, so that there are places to begin at in them.
constexpr const char* samples = R"(
import bz2, gzip, io, json, shutil
import numpy as np, pandas, pyarrow as pa, webdataset
rng = np.random.default_rng(3)
n = 10000
x = rng.normal(size=(n, 10)).astype('f4')
frame = pandas.DataFrame({f'x{i}': x[:, i] for i in range(10)} | {'label': np.arange(n)})
frame.to_csv('a.csv', index=False)
frame.to_csv('a.csv.gz', index=False)
frame[:2000].to_json('b.jsonl', orient='records', lines=True)
frame[:2000].to_json('b.jsonl.gz', orient='records', lines=True)
for name, options in [('c.tar', {}), ('c.tar.gz', {'compress': True})]:
    with webdataset.TarWriter(name, **options) as out:
        for i in range(500): out.write({'__key__': '%06d' % i, 'x.npy': np.repeat(x[i], 100), 'cls': i})
shutil.copy('c.tar.gz', 'd.tgz')
def zstd(name):
    with pa.CompressedOutputStream(name + '.zst', 'zstd') as out: out.write(open(name, 'rb').read())
for name in ['a.csv', 'b.jsonl', 'c.tar']: zstd(name)
# Members and frames one behind the other, as tools that pack on several processors write them.
whole = open('a.csv', 'rb').read()
pieces = [whole[i:i + 450000] for i in range(0, len(whole), 450000)]
open('members.csv.gz', 'wb').write(b''.join(gzip.compress(piece, 1) for piece in pieces) + bytes(700))
open('frames.csv.zst', 'wb').write(b''.join(pa.compress(piece, 'zstd', asbytes=True) for piece in pieces))
open('gap.csv.gz', 'wb').write(gzip.compress(pieces[0]) + b'no member')
)";

class PackedSources : public testing::Test {
 protected:
  void write() {
    const std::string packages = "numpy, pandas, pyarrow, webdataset";
    const std::string python = python_with(packages);
    if (python.empty()) GTEST_SKIP() << packages << " are not installed: tools/setup-oracles installs them";
    ASSERT_TRUE(run_python(python, folder / ".", samples));
  }
  // All rows in their order, some of them back and forth, and all in the order of an epoch.
  void expect_same(const std::string& packed, const std::string& plain) const {
    SCOPED_TRACE(packed);
    const auto found = open_source(folder / packed), wanted = open_source(folder / plain);
    ASSERT_EQ(found->arrays().size(), wanted->arrays().size());
    EXPECT_TRUE(found->shards().empty()) << "all of it stays unpacked";
    const std::int64_t count = wanted->arrays()[0].rows;
    std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
    std::iota(rows.begin(), rows.end(), 0);
    expect_rows(*found, *wanted, rows);
    rows.clear();
    for (std::int64_t i = 0; i < 40; ++i) rows.push_back(i * 4861 % count);
    expect_rows(*found, *wanted, rows);
    rows.clear();
    for (std::int64_t i = 0; i < 40; ++i) rows.push_back(count - 1 - i);
    expect_rows(*found, *wanted, rows);
  }
  void expect_rows(const SampleSource& found, const SampleSource& wanted,
                   const std::vector<std::int64_t>& rows) const {
    for (std::size_t i = 0; i < wanted.arrays().size(); ++i) {
      ASSERT_EQ(found.arrays()[i].name, wanted.arrays()[i].name);
      ASSERT_EQ(found.arrays()[i].shape(), wanted.arrays()[i].shape());
    }
    ASSERT_EQ(bytes_of(found, rows), bytes_of(wanted, rows));
  }

  // Rows of all arrays, one array behind another.
  static std::vector<std::byte> bytes_of(const SampleSource& source, const std::vector<std::int64_t>& rows) {
    std::size_t row_bytes = 0;
    for (const SourceArray& array : source.arrays()) row_bytes += array.row_bytes();
    std::vector<std::byte> bytes(rows.size() * row_bytes);
    std::vector<RowsTo> to;
    std::byte* at = bytes.data();
    for (std::size_t i = 0; i < source.arrays().size(); ++i) {
      to.push_back({i, at});
      at += rows.size() * source.arrays()[i].row_bytes();
    }
    source.read(rows, to);
    return bytes;
  }

  const ScratchFolder folder;
};

TEST_F(PackedSources, AreTheSameAsThoseThatAreNotAndRefusedWhereTheyAreDamaged) {
  ASSERT_NO_FATAL_FAILURE(write());
  if (IsSkipped()) return;
  for (const char* name : {"a.csv.gz", "a.csv.zst", "members.csv.gz", "frames.csv.zst"})
    expect_same(name, "a.csv");
  for (const char* name : {"b.jsonl.gz", "b.jsonl.zst"}) expect_same(name, "b.jsonl");
  for (const char* name : {"c.tar.gz", "d.tgz", "c.tar.zst"}) expect_same(name, "c.tar");
  expect_error(ErrorCode::bad_file, {"gap.csv.gz", "no member of gzip begins at byte"},
               [&] { open_source(folder / "gap.csv.gz"); });
  for (const std::string name : {"c.tar.gz", "c.tar.zst", "b.jsonl.gz", "b.jsonl.zst"}) {
    const std::string whole = read_text_file(folder / name);
    if (name.ends_with(".gz")) {  // frames of zstd need not have checksums, and these have none
      std::string damaged = whole;
      damaged[whole.size() / 2] = static_cast<char>(damaged[whole.size() / 2] ^ 0x11);
      write_file_atomically(folder / ("damaged_" + name), std::string_view(damaged));
      expect_error(ErrorCode::bad_file, {"damaged_" + name},
                   [&] { open_source(folder / ("damaged_" + name)); });
    }
    write_file_atomically(folder / ("cut_" + name), std::string_view(whole).substr(0, whole.size() - 30));
    expect_error(ErrorCode::bad_file, {"cut_" + name, "is cut short"},
                 [&] { open_source(folder / ("cut_" + name)); });
  }
}

TEST_F(PackedSources, ThatUnpackToMuchMoreThanDataDoAreRefused) {
  const std::string python = python_with("gzip");
  if (python.empty()) GTEST_SKIP() << "there is no Python";
  ASSERT_TRUE(run_python(python, folder / ".", R"(
import gzip
open('bomb.gz', 'wb').write(gzip.compress(bytes(1 << 24)) * 70)
)"));
  expect_error(ErrorCode::bad_file, {"bomb.gz", "more than 200 times as much"},
               [&] { static_cast<void>(Content(folder / "bomb.gz").size()); });
}

TEST_F(PackedSources, OfMoreThanIsKeptAreReadInTheirOrder) {
  const std::string python = python_with("gzip");
  if (python.empty()) GTEST_SKIP() << "there is no Python";
  ASSERT_TRUE(run_python(python, folder / ".", R"(
import gzip
line = b'1' + b' ' * 999 + b'\n'
open('long.csv.gz', 'wb').write(gzip.compress(b'x\n' + line * 140) + gzip.compress(line * 14000) * 10)
)"));
  const auto source = open_source(folder / "long.csv.gz");
  EXPECT_EQ(source->arrays()[0].rows, 140140);
  EXPECT_EQ(source->shards(), std::vector<std::int64_t>{0});
}

// More than is kept, so that parts are unpacked again: from places within members of gzip, and where frames
// begin.
TEST_F(PackedSources, ArePartsOfWhatTheyUnpackToWhereverTheyAreReadAgain) {
  const std::string python = python_with("numpy, pyarrow");
  if (python.empty()) GTEST_SKIP() << "pyarrow is not installed: tools/setup-oracles installs it";
  ASSERT_TRUE(run_python(python, folder / ".", R"(
import gzip
import numpy as np, pyarrow as pa
part = np.random.default_rng(1).integers(0, 2, 5000011, dtype='u1').tobytes()
open('part', 'wb').write(part)
open('whole.gz', 'wb').write(gzip.compress(part, 1) * 55)
open('whole.zst', 'wb').write(pa.compress(part, 'zstd', asbytes=True) * 55)
)"));
  const std::string part = read_text_file(folder / "part");
  for (const char* name : {"whole.gz", "whole.zst"}) {
    const Content content(folder / name);
    ASSERT_EQ(content.size(), 55 * part.size());
    EXPECT_TRUE(content.is_ordered());
    std::string found(3000, '?');
    for (std::uint64_t i = 0; i < 40; ++i) {
      const std::uint64_t at = i * 104729 * 997 % (content.size() - found.size());
      content.read(at, std::as_writable_bytes(std::span(found)));
      for (std::size_t k = 0; k < found.size(); ++k)
        ASSERT_EQ(found[k], part[(at + k) % part.size()]) << name << ' ' << at << ' ' << k;
    }
  }
}

TEST(Content, NamesWhatIsPacked) {
  EXPECT_EQ(unpacked_name("a/b.csv.gz"), "a/b.csv");
  EXPECT_EQ(unpacked_name("b.TGZ"), "b.tar");
  EXPECT_EQ(unpacked_name("b.tar.zst"), "b.tar");
  EXPECT_EQ(unpacked_name("b.nii"), "b.nii");
}

}  // namespace
}  // namespace superstep::data
