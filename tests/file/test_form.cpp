// Files told apart by their bytes, whatever they are called, and TIFF beside tifffile.
#include <gtest/gtest.h>

#include "superstep/base/file.h"
#include "superstep/file/form.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/image_stack.h"
#include "superstep/file/npy.h"
#include "superstep/file/npz.h"
#include "superstep/file/safetensors.h"
#include "superstep/file/tiff.h"
#include "tests/expect_error.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

Tensor images() {
  Tensor tensor(ElementType::f32, {2, 3, 4});
  for (std::int64_t i = 0; i < 24; ++i) tensor.set(i, static_cast<double>(i));
  return tensor;
}

TEST(Form, IsWhatTheBytesSay) {
  const ScratchFolder folder;
  write_npy(folder / "a.h5", images());
  write_npz(folder / "b.npy", {{"x", images()}});
  write_safetensors(folder / "c.csv", {{{"x", images()}}, {}});
  {
    Hdf5Writer writer(folder / "d.tif");
    writer.write("x", images());
    writer.close();
  }
  TiffWriter tiff(folder / "e.npz", TiffCompression::none);
  tiff.add_page(std::vector<std::uint8_t>(4), 2, 2);
  tiff.close();
  write_file_atomically(folder / "f.h5", std::string_view("x,y\n1,2\n"));
  write_file_atomically(folder / "g.npy", std::string_view("\x01\x02\x03\xff", 4));
  write_file_atomically(folder / "h.csv", std::string_view());
  const std::pair<const char*, FileForm> forms[] = {
      {"a.h5", FileForm::npy},    {"b.npy", FileForm::npz},   {"c.csv", FileForm::safetensors},
      {"d.tif", FileForm::hdf5},  {"e.npz", FileForm::tiff},  {"f.h5", FileForm::text},
      {"g.npy", FileForm::other}, {"h.csv", FileForm::other}, {"none.h5", FileForm::other}};
  for (const auto& [name, form] : forms) EXPECT_EQ(form_of(folder / name), form) << name;
  EXPECT_TRUE(is_text(folder / "f.h5", {".csv"}));
  EXPECT_FALSE(is_text(folder / "c.csv", {".csv"}));
  EXPECT_TRUE(is_text(folder / "h.csv", {".csv"})) << "by its name, where it holds nothing";
  EXPECT_TRUE(ends_in("A.TIF", {".tif"}));
  EXPECT_EQ(read_image_stack(folder / "a.h5", "x").at(23), 23);
  EXPECT_EQ(read_image_stack(folder / "d.tif", "x").at(23), 23);
  EXPECT_EQ(read_image_stack(folder / "e.npz", "x").shape(), (Shape{1, 2, 2}));
  expect_error(ErrorCode::bad_file, {"f.h5", "this is a text"},
               [&] { read_image_stack(folder / "f.h5", "x"); });
}

// A user block before the file's own mark.
TEST(Form, AnHdf5FileMayBeginLater) {
  const ScratchFolder folder;
  write_file_atomically(folder / "a.dat", std::string(512, 'u') + std::string("\x89HDF\r\n\x1a\n", 8));
  EXPECT_EQ(form_of(folder / "a.dat"), FileForm::hdf5);
}

constexpr const char* write_tiffs = R"(
import numpy as np, tifffile
def values(dtype, shape=(5, 6, 7)):
    return (np.arange(np.prod(shape)).reshape(shape) * 3 % 251).astype(dtype)
for dtype in ('u1', 'u2', 'u4', 'i1', 'i2', 'i4', 'f2', 'f4', 'f8'):
    for order in '<>':
        name = f'{dtype}_{"little" if order == "<" else "big"}'
        tifffile.imwrite(f'{name}.tif', values(dtype), byteorder=order, photometric='minisblack', metadata=None)
        if dtype in ('u1', 'u2', 'f4'):
            tifffile.imwrite(f'imagej_{name}.TIF', values(dtype), byteorder=order, imagej=True)
for dtype in ('u1', 'u2', 'u4'):
    tifffile.imwrite(f'white_{dtype}.tif', np.iinfo(dtype).max - values(dtype), photometric='miniswhite', metadata=None)
    tifffile.imwrite(f'white_{dtype}_lzw.tif', np.iinfo(dtype).max - values(dtype), photometric='miniswhite', compression='deflate', metadata=None)
tifffile.imwrite('white_i2.tif', values('i2'), photometric='miniswhite', metadata=None)
# One directory for all planes, as ImageJ writes stacks.
import struct
for order, name in (('<', 'little'), ('>', 'big')):
    planes = values('u2')
    text = b'ImageJ=1.54f\nimages=5\nslices=5\nloop=false\n\0'
    start = 8 + 2 + 10 * 12 + 4
    tags = [(256, 4, 1, 7), (257, 4, 1, 6), (258, 3, 1, 16), (259, 3, 1, 1), (262, 3, 1, 1), (270, 2, len(text), start), (273, 4, 1, start + len(text)),
            (277, 3, 1, 1), (278, 3, 1, 6), (279, 4, 1, 84)]
    head = struct.pack(order + '2sHI', b'II' if order == '<' else b'MM', 42, 8) + struct.pack(order + 'H', len(tags))
    for tag, kind, count, value in tags:
        head += struct.pack(order + 'HHI', tag, kind, count) + (struct.pack(order + 'HH', value, 0) if kind == 3 else struct.pack(order + 'I', value))
    whole = head + struct.pack(order + 'I', 0) + text + planes.astype(order + 'u2').tobytes()
    open(f'one_directory_{name}.tif', 'wb').write(whole)
    open(f'cut_{name}.TIFF', 'wb').write(whole[:-100])
assert (tifffile.imread('one_directory_little.tif') == values('u2')).all()
assert (tifffile.imread('one_directory_big.tif') == values('u2')).all()
)";

TEST(TiffOracles, PagesAreWhatTifffileWrote) {
  const std::string python = python_with("tifffile, numpy");
  if (python.empty())
    GTEST_SKIP()
        << "no Python with the packages tifffile, numpy was found: tools/setup-oracles installs them";
  const ScratchFolder folder;
  ASSERT_TRUE(run_python(python, folder / "", write_tiffs));
  int read = 0, refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "")) {
    const std::string name = entry.path().filename().string();
    if (!ends_in(entry.path(), {".tif", ".tiff"})) continue;
    if (name.starts_with("cut_") || name == "white_i2.tif") {
      EXPECT_THROW(read_tiff(entry.path()), Error) << name;
      ++refused;
      continue;
    }
    const Tensor pages = read_image_stack(entry.path(), "");
    EXPECT_EQ(pages.shape(), (Shape{5, 6, 7})) << name;
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < pages.element_count(); ++i) {
      const std::int64_t value = i * 3 % 251;
      wrong +=
          pages.at(i) != static_cast<double>(name.starts_with("i1") && value > 127 ? value - 256 : value);
    }
    EXPECT_EQ(wrong, 0) << name;
    ++read;
  }
  EXPECT_EQ(read, 18 + 6 + 6 + 2);
  EXPECT_EQ(refused, 3);
}

}  // namespace
}  // namespace superstep::data
