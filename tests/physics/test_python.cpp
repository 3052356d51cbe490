// Files cross over to h5py and numpy and back.
#include <gtest/gtest.h>

#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npy.h"
#include "superstep/file/npz.h"
#include "superstep/file/tiff.h"
#include "superstep/physics/xray/bragg_generator.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

#define SUPERSTEP_NEED_PYTHON(python, packages)     \
  const std::string python = python_with(packages); \
  if (python.empty())                               \
  GTEST_SKIP() << "no Python with the packages " packages " was found: tools/setup-oracles installs them"

TEST(Python, H5pyReadsWhatIsWritten) {
  SUPERSTEP_NEED_PYTHON(python, "h5py, numpy");
  const ScratchFolder folder;
  ThreadPool pool(2);
  BraggPatchGenerator({}).write({folder / "peaks.h5", 9, 50, &pool});
  Hdf5Writer file(folder / "types.h5");
  for (const ElementType type : {ElementType::f16, ElementType::boolean, ElementType::u16, ElementType::i64})
    file.write(name_of(type), Tensor::full(type, {3}, 1));
  file.write("packed", Tensor::full(ElementType::f32, {100, 5}, 2), {.chunk_rows = 10, .deflate = 6});
  file.write_strings("words", std::vector<std::string>{"a", "µ"});
  file.close();
  EXPECT_TRUE(run_python(python, folder / "", R"(
import h5py, json, numpy
f = h5py.File('peaks.h5')
assert f['patch'].shape == (50, 11, 11) and f['patch'].dtype == 'f4'
assert f['ploc'].shape == (50, 2) and f['ploc'][:].min() > 0.25 and f['ploc'][:].max() < 0.65
assert f.attrs['synthetic'] == 1 and f.attrs['generator'].decode() == 'braggnn' and f.attrs['seed'] == 9
assert json.loads(f.attrs['parameters'])['patch_size'] == 11
assert f['angle'].attrs['unit'].decode() == 'rad'
assert numpy.allclose(f['center_x'][:] / 11, f['ploc'][:, 0])
t = h5py.File('types.h5')
assert t['f16'].dtype == 'f2' and t['bool'].dtype == 'bool' and t['u16'].dtype == 'u2' and t['i64'].dtype == 'i8'
assert t['bool'][0] and t['f16'][2] == 1
assert t['packed'].compression == 'gzip' and t['packed'][99, 4] == 2
assert list(t['words'].asstr()) == ['a', '\u00b5']
)"));
}

TEST(Python, FilesOfH5pyAreRead) {
  SUPERSTEP_NEED_PYTHON(python, "h5py, numpy");
  const ScratchFolder folder;
  ASSERT_TRUE(run_python(python, folder / "", R"(
import h5py, numpy
with h5py.File('a.h5', 'w') as f:
    f['big'] = numpy.arange(6, dtype='>i4').reshape(2, 3)
    f['half'] = numpy.array([0.5, -2], 'f2')
    f['mask'] = numpy.array([True, False])
    f['wave'] = numpy.array([1 + 2j, 3 - 4j], 'c8')
    f['fixed'] = numpy.array([b'ab', b'c'])
    f['text'] = ['x', 'longer']
    f.create_dataset('entry/data', data=numpy.arange(10000, dtype='u2'), chunks=(1000,), compression='gzip', shuffle=True, fletcher32=True)
    f.attrs['flag'] = True
    f.attrs['scale'] = 0.5
    f.attrs['name'] = 'scan 7'
with h5py.File('latest.h5', 'w', libver='latest') as f:
    f['x'] = numpy.arange(5.0)
)"));
  const Hdf5File file(folder / "a.h5");
  EXPECT_EQ(file.read("big", ElementType::i32).at(5), 5);
  EXPECT_EQ(file.info("half").type, ElementType::f16);
  EXPECT_EQ(file.read("half", ElementType::f32).at(1), -2);
  EXPECT_EQ(file.info("mask").type, ElementType::boolean);
  EXPECT_EQ(file.read("mask", ElementType::f32).at(0), 1);
  EXPECT_EQ(file.read("wave", ElementType::f32).at(3), -4);
  EXPECT_EQ(file.read_strings("fixed"), (std::vector<std::string>{"ab", "c"}));
  EXPECT_EQ(file.read_strings("text"), (std::vector<std::string>{"x", "longer"}));
  EXPECT_EQ(file.read_rows("entry/data", ElementType::f32, 9999, 1).at(0), 9999);
  EXPECT_EQ(std::get<std::int64_t>(file.attributes().at("flag")), 1);
  EXPECT_EQ(std::get<double>(file.attributes().at("scale")), 0.5);
  EXPECT_EQ(std::get<std::string>(file.attributes().at("name")), "scan 7");
  EXPECT_EQ(Hdf5File(folder / "latest.h5").read("x", ElementType::f64).at(4), 4);
}

// The package is the one that beamlines write with; its plugin reads.
TEST(Python, BitshuffledFilesOfH5pyAreRead) {
  SUPERSTEP_NEED_PYTHON(python, "h5py, numpy, bitshuffle.h5");
  const ScratchFolder folder;
  ASSERT_TRUE(run_python(python, folder / "", R"(
import h5py, numpy
from bitshuffle.h5 import H5FILTER, H5_COMPRESS_LZ4
counts = (numpy.arange(6 * 32 * 32) ** 2 % 1009).astype('u2').reshape(6, 32, 32)
with h5py.File('scan.h5', 'w') as f:
    f.create_dataset('entry/data/data', data=counts, chunks=(1, 32, 32), compression=H5FILTER, compression_opts=(0, H5_COMPRESS_LZ4))
)"));
  const Tensor counts = Hdf5File(folder / "scan.h5").read("entry/data/data", ElementType::u16);
  ASSERT_EQ(counts.shape(), (Shape{6, 32, 32}));
  for (std::int64_t i = 0; i < counts.element_count(); ++i) ASSERT_EQ(counts.at(i), i * i % 1009) << i;
}

TEST(Python, TiffFilesCrossOver) {
  SUPERSTEP_NEED_PYTHON(python, "tifffile, PIL.Image, numpy");
  const ScratchFolder folder;
  const std::vector<std::uint8_t> grey = {0, 50, 100, 150, 200, 255};
  std::vector<std::uint8_t> colour;
  for (int i = 0; i < 18; ++i) colour.push_back(static_cast<std::uint8_t>(14 * i));
  for (const auto& [name, compression] : {std::pair{"none.tif", TiffCompression::none},
                                          {"lzw.tif", TiffCompression::lzw},
                                          {"deflate.tif", TiffCompression::deflate}}) {
    TiffWriter file(folder / name, compression);
    file.add_page(grey, 3, 2);
    file.add_page(grey, 3, 2);
    file.close();
  }
  TiffWriter rgb(folder / "rgb.tif", TiffCompression::deflate);
  rgb.add_page(colour, 3, 2, 3);
  rgb.close();
  ASSERT_TRUE(run_python(python, folder / "", R"(
import numpy, tifffile
from PIL import Image
grey = numpy.array([[0, 50, 100], [150, 200, 255]], 'u1')
colour = (14 * numpy.arange(18)).astype('u1').reshape(2, 3, 3)
assert (tifffile.imread('none.tif') == [grey, grey]).all()
for name in ('none.tif', 'lzw.tif', 'deflate.tif'):
    assert (numpy.asarray(Image.open(name)) == grey).all(), name
assert (numpy.asarray(Image.open('rgb.tif')) == colour).all()
tifffile.imwrite('theirs.tif', numpy.arange(24, dtype='f4').reshape(2, 3, 4), photometric='minisblack')
Image.fromarray(colour).save('pil.tif', compression='tiff_lzw')
)"));
  const Tensor theirs = read_tiff(folder / "theirs.tif"), pil = read_tiff(folder / "pil.tif");
  ASSERT_EQ(theirs.shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(theirs.at(23), 23);
  ASSERT_EQ(pil.shape(), (Shape{1, 2, 3, 3}));
  EXPECT_EQ(pil.at(17), 14 * 17);
}

TEST(Python, NumpyReadsWhatIsWritten) {
  SUPERSTEP_NEED_PYTHON(python, "numpy");
  const ScratchFolder folder;
  Tensor tensor(ElementType::f32, {2, 3});
  for (int i = 0; i < 6; ++i) tensor.set(i, i);
  write_npy(folder / "a.npy", tensor);
  write_npy(folder / "scalar.npy", Tensor::scalar(std::int64_t{-7}));
  write_npz(folder / "b.npz", {{"x", tensor}, {"y", Tensor::full(ElementType::boolean, {4}, 1)}});
  EXPECT_TRUE(run_python(python, folder / "", R"(
import numpy
a = numpy.load('a.npy')
assert a.dtype == 'f4' and (a == numpy.arange(6).reshape(2, 3)).all()
assert numpy.load('scalar.npy') == -7
b = numpy.load('b.npz')
assert sorted(b.files) == ['x', 'y'] and (b['x'] == a).all() and b['y'].dtype == 'bool' and b['y'].all()
)"));
}

TEST(Python, FilesOfNumpyAreRead) {
  SUPERSTEP_NEED_PYTHON(python, "numpy");
  const ScratchFolder folder;
  ASSERT_TRUE(run_python(python, folder / "", R"(
import io, numpy, zipfile
a = numpy.arange(24, dtype='f8').reshape(2, 3, 4)
numpy.save('c.npy', a)
numpy.save('fortran.npy', numpy.asfortranarray(a))
numpy.save('half.npy', a.astype('f2'))
numpy.save('complex.npy', a.astype('c16') * 1j)
numpy.save('text.npy', numpy.array(['a']))
numpy.savez_compressed('packed.npz', a=a, b=numpy.zeros(100000, 'i1'))
with zipfile.ZipFile('zip64.npz', 'w') as z:
    with z.open('a.npy', 'w', force_zip64=True) as entry:
        numpy.save(entry, a)
)"));
  for (const char* name : {"c.npy", "fortran.npy", "half.npy"}) {
    const Tensor tensor = read_npy(folder / name);
    ASSERT_EQ(tensor.shape(), (Shape{2, 3, 4})) << name;
    for (int i = 0; i < 24; ++i) EXPECT_EQ(tensor.at(i), i) << name;
  }
  const Tensor complex = read_npy(folder / "complex.npy");
  EXPECT_EQ(complex.shape(), (Shape{2, 3, 4, 2}));
  EXPECT_EQ(complex.at(47), 23);
  EXPECT_THROW(read_npy(folder / "text.npy"), Error);
  EXPECT_EQ(read_npz(folder / "packed.npz").at("a").at(23), 23);
  EXPECT_EQ(read_npz(folder / "packed.npz").at("b").shape(), (Shape{100000}));
  EXPECT_EQ(read_npz(folder / "zip64.npz").at("a").at(7), 7);
}

}  // namespace
}  // namespace superstep::data
