// Parquet and Arrow as sources of samples, written by Apache Arrow's own library and by pandas.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/convert/convert.h"
#include "superstep/file/npz.h"
#include "superstep/file/packing/snappy.h"
#include "superstep/file/source/forms.h"
#include "tests/expect_error.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

// 300 rows of everything that is read, and of what is not.
constexpr const char* table = R"(
import io
import numpy as np, pyarrow as pa, pyarrow.parquet as pq, pyarrow.feather as feather, pyarrow.ipc as ipc
from PIL import Image
rng = np.random.default_rng(5)
n = 300
types = ['i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8']
plain = {t: rng.integers(np.iinfo(t).min, np.iinfo(t).max, n, dtype=t, endpoint=True) for t in types}
plain |= {t: rng.normal(size=n).astype(t) for t in ['f2', 'f4', 'f8']}
plain['bool'] = rng.integers(0, 2, n).astype(bool)
plain['few'] = rng.integers(0, 5, n) * 1000003
plain['rising'] = np.cumsum(rng.integers(0, 9, n))
plain['wide'] = rng.integers(-2**60, 2**60, n)
flat = rng.normal(size=(n, 6)).astype('f4')
nested = rng.integers(-9, 9, (n, 2, 3)).astype('i4')
picture = rng.integers(0, 256, (n, 3, 8, 8), dtype='u1')
def png(i):
    held = io.BytesIO()
    Image.fromarray(picture[i].transpose(1, 2, 0)).save(held, 'png')
    return held.getvalue()
gaps = [None if i % 7 == 3 else float(plain['f8'][i]) for i in range(n)]
fixed = pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), 6)
tensor = pa.FixedShapeTensorArray.from_numpy_ndarray(picture)
columns = {k: pa.array(v) for k, v in plain.items()}
columns |= {'gaps': pa.array(gaps), 'lists': pa.array(flat.tolist(), pa.list_(pa.float32())), 'fixed': fixed,
            'nested': pa.array(nested.tolist(), pa.list_(pa.list_(pa.int32()))),
            'image': pa.array([{'bytes': png(i), 'path': f'{i}.png'} for i in range(n)]),
            'in': pa.array([{'a': int(plain['i4'][i]), 'b': float(plain['f4'][i])} for i in range(n)],
                           pa.struct([('a', pa.int32()), ('b', pa.float32())])),
            'word': pa.array(['word %d' % (i % 9) for i in range(n)])}
columns['category'] = columns['word'].dictionary_encode()
columns['when'] = pa.array(np.arange(n), pa.timestamp('us'))
import decimal
columns['money'] = pa.array([decimal.Decimal(i) / 100 for i in range(n)], pa.decimal128(9, 2))
table = pa.table(columns)
gapped = np.array([np.nan if g is None else g for g in gaps])
np.savez('expected.npz', flat=flat, nested=nested, picture=picture, gaps=gapped, **plain)
)";

