// Samples of any form written in another: the same elements, or no file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>

#include "superstep/base/encoding/sha256.h"
#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/convert/convert.h"
#include "superstep/file/convert/sample_writer.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npz.h"
#include "superstep/file/source/forms.h"
#include "tests/expect_error.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

constexpr std::int64_t samples = 37;

Tensor filled(ElementType type, Shape shape, std::int64_t modulus, double scale = 1) {
  Tensor tensor(type, std::move(shape));
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, scale * static_cast<double>(i * 7919 % modulus));
  return tensor;
}

// What every form holds: pictures, gray and in color, numbers of all sorts, one and many a sample.
NamedTensors usual_arrays() {
  Tensor large = filled(ElementType::i64, {samples, 2}, 1000);
  large.as<std::int64_t>()[5] = (std::int64_t{1} << 62) + 1;  // a double does not hold it
  large.as<std::int64_t>()[6] = std::numeric_limits<std::int64_t>::min();
  return {{"image", filled(ElementType::u8, {samples, 3, 9, 14}, 256)},
          {"mask", filled(ElementType::u8, {samples, 1, 9, 14}, 256)},
          {"x", filled(ElementType::f32, {samples, 4, 3}, 1001, -0.1)},
          {"half", filled(ElementType::f16, {samples, 5}, 97, 0.125)},
          {"label", filled(ElementType::i64, {samples}, 10)},
          {"large", large},
          {"byte", filled(ElementType::i8, {samples, 1}, 100)},
          {"word", filled(ElementType::u16, {samples, 2, 3, 3}, 65536)},
          {"yes", filled(ElementType::boolean, {samples}, 2)}};
}

class Convert : public testing::Test {
 protected:
  Converted convert(const std::string& in, ConvertRequest request) {
    request.out = folder / request.out;
    return convert_samples(*open_source(folder / in), request, pool);
  }
  // Nothing is left beside what was there.
  void expect_only(const std::vector<std::string>& names) const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "."))
      found.push_back(entry.path().filename().string());
    std::ranges::sort(found);
    EXPECT_EQ(found, names);
  }

  const ScratchFolder folder;
  ThreadPool pool{3};
};

// A name for what a form writes: some have no ending of their own.
std::string name_of(const WriterForm& form, const std::string& stem) {
  return stem + std::string(form.endings.empty() ? ".zarr" : form.endings.front());
}

TEST_F(Convert, EveryFormHoldsTheSameElements) {
  write_npz(folder / "in.npz", usual_arrays());
  for (const WriterForm& form : writer_forms()) {
    const std::string out = name_of(form, "out");
    const Converted done = convert("in.npz", {.out = out, .form = form.name});
    EXPECT_EQ(done.form, form.name);
    EXPECT_EQ(done.samples, samples);
    ASSERT_EQ(done.arrays.size(), 9u);
    // Back again, by way of the form: what is flat there is brought to its shape.
    SourceRequest wanted;
    for (const ConvertedArray& each : done.arrays) wanted.wanted.push_back(each.array);
    const auto source = open_source(folder / out, wanted);
    for (const ConvertedArray& each : done.arrays) {
      const Tensor found = read_whole(*source, find_array(*source, each.name)).converted(each.array.type),
                   given = usual_arrays().at(each.name);
      ASSERT_EQ(found.shape(), given.shape()) << form.name << ' ' << each.name;
      EXPECT_EQ(std::memcmp(found.bytes(), given.bytes(), given.byte_count()), 0)
          << form.name << ' ' << each.name;
      Sha256 sum;
      sum.add({given.bytes(), given.byte_count()});
      EXPECT_EQ(each.sha256, sum.hexadecimal()) << form.name << ' ' << each.name;
    }
  }
}

TEST_F(Convert, FromEveryFormIntoHdf5) {
  write_npz(folder / "in.npz", usual_arrays());
  for (const WriterForm& form : writer_forms()) {
    const std::string between = name_of(form, "between");
    convert("in.npz", {.out = between, .form = form.name, .arrays = {"image", "label", "large"}});
    const Converted done = convert(between, {.out = "out.h5"});
    EXPECT_EQ(done.arrays.size(), 3u) << form.name;
    const Hdf5File file(folder / "out.h5");
    EXPECT_EQ(file.read("image", ElementType::u8).at(1234), usual_arrays().at("image").at(1234)) << form.name;
    EXPECT_EQ(file.info("image").shape, (Shape{samples, 3, 9, 14})) << form.name;
    EXPECT_EQ(file.read("large", ElementType::i64).as<std::int64_t>()[5], (std::int64_t{1} << 62) + 1)
        << form.name;
  }
}

TEST_F(Convert, EqualSamplesAreEqualArchivesOnAnyNumberOfThreads) {
  write_npz(folder / "in.npz", usual_arrays());
  convert("in.npz", {.out = "a.tar"});
  ThreadPool alone(1);
  convert_samples(*open_source(folder / "in.npz"), {.out = folder / "b.tar"}, alone);
  EXPECT_EQ(read_text_file(folder / "a.tar"), read_text_file(folder / "b.tar"));
}

