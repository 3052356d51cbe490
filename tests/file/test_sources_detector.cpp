// Frames of detectors, volumes and pages as sources of samples.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npz.h"
#include "superstep/file/source/forms.h"
#include "superstep/file/tiff.h"
#include "tests/expect_error.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

template <class T>
std::string bytes_of(const std::vector<T>& values, bool swapped = false) {
  std::string bytes;
  for (const T value : values) {
    std::string one(sizeof value, '\0');
    std::memcpy(one.data(), &value, sizeof value);
    if (swapped) std::ranges::reverse(one);
    bytes += one;
  }
  return bytes;
}

std::string padded(std::string header, std::size_t length, const std::string& end) {
  header.resize(length - end.size(), ' ');
  return header + end;
}

class DetectorSources : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((folder / name).parent_path());
    write_file_atomically(folder / name, std::string_view(bytes));
  }
  Tensor whole(const std::string& name, const SourceRequest& request = {}) const {
    return read_whole(*open_source(folder / name, request), 0);
  }
  void expect(const Tensor& found, const Shape& shape, const std::vector<double>& values) const {
    ASSERT_EQ(found.shape(), shape);
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(found.at(static_cast<std::int64_t>(i)), values[i]) << i;
  }
  // Cut anywhere, and with any byte of its beginning changed, it is read or refused with its name.
  void damage(const std::string& name) const {
    const std::string sound = read_text_file(folder / name), ending = std::filesystem::path(name).extension();
    for (std::size_t at = 0; at < sound.size(); at += 1 + sound.size() / 100) {
      std::string changed = sound;
      changed[at] = static_cast<char>(changed[at] ^ 0x15);
      for (const std::string& bytes : {changed, sound.substr(0, at)}) {
        write("damaged" + ending, bytes);
        try {
          whole("damaged" + ending);
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find("damaged"), std::string::npos) << error.what();
        }
      }
    }
  }
  const ScratchFolder folder;
};

std::string edf(const std::string& numbers, const std::string& type,
                const std::string& order = "LowByteFirst", const std::string& more = "") {
  return padded("{\nHeaderID = EH:000001 ;\nByteOrder = " + order + " ;\nDataType = " + type +
                    " ;\nDim_1 = 3 ;\nDim_2 = 2 ;\n" + more,
                512, "}\n") +
         numbers;
}

TEST_F(DetectorSources, OfEdfFrames) {
  const std::vector<std::uint16_t> a = {1, 2, 3, 40000, 5, 6}, b = {7, 8, 9, 10, 11, 65535};
  write("a.edf",
        edf(bytes_of(a), "UnsignedShort") + edf(bytes_of(b, true), "UnsignedShort", "HighByteFirst"));
  expect(whole("a.edf"), {2, 2, 3}, {1, 2, 3, 40000, 5, 6, 7, 8, 9, 10, 11, 65535});
  const auto source = open_source(folder / "a.edf");
  EXPECT_EQ(source->arrays()[0].name, "frames");
  EXPECT_EQ(source->arrays()[0].type, ElementType::u16);
  EXPECT_NE(source->place(0, 1).find("a.edf: frame 2"), std::string::npos);
  // As a consumer wants them.
  const SourceRequest wanted{.wanted = {{.name = "patch", .type = ElementType::f32, .row = Shape{1, 2, 3}}}};
  EXPECT_EQ(open_source(folder / "a.edf", wanted)->arrays()[0].name, "patch");
  EXPECT_EQ(whole("a.edf", wanted).shape(), (Shape{2, 1, 2, 3}));
  damage("a.edf");
}

TEST_F(DetectorSources, OfAFolderOfFramesInTheOrderOfTheirNumbers) {
  for (const int i : {10, 2, 1})
    write("scan/frame_" + std::to_string(i) + ".edf",
          edf(bytes_of(std::vector<float>(6, static_cast<float>(i))), "FloatValue"));
  write("scan/.notes", "hidden");
  const Tensor frames = whole("scan");
  ASSERT_EQ(frames.shape(), (Shape{3, 2, 3}));
  EXPECT_EQ(frames.at(0), 1);
  EXPECT_EQ(frames.at(6), 2);
  EXPECT_EQ(frames.at(12), 10);
  write("scan/frame_11.edf", edf(bytes_of(std::vector<std::int32_t>(6, 1)), "SignedInteger"));
  expect_error(ErrorCode::bad_file, {"frame_11.edf", "3 x 2 i32, the first is 3 x 2 f32"},
               [&] { whole("scan"); });
}

