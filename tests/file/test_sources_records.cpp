// Web data sets, TFRecord and JSON lines as sources of samples, written by those who made these forms.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/npz.h"
#include "superstep/file/records/crc32c.h"
#include "superstep/file/source/forms.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

// The same ten samples in every form; numbers that floats and JSON hold exactly.
constexpr const char* samples = R"(
import io, json, tarfile
import numpy as np
from PIL import Image
rng = np.random.default_rng(7)
x = rng.integers(-99, 99, (10, 4, 3)).astype(np.float32) / 8
count = rng.integers(0, 1 << 40, (10, 2))
label = np.arange(10) * 77 % 10 + 300
picture = rng.integers(0, 256, (10, 3, 24, 24), dtype=np.uint8)
def png(i):
    held = io.BytesIO()
    Image.fromarray(picture[i].transpose(1, 2, 0)).save(held, 'png')
    return held.getvalue()
np.savez('expected.npz', x=x, count=count, label=label, picture=picture)
)";

class RecordSources : public testing::Test {
 protected:
  // Skips where the packages are missing.
  void write(const std::string& packages, const std::string& script) {
    const std::string python = python_with(packages);
    if (python.empty()) GTEST_SKIP() << packages << " are not installed: tools/setup-oracles installs them";
    ASSERT_TRUE(run_python(python, folder / ".", samples + script));
    expected = read_npz(folder / "expected.npz");
  }
  std::unique_ptr<SampleSource> opened(const std::string& name, const SourceRequest& request = {}) const {
    return open_source(folder / name, request);
  }
  // All rows of an array are those that were written.
  void expect(const SampleSource& source, const std::string& array, const std::string& written) const {
    const std::size_t at = find_array(source, array);
    ASSERT_LT(at, source.arrays().size()) << array;
    const Tensor found = read_whole(source, at), &wanted = expected.at(written);
    ASSERT_EQ(found.element_count(), wanted.element_count()) << array;
    for (std::int64_t i = 0; i < found.element_count(); ++i)
      ASSERT_EQ(found.at(i), wanted.at(i)) << array << ' ' << i;
  }
  std::string refusal_of(const std::string& name, const SourceRequest& request = {}) const {
    try {
      const auto source = opened(name, request);
      for (std::size_t i = 0; i < source->arrays().size(); ++i) read_whole(*source, i);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  // Whatever becomes of the file, it is read or refused with its name.
  void damage(const std::string& name,
              const std::function<void(std::string& bytes, std::size_t at)>& change) {
    const std::string whole = read_text_file(folder / name);
    for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / 61) {
      std::string bytes = whole;
      change(bytes, at);
      write_file_atomically(folder / ("damaged_" + name), std::string_view(bytes));
      const std::string refusal = refusal_of("damaged_" + name);
      if (!refusal.empty()) EXPECT_NE(refusal.find("damaged_"), std::string::npos) << refusal;
    }
  }
  void damage_and_cut(const std::string& name) {
    damage(name, [](std::string& bytes, std::size_t at) { bytes[at] = static_cast<char>(bytes[at] ^ 0x24); });
    damage(name, [](std::string& bytes, std::size_t at) { bytes.resize(at); });
  }

  const ScratchFolder folder;
  NamedTensors expected;
};

const SourceRequest wanted{.wanted = {{.name = "image", .type = ElementType::u8, .row = Shape{3, 24, 24}},
                                      {.name = "target", .type = ElementType::i64, .row = Shape{}},
                                      {.name = "x", .type = ElementType::f32, .row = Shape{12}}}};

constexpr const char* writes_tar = R"(
import webdataset
def write(name, begin, end, **options):
    with webdataset.TarWriter(name, **options) as archive:
        for i in range(begin, end):
            archive.write({'__key__': f'train/{i:06d}', 'png': png(i), 'cls': int(label[i]), 'x.npy': x[i],
                           'json': {'count': count[i].tolist(), 'name': 'a word'}, 'txt': 'words'})
write('all.tar', 0, 10)
write('shard-000.tar', 0, 4)
write('shard-001.tar', 4, 9)
write('shard-002.tar', 9, 10)
write('packed.tar.gz', 0, 10, compress=True)
# The ways that tars have of writing long names.
for name, form in [('gnu.tar', tarfile.GNU_FORMAT), ('pax.tar', tarfile.PAX_FORMAT)]:
    with tarfile.open(name, 'w', format=form) as archive:
        for i in range(10):
            member = tarfile.TarInfo('folder/' * 40 + f'{i}.cls')
            member.size = 3
            archive.addfile(member, io.BytesIO(b'%d' % label[i]))
# Members that lead elsewhere: they are left out, or are names and no more.
with tarfile.open('hostile.tar', 'w') as archive:
    link = tarfile.TarInfo('0.cls'); link.type = tarfile.SYMTYPE; link.linkname = '/etc/passwd'
    archive.addfile(link)
    device = tarfile.TarInfo('1.cls'); device.type = tarfile.CHRTYPE
    archive.addfile(device)
    for name in ['../../up.cls', '/etc/absolute.cls']:
        member = tarfile.TarInfo(name); member.size = 1
        archive.addfile(member, io.BytesIO(b'5'))
)";