class ColumnSources : public testing::Test {
 protected:
  void write(const std::string& script) {
    const std::string packages = "numpy, pyarrow, PIL";
    const std::string python = python_with(packages);
    if (python.empty()) GTEST_SKIP() << packages << " are not installed: tools/setup-oracles installs them";
    ASSERT_TRUE(run_python(python, folder / ".", table + script));
    expected = read_npz(folder / "expected.npz");
  }
  std::unique_ptr<SampleSource> opened(const std::string& name, const SourceRequest& request = {}) const {
    return open_source(folder / name, request);
  }
  void expect(const SampleSource& source, const std::string& array, const std::string& written) const {
    SCOPED_TRACE(array);
    const std::size_t at = find_array(source, array);
    ASSERT_LT(at, source.arrays().size());
    const Tensor& wanted = expected.at(written);
    ASSERT_EQ(source.arrays()[at].shape(), wanted.shape());
    ASSERT_EQ(source.arrays()[at].type, wanted.type());
    expect_rows(read_whole(source, at), wanted, [](std::int64_t row) { return row; });
    // In an order that goes back and forth, with a row twice.
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < 300; ++i) rows.push_back(i * 77 % 300);
    rows.push_back(4);
    expect_rows(read_rows(source, at, rows), wanted,
                [&](std::int64_t row) { return rows[static_cast<std::size_t>(row)]; });
  }
  void expect_rows(const Tensor& found, const Tensor& wanted,
                   const std::function<std::int64_t(std::int64_t)>& row_of) const {
    const std::int64_t each = wanted.element_count() / wanted.shape()[0];
    for (std::int64_t i = 0; i < found.element_count(); ++i) {
      const double a = found.at(i), b = wanted.at(row_of(i / each) * each + i % each);
      ASSERT_TRUE(a == b || (a != a && b != b)) << i << ": " << a << " is not " << b;
    }
  }
  void expect_all(const SampleSource& source) const {
    for (const char* name : {"i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "bool", "few",
                             "rising", "gaps", "nested"})
      expect(source, name, name);
    expect(source, "lists", "flat");
    expect(source, "fixed", "flat");
    expect(source, "image", "picture");
    expect(source, "in.a", "i4");
    expect(source, "in.b", "f4");
  }
  std::string refusal_of(const std::string& name) const {
    try {
      const auto source = opened(name);
      for (std::size_t i = 0; i < source->arrays().size(); ++i) read_whole(*source, i);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  // Whatever becomes of the file, it is read or refused with its name.
  void damage(const std::string& name, std::size_t times) {
    const std::string whole = read_text_file(folder / name);
    for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / times) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ 0x24);
      check_damaged(bytes);
      check_damaged(whole.substr(0, at));
    }
  }
  void check_damaged(const std::string& bytes) {
    write_file_atomically(folder / "damaged", std::string_view(bytes));
    const std::string refusal = refusal_of("damaged");
    EXPECT_TRUE(refusal.empty() || refusal.find("damaged") != std::string::npos) << refusal;
  }

  const ScratchFolder folder;
  NamedTensors expected;
};