TEST_F(DetectorSources, WhatIsNotReadOfEdfIsNamed) {
  const std::string numbers(24, '\1');
  write("packed.edf", edf(numbers, "SignedInteger", "LowByteFirst", "COMPRESSION = GZip ;\n"));
  expect_error(ErrorCode::unsupported, {"packed.edf", "'GZip'"}, [&] { whole("packed.edf"); });
  write("type.edf", edf(numbers, "ComplexFloat"));
  expect_error(ErrorCode::unsupported, {"type.edf", "'ComplexFloat'"}, [&] { whole("type.edf"); });
  write("short.edf", edf(numbers.substr(1), "SignedInteger"));
  expect_error(ErrorCode::bad_file, {"short.edf", "is cut short", "3 x 2 needs 24 bytes"},
               [&] { whole("short.edf"); });
  write("deep.edf", edf(numbers, "SignedByte", "LowByteFirst", "Dim_3 = 4 ;\n"));
  expect_error(ErrorCode::unsupported, {"deep.edf", "three dimensions"}, [&] { whole("deep.edf"); });
  std::string huge = edf(numbers, "SignedInteger");
  huge.replace(huge.find("Dim_1 = 3"), 9, "Dim_1 = 999999999999999999999 ");
  write("huge.edf", huge);
  expect_error(ErrorCode::bad_file, {"huge.edf", "'dim_1'"}, [&] { whole("huge.edf"); });
}

TEST_F(DetectorSources, OfImgFrames) {
  const std::vector<std::uint16_t> numbers = {1, 2, 3, 4, 5, 60000};
  write("a.img",
        padded("{\nHEADER_BYTES=  512;\nDIM=2;\nBYTE_ORDER=big_endian;\nTYPE=unsigned_short;\nSIZE1=3;\n"
               "SIZE2=2;\n}\n\f\n",
               512, "") +
            bytes_of(numbers, true));
  expect(whole("a.img"), {1, 2, 3}, {1, 2, 3, 4, 5, 60000});
  damage("a.img");
}

std::string cbf(const std::string& packed, const std::string& packing = "x-CBF_BYTE_OFFSET") {
  return "###CBF: VERSION 1.5\r\n\r\ndata_frame\r\n_array_data.data\r\n;\r\n--CIF-BINARY-FORMAT-SECTION--\r\n"
         "Content-Type: application/octet-stream;\r\n     conversions=\"" +
         packing + "\"\r\nX-Binary-Size: " + std::to_string(packed.size()) +
         "\r\nX-Binary-Element-Type: \"signed 32-bit integer\"\r\nX-Binary-Size-Fastest-Dimension: 3\r\n"
         "X-Binary-Size-Second-Dimension: 2\r\n\r\n\x0c\x1a\x04\xd5" +
         packed + "\r\n--CIF-BINARY-FORMAT-SECTION----\r\n";
}

TEST_F(DetectorSources, OfCbfFrames) {
  // 5, -1, 299, 100299, -2, 2000000000 by differences of one, one, two, four, four and four bytes.
  std::string packed("\x05\xfa\x80\x2c\x01", 5);
  packed += std::string("\x80\x00\x80", 3) + bytes_of(std::vector<std::int32_t>{100000});
  packed += std::string("\x80\x00\x80", 3) + bytes_of(std::vector<std::int32_t>{-100301});
  packed += std::string("\x80\x00\x80", 3) + bytes_of(std::vector<std::int32_t>{2000000002});
  write("a.cbf", cbf(packed));
  expect(whole("a.cbf"), {1, 2, 3}, {5, -1, 299, 100299, -2, 2000000000});
  damage("a.cbf");
  write("other.cbf", cbf(packed, "x-CBF_PACKED"));
  expect_error(ErrorCode::unsupported, {"other.cbf", "x-CBF_PACKED"}, [&] { whole("other.cbf"); });
  std::string narrow = cbf(packed);
  narrow.replace(narrow.find("signed 32-bit integer"), 21, "unsigned short int   ");
  write("narrow.cbf", narrow);
  expect_error(ErrorCode::unsupported, {"narrow.cbf", "another width"}, [&] { whole("narrow.cbf"); });
  write("few.cbf", cbf("\x05\x05"));
  expect_error(ErrorCode::bad_file, {"few.cbf", "fewer numbers"}, [&] { whole("few.cbf"); });
  // Differences have 32 bits as the pixels have, and wrap round with them; those of eight bytes are taken.
  std::string round = std::string("\x80\x00\x80", 3) + bytes_of(std::vector<std::int32_t>{2000000000});
  round += std::string("\x80\x00\x80", 3) + bytes_of(std::vector<std::int32_t>{1000000000});
  round += std::string("\x80\x00\x80\x00\x00\x00\x80", 7) + bytes_of(std::vector<std::int64_t>{1}) +
           "\x01\x01\x01";
  write("round.cbf", cbf(round));
  expect(whole("round.cbf"), {1, 2, 3},
         {2000000000, 3000000000.0 - 4294967296.0, 3000000001.0 - 4294967296.0});
}