TEST_F(RecordSources, OfAWebDataSet) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL, webdataset", writes_tar));
  if (IsSkipped()) return;
  for (const std::string name : {"all.tar", "shard-{000..002}.tar", "shard-*.tar"}) {
    const auto source = opened(name);
    ASSERT_EQ(source->arrays().size(), 4u) << name;
    expect(*source, "png", "picture");
    expect(*source, "cls", "label");
    expect(*source, "x", "x");
    expect(*source, "count", "count");
    EXPECT_EQ(source->others().size(), 2u);
  }
  expect(*opened("packed.tar.gz"), "png", "picture");
  const auto source = opened("all.tar", wanted);
  expect(*source, "image", "picture");
  expect(*source, "target", "label");
  expect(*source, "x", "x");
  EXPECT_EQ(source->arrays()[find_array(*source, "x")].row, Shape{12});
  EXPECT_NE(source->place(0, 3).find("all.tar: sample 4"), std::string::npos) << source->place(0, 3);
}

TEST_F(RecordSources, OfTarsWithLongNames) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL, webdataset", writes_tar));
  if (IsSkipped()) return;
  for (const char* name : {"gnu.tar", "pax.tar"}) expect(*opened(name), "cls", "label");
}

TEST_F(RecordSources, OfATarThatLeadsElsewhereAreItsOwnBytes) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL, webdataset", writes_tar));
  if (IsSkipped()) return;
  const auto source = opened("hostile.tar");
  EXPECT_EQ(source->arrays()[0].rows, 2);
  const Tensor labels = read_whole(*source, 0);
  EXPECT_EQ(labels.at(0), 5);
  EXPECT_EQ(labels.at(1), 5);
}

TEST_F(RecordSources, OfADamagedTarAreRefused) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL, webdataset", writes_tar));
  if (IsSkipped()) return;
  damage_and_cut("shard-002.tar");
}

// By Google's protocol buffers, of the messages as example.proto and feature.proto of TensorFlow declare
// them.
constexpr const char* writes_tfrecord = R"(
import struct
import crc32c
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
file = descriptor_pb2.FileDescriptorProto(name='e.proto', package='t', syntax='proto3')
def message(name, *fields, parent=None):
    made = (parent.nested_type if parent else file.message_type).add(name=name)
    for number, (field, kind, repeated) in enumerate(fields, 1):
        each = made.field.add(name=field, number=number, label=3 if repeated else 1)
        if isinstance(kind, int): each.type = kind
        else: each.type, each.type_name = 11, kind
    return made
message('BytesList', ('value', 12, True))
message('FloatList', ('value', 2, True))
message('Int64List', ('value', 3, True))
message('Feature', ('bytes_list', '.t.BytesList', False), ('float_list', '.t.FloatList', False), ('int64_list', '.t.Int64List', False))
features = message('Features', ('feature', '.t.Features.FeatureEntry', True))
entry = message('FeatureEntry', ('key', 9, False), ('value', '.t.Feature', False), parent=features)
entry.options.map_entry = True
message('Example', ('features', '.t.Features', False))
pool = descriptor_pool.DescriptorPool()
pool.Add(file)
Example = message_factory.GetMessageClass(pool.FindMessageTypeByName('t.Example'))
def masked(data):
    sum = crc32c.crc32c(data)
    return struct.pack('<I', ((sum >> 15 | sum << 17) + 0xa282ead8) & 0xffffffff)
def write(name, begin, end):
    with open(name, 'wb') as out:
        for i in range(begin, end):
            example = Example()
            feature = example.features.feature
            feature['image/encoded'].bytes_list.value.append(png(i))
            feature['image/class/label'].int64_list.value.append(int(label[i]))
            feature['x'].float_list.value.extend(x[i].ravel().tolist())
            feature['count'].int64_list.value.extend(count[i].tolist())
            feature['key'].bytes_list.value.append(b'a word')
            data = example.SerializeToString()
            length = struct.pack('<Q', len(data))
            out.write(length + masked(length) + data + masked(data))