TEST_F(Convert, WhatSamplesShareGoesIntoFormsThatHoldIt) {
  NamedTensors arrays{{"x", filled(ElementType::f32, {samples, 3}, 10)},
                      {"y", filled(ElementType::f32, {samples}, 10)},
                      {"basis", filled(ElementType::f32, {4, 3}, 10)},
                      {"unit", Tensor::scalar(2.5f)}};
  write_npz(folder / "in.npz", arrays);
  const Converted done = convert("in.npz", {.out = "out.h5"});
  EXPECT_EQ(done.samples, samples);
  const Hdf5File file(folder / "out.h5");
  EXPECT_EQ(file.read("basis", ElementType::f32).shape(), (Shape{4, 3}));
  EXPECT_EQ(file.read("unit", ElementType::f32).at(0), 2.5);
  expect_error(ErrorCode::unsupported, {"in.npz", "'basis'", "4 rows where there are 37 samples", "--array"},
               [&] { convert("in.npz", {.out = "out.tar"}); });
  convert("in.npz", {.out = "out.tar", .arrays = {"x", "y"}});
  expect_only({"in.npz", "out.h5", "out.tar"});
}

// Of rows that fill chunks in part, in groups of their own, and shared ones beside them.
TEST_F(Convert, StoresOfZarrHoldManyChunks) {
  NamedTensors arrays{{"deep/x", filled(ElementType::f32, {samples, 300, 100}, 997, 0.5)},
                      {"deep/y", filled(ElementType::boolean, {samples}, 2)},
                      {"basis", filled(ElementType::f64, {4, 3}, 10)},
                      {"unit", Tensor::scalar(2.5f)}};
  write_npz(folder / "in.npz", arrays);
  for (const char* form : {"zarr", "zarr2"}) {
    const Converted done = convert("in.npz", {.out = "out.zarr", .form = form});
    EXPECT_EQ(done.samples, samples);
    const auto source = open_source(folder / "out.zarr");
    for (const auto& [name, tensor] : arrays) {
      const Tensor found = read_whole(*source, require_array(*source, name, "out.zarr"));
      ASSERT_EQ(found.byte_count(), tensor.byte_count()) << form << name;
      EXPECT_EQ(std::memcmp(found.bytes(), tensor.bytes(), tensor.byte_count()), 0) << form << name;
    }
  }
  expect_only({"in.npz", "out.zarr"});
  write_npz(folder / "names.npz", {{"../x", filled(ElementType::f32, {samples}, 10)}});
  expect_error(ErrorCode::unsupported, {"Zarr holds no arrays of such a name"},
               [&] { convert("names.npz", {.out = "names.zarr"}); });
  std::filesystem::create_directories(folder / "mine.zarr");
  write_file_atomically(folder / "mine.zarr/notes.txt", std::string_view("mine"));
  expect_error(ErrorCode::invalid_argument, {"mine.zarr", "other things in it"},
               [&] { convert("in.npz", {.out = "mine.zarr"}); });
  expect_error(ErrorCode::invalid_argument, {"in.npz", "is a file, and this form is a folder"},
               [&] { convert("out.zarr", {.out = "in.npz", .form = "zarr"}); });
}

constexpr const char* reads_stores = R"(
import json, sys
import numpy as np, zarr
expected = np.load('in.npz')
for name in ['three.zarr', 'two.zarr']:
    store = zarr.open_group(name, mode='r')
    for key in expected.files:
        assert np.array_equal(store[key][...], expected[key]), (name, key)
        assert store[key].dtype == expected[key].dtype, (name, key)
    assert store.metadata.zarr_format == (3 if name == 'three.zarr' else 2), name
)";

TEST_F(Convert, TheZarrPackageReadsItsStores) {
  const std::string python = python_with("numpy, zarr");
  if (python.empty()) GTEST_SKIP() << "numpy, zarr are not installed: tools/setup-oracles installs them";
  NamedTensors arrays = usual_arrays();
  arrays.insert(
      {{"deep/x", filled(ElementType::f32, {samples, 300, 100}, 997, 0.5)}, {"unit", Tensor::scalar(2.5f)}});
  write_npz(folder / "in.npz", arrays);
  convert("in.npz", {.out = "three.zarr"});
  convert("in.npz", {.out = "two.zarr", .form = "zarr2"});
  ASSERT_TRUE(run_python(python, folder / ".", reads_stores));
}

TEST_F(Convert, NamesOfClassesAreKeptWhereThereIsRoom) {
  std::filesystem::create_directories(folder / "in/cat");
  std::filesystem::create_directories(folder / "in/dog");
  write_npz(folder / "p.npz", {{"image", filled(ElementType::u8, {2, 1, 5, 6}, 256)}});
  convert("p.npz", {.out = "p.tar"});
  // The PNGs of the archive, as files of a folder a class.
  const std::string tar = read_text_file(folder / "p.tar");
  std::size_t at = 0;
  for (const char* name : {"in/cat/a.png", "in/dog/b.png"}) {
    at = tar.find("\x89PNG", at);
    const std::size_t end = tar.find("IEND", at) + 8;
    write_file_atomically(folder / name, std::string_view(tar).substr(at, end - at));
    at = end;
  }
  convert("in", {.out = "out.h5"});
  EXPECT_EQ(std::get<std::string>(Hdf5File(folder / "out.h5").attributes("label").at("classes")),
            R"(["cat","dog"])");
  const Converted done = convert("in", {.out = "out.tar"});
  ASSERT_EQ(done.notes.size(), 1u);
  EXPECT_NE(done.notes[0].find("2 classes of 'label' are not kept"), std::string::npos) << done.notes[0];
}