// dim, datatype, vox_offset, scl_slope, scl_inter.
std::string nifti(std::vector<std::int16_t> dim, std::int16_t type, float slope, float add,
                  const std::string& numbers, bool swapped = false) {
  std::string header(352, '\0');
  const auto put = [&]<class T>(std::size_t at, T value) {
    header.replace(at, sizeof value, bytes_of(std::vector<T>{value}, swapped));
  };
  put(0, std::int32_t{348});
  dim.resize(8, 1);
  for (std::size_t i = 0; i < 8; ++i) put(40 + 2 * i, dim[i]);
  put(70, type);
  put(108, 352.0F);
  put(112, slope);
  put(116, add);
  header.replace(344, 4, std::string("n+1\0", 4));
  return header + numbers;
}

TEST_F(DetectorSources, OfNiftiVolumes) {
  const std::vector<std::int16_t> numbers = {1, 2, 3, 4, 5, -6, 7, 8, 9, 10, 11, 12};
  const std::vector<double> expected(numbers.begin(), numbers.end());
  for (const bool swapped : {false, true}) {
    write("a.nii", nifti({3, 3, 2, 2}, 4, 0, 0, bytes_of(numbers, swapped), swapped));
    expect(whole("a.nii"), {1, 2, 2, 3}, expected);
    EXPECT_EQ(whole("a.nii").type(), ElementType::i16);
    write("t.nii", nifti({4, 3, 2, 1, 2}, 4, 0, 0, bytes_of(numbers, swapped), swapped));
    expect(whole("t.nii"), {2, 1, 2, 3}, expected);
  }
  write("s.nii", nifti({3, 3, 2, 2}, 4, 0.5F, 10, bytes_of(numbers)));
  EXPECT_EQ(whole("s.nii").type(), ElementType::f32);
  EXPECT_EQ(whole("s.nii").at(5), 7);
  damage("s.nii");
  write("short.nii", nifti({3, 3, 2, 3}, 4, 0, 0, bytes_of(numbers)));
  expect_error(ErrorCode::bad_file, {"short.nii", "cut short"}, [&] { whole("short.nii"); });
  write("rgb.nii", nifti({3, 3, 2, 2}, 128, 0, 0, bytes_of(numbers)));
  expect_error(ErrorCode::unsupported, {"rgb.nii", "type 128"}, [&] { whole("rgb.nii"); });
  write("zero.nii", nifti({3, 3, 0, 2}, 4, 0, 0, bytes_of(numbers)));
  expect_error(ErrorCode::bad_file, {"zero.nii", "extents"}, [&] { whole("zero.nii"); });
}

TEST_F(DetectorSources, OfPagesOfATiff) {
  TiffWriter writer(folder / "stack.tif", TiffCompression::deflate);
  for (std::uint8_t page = 0; page < 3; ++page) writer.add_page(std::vector<std::uint8_t>(20, page), 5, 4);
  writer.close();
  const Tensor pages = whole("stack.tif");
  ASSERT_EQ(pages.shape(), (Shape{3, 4, 5}));
  EXPECT_EQ(pages.at(59), 2);
}