write('all.tfrecord', 0, 10)
write('part-0', 0, 6)
write('part-1', 6, 10)
)";

TEST_F(RecordSources, OfTfRecord) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL, crc32c, google.protobuf", writes_tfrecord));
  if (IsSkipped()) return;
  for (const std::string name : {"all.tfrecord", "part-{0,1}"}) {
    const auto source = opened(name);
    ASSERT_EQ(source->arrays().size(), 4u) << name;
    expect(*source, "image/encoded", "picture");
    expect(*source, "image/class/label", "label");
    expect(*source, "x", "x");
    expect(*source, "count", "count");
    EXPECT_EQ(source->others(), (std::vector<std::string>(source->others().size(), "'key' (6 bytes)")));
  }
  const auto source = opened("all.tfrecord", wanted);
  expect(*source, "image", "picture");
  expect(*source, "target", "label");
}

TEST_F(RecordSources, OfADamagedTfRecordAreRefused) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL, crc32c, google.protobuf", writes_tfrecord));
  if (IsSkipped()) return;
  damage_and_cut("part-1");
  // One bit of a record's bytes: its checksum says so.
  std::string bytes = read_text_file(folder / "part-1");
  bytes[100] = static_cast<char>(bytes[100] ^ 1);  // behind the length of the first record
  write_file_atomically(folder / "bit", std::string_view(bytes));
  EXPECT_NE(refusal_of("bit").find("is damaged: its checksum is another"), std::string::npos)
      << refusal_of("bit");
  const auto source = opened("bit", {.skip_broken = true});
  EXPECT_EQ(source->arrays()[0].rows, 3);
  ASSERT_EQ(source->notes().size(), 1u);
  EXPECT_NE(source->notes()[0].find("bit: record "), std::string::npos) << source->notes()[0];
}

TEST(Crc32c, IsTheOneOfItsStandard) {
  const std::vector<std::byte> zeros(32), ones(32, std::byte{0xff});
  EXPECT_EQ(crc32c(zeros), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(ones), 0x62a8ab43u);
}

constexpr const char* writes_lines = R"(
import pandas
rows = [{'x': x[i].tolist(), 'label': int(label[i]), 'more': {'count': count[i].tolist()}, 'name': 'word', 'none': None}
        for i in range(10)]
pandas.DataFrame(rows).to_json('all.jsonl', orient='records', lines=True)
open('blank.json', 'w').write('\n'.join(json.dumps(row) + '\r\n' for row in rows))
)";

TEST_F(RecordSources, OfJsonLines) {
  ASSERT_NO_FATAL_FAILURE(write("numpy, PIL, pandas", writes_lines));
  if (IsSkipped()) return;
  for (const char* name : {"all.jsonl", "blank.json"}) {
    const auto source = opened(name);
    expect(*source, "x", "x");
    expect(*source, "label", "label");
    expect(*source, "more.count", "count");
  }
  expect(*opened("all.jsonl", wanted), "target", "label");
  damage_and_cut("all.jsonl");
}

TEST_F(RecordSources, OfJsonLinesThatDifferAreRefusedWithTheirLine) {
  const auto refused = [&](std::string_view text, const std::string& words) {
    write_file_atomically(folder / "a.jsonl", text);
    EXPECT_NE(refusal_of("a.jsonl").find(words), std::string::npos) << refusal_of("a.jsonl");
  };
  refused("{\"x\": [1, 2]}\n{\"x\": [1, 2, 3]}\n",
          "a.jsonl:2, 'x': has the shape [3], in the first record [2]");
  refused("{\"x\": 1}\n\n{\"x\": 1.5}\n",
          "a.jsonl:3, 'x': is 1.5, and the first record has whole numbers there");
  refused("{\"x\": 1}\n{\"y\": 1}\n", "a.jsonl:2, 'x': is not there");
  refused("{\"x\": 1}\n{\"x\": \"1\"}\n", "a.jsonl:2, 'x': is of another kind than in the first record");
  refused("{\"x\": [[1], [2, 3]]}\n", "a.jsonl:1: 'x' has rows of several lengths");
  refused("{\"x\": 1\n", "a.jsonl:1: is no JSON object");
  refused("[1, 2]\n", "is no JSON object");
  refused("", "a.jsonl");
  refused(std::string(100000, '[') + "\n", "is no JSON object");
}

}  // namespace
}  // namespace superstep::data