TEST_F(Convert, WhatAFormDoesNotHoldIsRefusedAndLeavesNoFile) {
  Tensor bad = filled(ElementType::f32, {samples}, 10);
  bad.as<float>()[20] = std::numeric_limits<float>::quiet_NaN();
  Tensor huge(ElementType::u64, {samples});
  huge.as<std::uint64_t>()[3] = std::uint64_t{1} << 63;
  write_npz(folder / "in.npz",
            {{"x", bad}, {"wide", filled(ElementType::f64, {samples}, 10)}, {"huge", huge}});
  write_file_atomically(folder / "out.jsonl", std::string_view("what was there\n"));
  const auto refused = [&](const std::string& out, const std::string& array,
                           std::initializer_list<std::string> parts) {
    expect_error(ErrorCode::unsupported, parts, [&] { convert("in.npz", {.out = out, .arrays = {array}}); });
  };
  refused("out.jsonl", "x", {"sample 21, array 'x'", "nan"});
  refused("out.jsonl", "huge", {"sample 4, array 'huge'"});
  refused("out.tfrecord", "huge", {"sample 4, array 'huge'"});
  refused("out.tfrecord", "wide", {"32 bits"});
  EXPECT_EQ(read_text_file(folder / "out.jsonl"), "what was there\n");
  expect_error(ErrorCode::invalid_argument, {"no array 'y'", "huge, wide, x"},
               [&] { convert("in.npz", {.out = "out.h5", .arrays = {"y"}}); });
  expect_error(ErrorCode::invalid_argument, {"out.dat", ".tfrecord"},
               [&] { convert("in.npz", {.out = "out.dat"}); });
  expect_error(ErrorCode::invalid_argument, {"no form 'hdf'", "hdf5"},
               [&] { convert("in.npz", {.out = "out", .form = "hdf"}); });
  expect_only({"in.npz", "out.jsonl"});
}

// A source that is another one when it is read again, as files on a failing disk are.
class Fickle : public SampleSource {
 public:
  const std::vector<SourceArray>& arrays() const override { return arrays_; }
  void read(std::span<const std::int64_t> rows, std::span<const RowsTo> to) const override {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] == 30) throw Error(ErrorCode::bad_file, "is damaged", place(0, 30));
      to[0].to[i] = std::byte{1};
    }
  }
  std::string place(std::size_t, std::int64_t row) const override { return "row " + std::to_string(row); }

 private:
  std::vector<SourceArray> arrays_{{.name = "x", .type = ElementType::u8, .row = Shape{}, .rows = samples}};
};

TEST_F(Convert, ADamagedSampleLeavesNoFile) {
  for (const WriterForm& form : writer_forms())
    expect_error(ErrorCode::bad_file, {"row 30"}, [&] {
      convert_samples(Fickle(), {.out = folder / name_of(form, "out"), .form = form.name}, pool);
    });
  expect_only({});
}

TEST_F(Convert, OthersReadWhatWasWritten) {
  const std::string python = python_with("numpy, PIL, webdataset, h5py");
  if (python.empty()) GTEST_SKIP() << "tools/setup-oracles installs them";
  write_npz(folder / "in.npz", usual_arrays());
  for (const char* out : {"o.tar", "o.h5", "o.npz", "o.jsonl"}) convert("in.npz", {.out = out});
  EXPECT_TRUE(run_python(python, folder / ".", R"(
import io, json, tarfile
import h5py, webdataset
import numpy as np
from PIL import Image
given = np.load('in.npz')
with h5py.File('o.h5') as file, np.load('o.npz') as npz:
    for name in given.files:
        assert (file[name][...] == given[name]).all(), name
        assert npz[name].dtype == given[name].dtype and (npz[name] == given[name]).all(), name
lines = [json.loads(line) for line in open('o.jsonl')]
assert (np.array([line['x'] for line in lines], 'f4') == given['x']).all()
count = 0
for i, sample in enumerate(webdataset.WebDataset('o.tar', shardshuffle=False)):
    assert sample['__key__'] == f'{i:09d}'
    assert int(sample['label.cls']) == given['label'][i]
    assert (np.array(Image.open(io.BytesIO(sample['image.png']))).transpose(2, 0, 1) == given['image'][i]).all()
    assert (np.array(Image.open(io.BytesIO(sample['mask.png']))) == given['mask'][i][0]).all()
    assert (np.load(io.BytesIO(sample['x.npy'])) == given['x'][i]).all()
    count += 1
assert count == len(given['x'])
)"));
}

}  // namespace
}  // namespace superstep::data