// entry/detector/counts is what `default` and `signal` lead to, entry/mask another of the same shape.
void write_nexus(const std::filesystem::path& path, int version) {
  Hdf5Writer writer(path);
  writer.write("entry/mask", Tensor(ElementType::u8, {3, 2, 4}));
  writer.write("entry/detector/counts", Tensor::full(ElementType::u16, {3, 2, 4}, 7));
  if (version == 0) {
    writer.set_attribute("", "default", std::string("entry"));
    writer.set_attribute("entry", "default", std::string("detector"));
  }
  if (version <= 1) writer.set_attribute("entry/detector", "signal", std::string("counts"));
  if (version == 2) writer.set_attribute("entry/detector/counts", "signal", std::int64_t{1});
  if (version == 3) writer.set_attribute("entry/detector", "signal", std::string("none"));
  writer.close();
}

TEST_F(DetectorSources, OfANexusFileTheSignalIsWhatIsMeant) {
  const SourceRequest wanted{.wanted = {{.name = "patch", .type = ElementType::f32, .row = Shape{1, 2, 4}}}};
  for (const int version : {0, 1, 2}) {
    write_nexus(folder / "scan.nxs", version);
    const auto source = open_source(folder / "scan.nxs", wanted);
    const std::size_t at = find_array(*source, "patch");
    ASSERT_LT(at, source->arrays().size()) << version;
    const Tensor patches = read_whole(*source, at);
    EXPECT_EQ(patches.shape(), (Shape{3, 1, 2, 4}));
    EXPECT_EQ(patches.at(23), 7);
    ASSERT_EQ(source->notes().size(), 1u);
    EXPECT_NE(source->notes()[0].find("'patch' is the file's signal by NeXus, 'entry/detector/counts'"),
              std::string::npos);
    // Without a wish every data set has its own name.
    EXPECT_EQ(open_source(folder / "scan.nxs")->arrays()[0].name, "entry/detector/counts");
  }
  write_nexus(folder / "scan.nxs", 3);
  const auto source = open_source(folder / "scan.nxs", wanted);
  EXPECT_EQ(find_array(*source, "patch"), source->arrays().size());
  const SourceRequest other{.wanted = {{.name = "patch", .type = ElementType::f32, .row = Shape{5, 5}}}};
  write_nexus(folder / "scan.nxs", 0);
  EXPECT_EQ(find_array(*open_source(folder / "scan.nxs", other), "patch"), 2u);
}

TEST_F(DetectorSources, AsTheirOwnToolsWriteThem) {
  const std::string python = python_with("numpy, fabio, nibabel");
  if (python.empty()) GTEST_SKIP() << "fabio and nibabel are not installed";
  ASSERT_TRUE(run_python(python, folder / ".", R"(
import numpy as np, fabio, nibabel
rng = np.random.default_rng(3)
x = rng.integers(-2**31, 2**31, (9, 14)).astype('i4')
x[:4] >>= 20; x[4:6] >>= 26
u = (x & 0xffff).astype('u2')
v = rng.random((4, 5, 6)).astype('f4')
np.savez('expected.npz', x=x, u=u, v=v.transpose(2, 1, 0))
fabio.cbfimage.CbfImage(x).write('x.cbf')
fabio.edfimage.EdfImage(u).write('u.edf')
fabio.adscimage.AdscImage(u).write('u.img')
nibabel.save(nibabel.Nifti1Image(v, np.eye(4)), 'v.nii')
nibabel.save(nibabel.Nifti1Image(v, np.eye(4)), 'v.nii.gz')
)"));
  const NamedTensors expected = read_npz(folder / "expected.npz");
  for (const auto& [name, array] : std::vector<std::pair<std::string, std::string>>{
           {"x.cbf", "x"}, {"u.edf", "u"}, {"u.img", "u"}, {"v.nii", "v"}, {"v.nii.gz", "v"}}) {
    const Tensor found = whole(name), &wanted = expected.at(array);
    EXPECT_EQ(found.type(), wanted.type()) << name;
    ASSERT_EQ(found.element_count(), wanted.element_count()) << name;
    for (std::int64_t i = 0; i < found.element_count(); ++i)
      ASSERT_EQ(found.at(i), wanted.at(i)) << name << ' ' << i;
  }
}

}  // namespace
}  // namespace superstep::data