TEST_F(ColumnSources, OfParquetInEveryPacking) {
  ASSERT_NO_FATAL_FAILURE(write(R"(
table = table.drop(['category'])
for packing in ['none', 'snappy', 'gzip', 'zstd', 'lz4']:
    pq.write_table(table, packing + '.parquet', compression=packing, row_group_size=110, data_page_size=512, write_page_checksum=True)
pq.write_table(table, 'second.parquet', data_page_version='2.0', data_page_size=512, use_dictionary=False)
pq.write_table(table, 'large.parquet', row_group_size=1000)
)"));
  if (IsSkipped()) return;
  for (const char* name : {"none", "snappy", "gzip", "zstd", "lz4", "second", "large"}) {
    SCOPED_TRACE(name);
    const auto source = opened(std::string(name) + ".parquet");
    expect_all(*source);
    for (const char* other : {"'word' (", "'when' (times)", "'money' (decimal numbers)", "'image.path' ("})
      EXPECT_TRUE(std::ranges::any_of(source->others(), [&](const std::string& each) {
        return each.starts_with(other);
      })) << other;
  }
}

TEST_F(ColumnSources, OfParquetInEveryEncoding) {
  ASSERT_NO_FATAL_FAILURE(write(R"(
def encoded(name, encodings, version):
    own = table.select(list(encodings))
    pq.write_table(own, name, use_dictionary=False, column_encoding=encodings, data_page_version=version, data_page_size=700)
for version in ['1.0', '2.0']:
    encoded(f'a{version}', {'i4': 'DELTA_BINARY_PACKED', 'i8': 'DELTA_BINARY_PACKED', 'rising': 'DELTA_BINARY_PACKED', 'wide': 'DELTA_BINARY_PACKED', 'f4': 'BYTE_STREAM_SPLIT',
                            'f8': 'BYTE_STREAM_SPLIT', 'bool': 'RLE', 'u2': 'DELTA_BINARY_PACKED', 'few': 'BYTE_STREAM_SPLIT'}, version)
    pictures = pa.table({'png': pa.array([png(i) for i in range(n)], pa.binary())})
    for encoding in ['DELTA_LENGTH_BYTE_ARRAY', 'DELTA_BYTE_ARRAY', 'PLAIN']:
        pq.write_table(pictures, encoding + version, use_dictionary=False, column_encoding={'png': encoding}, data_page_version=version)
)"));
  if (IsSkipped()) return;
  for (const std::string version : {"1.0", "2.0"}) {
    const auto source = opened("a" + version);
    for (const char* name : {"i4", "i8", "rising", "wide", "f4", "f8", "bool", "u2", "few"})
      expect(*source, name, name);
    for (const char* encoding : {"DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "PLAIN"})
      expect(*opened(encoding + version), "png", "picture");
  }
}

TEST_F(ColumnSources, OfArrowFilesAndStreams) {
  ASSERT_NO_FATAL_FAILURE(write(R"(
table = table.append_column('tensor', pa.chunked_array([tensor]))
table = table.append_column('view', table['word'].cast(pa.string_view()))
table = table.append_column('after', table['i4'])
for packing in ['uncompressed', 'lz4', 'zstd']:
    options = ipc.IpcWriteOptions(compression=None if packing == 'uncompressed' else packing)
    for name, writer in [('file', ipc.new_file), ('stream', ipc.new_stream)]:
        with writer(f'{name}-{packing}', table.schema, options=options) as out: out.write_table(table, max_chunksize=110)
feather.write_feather(table.drop(['view']), 'table.feather')
# A slice that does not begin with the first row, and lists of it.
with ipc.new_stream('slice', table.schema) as out:
    out.write_table(table.slice(0, 13)); out.write_table(table.slice(13))
)"));
  if (IsSkipped()) return;
  for (const char* name : {"file-uncompressed", "file-lz4", "file-zstd", "stream-uncompressed", "stream-lz4",
                           "stream-zstd", "table.feather", "slice"}) {
    SCOPED_TRACE(name);
    const auto source = opened(name);
    expect_all(*source);
    expect(*source, "tensor", "picture");
    expect(*source, "after", "i4");
    EXPECT_TRUE(std::ranges::any_of(
        source->others(), [](const std::string& each) { return each.starts_with("'category' ("); }));
  }
}

TEST_F(ColumnSources, AreJoinedAsTheColumnsOfTextTables) {
  ASSERT_NO_FATAL_FAILURE(write(R"(
import numpy as np
own = pa.table({f'x{i}': flat[:, i] for i in range(6)} | {'label': plain['i1'].astype('i8')})
pq.write_table(own, 'numbered.parquet')
mixed = pa.table({'age': plain['u1'], 'mass': plain['f4'], 'target0': plain['f8']})
pq.write_table(mixed, 'mixed.parquet')
feather.write_feather(mixed, 'mixed.feather')
large = pa.table({'a': plain['i8'], 'b': plain['f4'], 'target0': plain['f8']})
pq.write_table(large, 'large.parquet')
np.savez('expected.npz', flat=flat, label=plain['i1'].astype('i8'), mixed=np.stack([plain['u1'].astype('f8'), plain['f4'].astype('f8')], 1))
)"));
  if (IsSkipped()) return;
  const auto source = opened(
      "numbered.parquet",
      {.wanted = {{.name = "x", .row = Shape{6}}, {.name = "class", .type = ElementType::i64, .row = {}}}});
  expect(*source, "x", "flat");
  expect(*source, "class", "label");
  const SourceRequest two{
      .wanted = {{.name = "input", .row = Shape{2}}, {.name = "target0", .row = Shape{}}}};
  for (const char* name : {"mixed.parquet", "mixed.feather"}) {
    const auto mixed = opened(name, two);
    expect(*mixed, "input", "mixed");
    ASSERT_EQ(mixed->notes().size(), 1u);
    EXPECT_EQ(mixed->notes()[0], "'input' is made of the columns age, mass");
  }
  expect_error(ErrorCode::bad_file, {"large.parquet", "'a'", "more than 15 digits"}, [&] {
    const auto source = opened("large.parquet", two);
    read_whole(*source, find_array(*source, "input"));
  });
}

TEST_F(ColumnSources, ThatMissAValueAreRefusedWithTheirRow) {
  ASSERT_NO_FATAL_FAILURE(write(R"(
whole = pa.table({'x': pa.array([None if i == 40 else i for i in range(n)], pa.int32())})
lists = pa.table({'x': pa.array([[1., 2.]] * 40 + [[1.]] + [[3., 4.]] * 9)})
first = pa.table({'x': pa.array([[], [1.]]), 'y': pa.array([1, 2])})
both = [('whole', whole), ('lists', lists), ('first', first)]
for name, own in both:
    pq.write_table(own, name + '.parquet')
    feather.write_feather(own, name + '.feather', compression='uncompressed')
nothing = table.slice(0, 0)
pq.write_table(nothing, 'nothing.parquet')
)"));
  if (IsSkipped()) return;
  for (const std::string ending : {".parquet", ".feather"}) {
    SCOPED_TRACE(ending);
    expect_error(ErrorCode::bad_file, {"whole" + ending, "row 41, 'x'", "has no value"},
                 [&] { read_whole(*opened("whole" + ending), 0); });
    expect_error(ErrorCode::bad_file, {"lists" + ending, "row 41, 'x'", "a list of another length"},
                 [&] { read_whole(*opened("lists" + ending), 0); });
    const auto skipped = opened("lists" + ending, {.skip_broken = true});
    EXPECT_EQ(skipped->arrays()[0].rows, 49);
    const std::int64_t rows[] = {39, 40};
    EXPECT_EQ(read_rows(*skipped, 0, rows).at(2), 3);
    const auto first = opened("first" + ending);
    ASSERT_EQ(first->arrays().size(), 1u);
    EXPECT_EQ(first->others(), std::vector<std::string>{"'x' (lists, the first of which is empty)"});
  }
  expect_error(ErrorCode::bad_file, {"nothing.parquet", "no rows"}, [&] { opened("nothing.parquet"); });
}

// Several groups of rows, pages and lists; numbers of every type.
TEST_F(ColumnSources, ThatAreWrittenHereAreReadByApacheArrow) {
  ASSERT_NO_FATAL_FAILURE(write(R"(
long = np.random.default_rng(1).normal(size=(n, 40, 30)).astype('f4')
np.savez('in.npz', long=long, flat=flat, nested=nested, picture=picture, **plain)
)"));
  if (IsSkipped()) return;
  ThreadPool pool(3);
  convert_samples(*open_source(folder / "in.npz"), {.out = folder / "out.parquet"}, pool);
  ASSERT_TRUE(run_python(python_with("numpy, pyarrow, PIL"), folder / ".", R"(
import io
import numpy as np, pyarrow.parquet as pq
from PIL import Image
wanted, table = np.load('in.npz'), pq.read_table('out.parquet', page_checksum_verification=True)
assert set(table.column_names) == set(wanted.files), table.column_names
for name in wanted.files:
    if name == 'picture':
        found = np.stack([np.asarray(Image.open(io.BytesIO(png))).transpose(2, 0, 1) for png in table[name].to_pylist()])
    else:
        found = np.array(table[name].to_pylist())
        kind = table.schema.field(name).type
        while hasattr(kind, 'value_type'): kind = kind.value_type
        assert np.dtype(kind.to_pandas_dtype()) == wanted[name].dtype, (name, kind)
    assert found.shape == wanted[name].shape and (found == wanted[name]).all(), name
)"));
}

// Columns of all kinds and types in files of all sizes of groups and pages, packed in all ways; an array of
// NumPy for each that is read.
constexpr const char* draws_tables = R"(
import random
import numpy as np, pyarrow as pa, pyarrow.parquet as pq, pyarrow.ipc as ipc

def column(r, g, n, name):
    t = r.choice(['i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'f4', 'f8', 'bool'])
    kind, type = r.choice(['flat', 'list', 'large', 'nest', 'fixed', 'struct', 'gaps', 'gaps in lists']), pa.from_numpy_dtype(np.dtype(t))
    def draw(*shape):
        return g.normal(size=shape).astype(t) if t[0] == 'f' else g.integers(0, 2 if t == 'bool' else r.choice([3, 100]), shape).astype(t)
    def fixed(a):
        return pa.FixedSizeListArray.from_arrays(fixed(a.reshape(-1, a.shape[2])) if a.ndim > 2 else pa.array(a.ravel()), a.shape[1])
    if kind == 'struct':
        a, b = draw(n), draw(n, 2)
        return pa.StructArray.from_arrays([pa.array(a), fixed(b)], ['p', 'q']), {name + '.p': a, name + '.q': b}
    if kind.startswith('gaps'):
        a = g.normal(size=n if kind == 'gaps' else (n, 3))
        missing = g.random(a.shape) < .3
        whole, a[missing] = a.copy(), np.nan
        if kind == 'gaps': return pa.array(whole, mask=missing), {name: a}
        return pa.array([[None if v != v else v for v in row] for row in a.tolist()], pa.list_(pa.float64())), {name: a}
    a = draw(n, *[r.randint(1, 4) for _ in range({'flat': 0, 'nest': 2, 'fixed': r.randint(1, 2)}.get(kind, 1))])
    if kind == 'fixed': return fixed(a), {name: a}
    for i in range(a.ndim - 1): type = pa.large_list(type) if kind == 'large' else pa.list_(type)
    return pa.array(a.tolist(), type), {name: a}

for seed in range(25):
    r, g = random.Random(seed), np.random.default_rng(seed)
    n = r.choice([1, 2, 7, 64, 500])
    columns, wanted = {}, {}
    for k in range(r.randint(1, 7)):
        columns[f'c{k}'], arrays = column(r, g, n, f'c{k}')
        wanted |= arrays
    table = pa.table(columns)
    np.savez(f'{seed}.npz', **wanted)
    pq.write_table(table, f'{seed}.parquet', compression=r.choice(['none', 'snappy', 'zstd', 'gzip', 'lz4']), row_group_size=r.choice([1, 5, 100, 5000]),
                   data_page_size=r.choice([64, 1000, 1 << 20]), data_page_version=r.choice(['1.0', '2.0']), use_dictionary=r.choice([True, False]),
                   write_page_index=r.choice([True, False]), dictionary_pagesize_limit=r.choice([50, 1 << 20]))
    with r.choice([ipc.new_file, ipc.new_stream])(f'{seed}.arrow', table.schema, options=ipc.IpcWriteOptions(compression=r.choice([None, 'lz4', 'zstd']))) as out:
        out.write_table(table.slice(n // 3), max_chunksize=r.choice([3, 100, 10000]))
        out.write_table(table.slice(0, n // 3), max_chunksize=2)
)";

TEST_F(ColumnSources, OfTablesDrawnAtRandom) {
  const std::string python = python_with("numpy, pyarrow");
  if (python.empty()) GTEST_SKIP() << "pyarrow is not installed: tools/setup-oracles installs it";
  ASSERT_TRUE(run_python(python, folder / ".", draws_tables));
  for (int seed = 0; seed < 25; ++seed) {
    for (const auto& [name, wanted] : read_npz(folder / (std::to_string(seed) + ".npz"))) {
      const std::int64_t rows = wanted.shape()[0];
      for (const bool arrow : {false, true}) {
        const std::string file = std::to_string(seed) + (arrow ? ".arrow" : ".parquet");
        SCOPED_TRACE(file + " " + name);
        const auto source = opened(file);
        const std::size_t at = find_array(*source, name);
        ASSERT_LT(at, source->arrays().size());
        ASSERT_EQ(source->arrays()[at].shape(), wanted.shape());
        ASSERT_EQ(source->arrays()[at].type, wanted.type());
        // In a file of Arrow the first third comes last.
        expect_rows(read_whole(*source, at), wanted,
                    [&](std::int64_t row) { return arrow ? (row + rows / 3) % rows : row; });
      }
    }
  }
}

// A column that nobody asks for may miss what it likes.
TEST_F(ColumnSources, ThatAreNotWantedMayMissValues) {
  ASSERT_NO_FATAL_FAILURE(write(R"(
own = pa.table({'count': pa.array([None] * n, pa.int32()), 'x': plain['f4'], 'note': pa.array([None] + ['a'] * (n - 1))})
pq.write_table(own, 'own.parquet')
np.savez('expected.npz', x=plain['f4'])
)"));
  if (IsSkipped()) return;
  expect(*opened("own.parquet", {.wanted = {{.name = "x", .row = Shape{}}}}), "x", "x");
  expect_error(ErrorCode::bad_file, {"row 1, 'count'", "has no value"}, [&] {
    const auto source = opened("own.parquet");
    read_whole(*source, find_array(*source, "count"));
  });
}

TEST_F(ColumnSources, ThatAreDamagedAreRefusedByName) {
  ASSERT_NO_FATAL_FAILURE(write(R"(
small = table.slice(0, 40).drop(['category'])
pq.write_table(small, 'small.parquet', data_page_size=300)
pq.write_table(small.select(['f4']), 'sum.parquet', write_page_checksum=True, compression='none', use_dictionary=False)
feather.write_feather(small, 'small.feather', compression='uncompressed')
feather.write_feather(small, 'packed.feather', compression='zstd')
open('encrypted', 'wb').write(b'PARE' + bytes(40) + b'PARE')
open('old', 'wb').write(b'FEA1' + bytes(40) + b'FEA1')
)"));
  if (IsSkipped()) return;
  for (const char* name : {"small.parquet", "small.feather", "packed.feather"}) damage(name, 60);
  std::string bytes = read_text_file(folder / "sum.parquet");
  bytes[100] = static_cast<char>(bytes[100] ^ 1);
  write_file_atomically(folder / "sum.parquet", std::string_view(bytes));
  EXPECT_NE(refusal_of("sum.parquet").find("the checksum of a page is another"), std::string::npos)
      << refusal_of("sum.parquet");
  EXPECT_NE(refusal_of("encrypted").find("is encrypted"), std::string::npos) << refusal_of("encrypted");
  EXPECT_NE(refusal_of("old").find("Feather of version 1"), std::string::npos) << refusal_of("old");
}

// By hand, as its description has them: new bytes, copies by one, two and four bytes, one that reaches into
// itself.
TEST(Snappy, UnpacksWhatItsDescriptionSays) {
  const auto unpacked = [](const std::string& packed, std::size_t size) {
    std::string to(size, '?');
    return unpack_snappy(std::as_bytes(std::span(packed)), std::as_writable_bytes(std::span(to))) ? to
                                                                                                  : "refused";
  };
  using namespace std::string_literals;
  EXPECT_EQ(unpacked("\x05\x10hello"s, 5), "hello");
  EXPECT_EQ(unpacked("\x0a\x00"
                     "a\x15\x01"s,
                     10),
            "aaaaaaaaaa");
  EXPECT_EQ(unpacked("\x06\x08"
                     "abc\x0a\x03\x00"s,
                     6),
            "abcabc");
  EXPECT_EQ(unpacked("\x06\x08"
                     "abc\x0b\x03\x00\x00\x00"s,
                     6),
            "abcabc");
  EXPECT_EQ(unpacked("\x05\xf0\x04hello"s, 5), "hello");
  EXPECT_EQ(unpacked("\x05\x10hell"s, 5), "refused");
  EXPECT_EQ(unpacked("\x06\x10hello"s, 5), "refused");
  EXPECT_EQ(unpacked("\x06\x08"
                     "abc\x0a\x04\x00"s,
                     6),
            "refused");
  EXPECT_EQ(unpacked(""s, 0), "refused");
}

}  // namespace
}  // namespace superstep::data
