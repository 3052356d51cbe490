#include <gtest/gtest.h>
#include <hdf5.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

#include "superstep/base/file.h"
#include "superstep/file/check.h"
#include "superstep/file/hdf5/hdf5.h"
#include "tests/expect_error.h"
#include "tests/file_size_limit.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

Tensor ramp(ElementType type, const Shape& shape) {
  Tensor tensor(type, shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, static_cast<double>(type == ElementType::boolean ? i % 2 : i % 100));
  return tensor;
}

void write_one(const std::filesystem::path& path, const std::string& name, const Tensor& tensor,
               const Layout& layout = {}) {
  Hdf5Writer writer(path);
  writer.write(name, tensor, layout);
  writer.close();
}

TEST(Hdf5, EveryElementTypeComesBackAndConverts) {
  const ScratchFolder folder;
  Hdf5Writer writer(folder / "a.h5");
  for (const ElementType type : all_element_types) writer.write(name_of(type), ramp(type, {3, 4}));
  writer.close();
  const Hdf5File file(folder / "a.h5");
  for (const ElementType stored : all_element_types) {
    EXPECT_EQ(file.info(name_of(stored)).type, stored);
    for (const ElementType wanted : all_element_types) {
      const Tensor back = file.read(name_of(stored), wanted);
      EXPECT_EQ(back.type(), wanted);
      const double expected = wanted == ElementType::boolean || stored == ElementType::boolean ? 1 : 11;
      EXPECT_EQ(back.at(11), expected) << name_of(stored) << " read as " << name_of(wanted);
    }
  }
}

// The library would clip them and cut fractions off: other numbers, without a word.
TEST(Hdf5, NumbersThatAnIntegerTypeCannotHoldAreRefused) {
  const ScratchFolder folder;
  const auto file = folder / "a.h5";
  const auto refused = [&](const Tensor& stored, ElementType wanted, const std::string& why) {
    write_one(file, "x", stored);
    expect_error(ErrorCode::bad_file, {"a.h5", "'x'", why, name_of(wanted)},
                 [&] { Hdf5File(file).read("x", wanted); });
  };
  refused(Tensor::from<std::int32_t>({2}, {5, 70000}), ElementType::u16, "70000 at [1]");
  refused(Tensor::from<std::int32_t>({2}, {5, -5}), ElementType::u16, "-5 at [1]");
  refused(Tensor::from<std::int64_t>({1}, {1L << 40}), ElementType::i32, "1099511627776");
  refused(Tensor::from<std::uint64_t>({1}, {1UL << 63}), ElementType::i64, "at [0]");
  refused(Tensor::from<float>({3}, {0, 1, 0.5F}), ElementType::u8, "0.5 at [2]");
  refused(Tensor::from<double>({1}, {1e300}), ElementType::i64, "1e+300");
  const double infinity = std::numeric_limits<double>::infinity();
  refused(Tensor::from<double>({1}, {infinity}), ElementType::i64, "inf");
  refused(Tensor::from<double>({1}, {-infinity}), ElementType::i8, "-inf");
  refused(Tensor::from<double>({1}, {std::nan("")}), ElementType::i8, "nan");

  write_one(file, "x", Tensor::from<double>({3}, {-3, 0, 200}));
  EXPECT_EQ(Hdf5File(file).read("x", ElementType::i16).at(2), 200);  // whole numbers stay
  write_one(file, "x", Tensor::from<std::uint64_t>({1}, {(1UL << 60) + 1}));
  EXPECT_EQ(Hdf5File(file).read("x", ElementType::i64).as<std::int64_t>()[0], (1L << 60) + 1);
  write_one(file, "x", Tensor::from<double>({1}, {0.1}));
  EXPECT_EQ(Hdf5File(file).read("x", ElementType::f32).at(0), 0.1F);
  write_one(file, "x", Tensor::from<std::int64_t>({1}, {(1L << 53) + 1}));
  EXPECT_EQ(Hdf5File(file).read("x", ElementType::f64).at(0), static_cast<double>(1L << 53));
}

TEST(Hdf5, GroupsNestedDeepAreRefusedSoon) {
  const ScratchFolder folder;
  for (const int levels : {60, 400}) {
    const auto path = folder / (std::to_string(levels) + ".h5");
    hid_t at = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    for (int level = 0; level < levels; ++level) {
      const hid_t inner = H5Gcreate2(at, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
      level == 0 ? H5Fclose(at) : H5Gclose(at);
      at = inner;
    }
    H5Gclose(at);
  }
  EXPECT_TRUE(Hdf5File(folder / "60.h5").data_sets().empty());
  expect_error(ErrorCode::bad_file, {"400.h5", "deeper than 64"},
               [&] { Hdf5File(folder / "400.h5").data_sets(); });
}

TEST(Hdf5, RowsAndBlocks) {
  const ScratchFolder folder;
  Tensor tensor(ElementType::i32, {5, 4, 3});
  for (int i = 0; i < 60; ++i) tensor.set(i, i);
  write_one(folder / "a.h5", "group/x", tensor);
  const Hdf5File file(folder / "a.h5");
  EXPECT_EQ(file.read_rows("group/x", ElementType::f32, 3, 2).at(0), 36);
  const Tensor block = file.read_block("group/x", ElementType::i32, std::vector<std::int64_t>{1, 2, 1},
                                       std::vector<std::int64_t>{2, 1, 2});
  EXPECT_EQ(block.shape(), (Shape{2, 1, 2}));
  EXPECT_EQ(block.at(0), 12 + 6 + 1);
  EXPECT_EQ(block.at(3), 24 + 6 + 2);
  EXPECT_EQ(file.read_rows("group/x", ElementType::f32, 5, 0).element_count(), 0);
  expect_error(ErrorCode::invalid_argument, {"a.h5", "'group/x'", "outside its shape [5,4,3]"},
               [&] { file.read_rows("group/x", ElementType::f32, 4, 2); });
  expect_error(ErrorCode::invalid_argument, {"outside"}, [&] {
    file.read_rows("group/x", ElementType::f32, std::numeric_limits<std::int64_t>::max(), 2);
  });
}

TEST(Hdf5, GrowingAndCompressedDataSets) {
  const ScratchFolder folder;
  Hdf5Writer writer(folder / "a.h5");
  writer.create("rows", ElementType::f32, {0, 7}, {.extendable = true, .chunk_rows = 3, .deflate = 4});
  for (int first = 0; first < 10; first += 2)
    writer.write_rows("rows", first, Tensor::full(ElementType::f32, {2, 7}, first));
  writer.write("scalar", Tensor::scalar(2.5));
  writer.write("empty", Tensor(ElementType::f32, {0, 3}));
  writer.close();
  const Hdf5File file(folder / "a.h5");
  const Tensor rows = file.read("rows", ElementType::f32);
  ASSERT_EQ(rows.shape(), (Shape{10, 7}));
  for (std::int64_t row = 0; row < 10; ++row) EXPECT_EQ(rows.at(row * 7 + 3), row / 2 * 2);
  EXPECT_EQ(file.read("scalar", ElementType::f32).at(0), 2.5);
  EXPECT_EQ(file.read("empty", ElementType::f32).shape(), (Shape{0, 3}));
}

TEST(Hdf5, AttributesAndStrings) {
  const ScratchFolder folder;
  const std::vector<std::string> smiles{"CCO", "", "c1ccccc1"};
  Hdf5Writer writer(folder / "a.h5");
  writer.write_strings("smiles", smiles);
  writer.set_attribute("", "count", std::int64_t{3});
  writer.set_attribute("", "length", 0.5);
  writer.set_attribute("smiles", "note", std::string("µm"));
  writer.set_attribute("smiles", "note", std::string("replaced"));
  writer.close();
  const Hdf5File file(folder / "a.h5");
  EXPECT_EQ(file.read_strings("smiles"), smiles);
  EXPECT_EQ(std::get<std::int64_t>(file.attributes().at("count")), 3);
  EXPECT_EQ(std::get<double>(file.attributes().at("length")), 0.5);
  EXPECT_EQ(std::get<std::string>(file.attributes("smiles").at("note")), "replaced");
  expect_error(ErrorCode::bad_file, {"'smiles'", "string", "not numbers"},
               [&] { file.read("smiles", ElementType::f32); });
}

TEST(Hdf5, NothingAppearsBeforeCloseAndWhatWasThereStays) {
  const ScratchFolder folder;
  write_one(folder / "a.h5", "old", ramp(ElementType::f32, {2}));
  {
    Hdf5Writer writer(folder / "a.h5");
    writer.write("new", ramp(ElementType::f32, {2}));
  }
  EXPECT_TRUE(Hdf5File(folder / "a.h5").contains("old"));
  EXPECT_EQ(folder.file_count(), 1);
}

TEST(Hdf5, MissingThingsAreNamedWithTheNearest) {
  const ScratchFolder folder;
  write_one(folder / "a.h5", "patch", ramp(ElementType::f32, {2, 11, 11}));
  expect_error(ErrorCode::not_found, {"b.h5", "no such file"}, [&] { Hdf5File(folder / "b.h5"); });
  expect_error(ErrorCode::bad_file, {"folder"}, [&] { Hdf5File(folder / "."); });
  const Hdf5File file(folder / "a.h5");
  expect_error(ErrorCode::not_found, {"a.h5", "'pathc'", "'patch'"},
               [&] { file.read("pathc", ElementType::f32); });
  expect_error(ErrorCode::not_found, {"'frames'", "patch"}, [&] { file.info("frames"); });
  const std::int64_t wanted[] = {-1, 9, 9};
  expect_error(ErrorCode::bad_file, {"'patch'", "[2,11,11]", "[any,9,9]"},
               [&] { file.read("patch", ElementType::f32, wanted); });
}

TEST(Hdf5, OtherFilesAreRefused) {
  const ScratchFolder folder;
  write_file_atomically(folder / "text.h5", "this is text, not HDF5\n");
  write_file_atomically(folder / "empty.h5", "");
  expect_error(ErrorCode::bad_file, {"text.h5", "not an HDF5 file"}, [&] { Hdf5File(folder / "text.h5"); });
  expect_error(ErrorCode::bad_file, {"empty.h5", "not an HDF5 file"}, [&] { Hdf5File(folder / "empty.h5"); });
}

TEST(Hdf5, FilesCutShortAreRefusedWhereverTheCut) {
  const ScratchFolder folder;
  write_one(folder / "a.h5", "patch", ramp(ElementType::f32, {20, 11, 11}));
  const std::string whole = read_text_file(folder / "a.h5");
  for (std::size_t size = 16; size < whole.size(); size += 613) {
    write_file_atomically(folder / "cut.h5", std::string_view(whole).substr(0, size));
    const std::string reason = size < 100 ? "cannot open" : "cut short";  // the first block says the size
    expect_error(ErrorCode::bad_file, {"cut.h5", reason}, [&] { Hdf5File(folder / "cut.h5"); });
  }
}

// Writes with the HDF5 library itself what this layer does not write.
template <class Write>
void write_raw(const std::filesystem::path& path, Write write) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  write(file);
  H5Fclose(file);
}

struct Complex {
  float r, i;
};

void write_compounds(hid_t file) {
  const hsize_t extent = 3;
  const hid_t space = H5Screate_simple(1, &extent, nullptr), type = H5Tcreate(H5T_COMPOUND, sizeof(Complex));
  H5Tinsert(type, "r", 0, H5T_NATIVE_FLOAT);
  H5Tinsert(type, "i", 4, H5T_NATIVE_FLOAT);
  const hid_t other = H5Tcreate(H5T_COMPOUND, sizeof(Complex));
  H5Tinsert(other, "row", 0, H5T_NATIVE_FLOAT);
  H5Tinsert(other, "column", 4, H5T_NATIVE_FLOAT);
  const Complex values[] = {{1, 2}, {3, 4}, {5, 6}};
  for (const auto& [name, kind] : {std::pair("wave", type), std::pair("table", other)}) {
    const hid_t set = H5Dcreate2(file, name, kind, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, kind, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(set);
    H5Tclose(kind);
  }
  H5Sclose(space);
}

TEST(Hdf5, ComplexNumbersGetAnAxisAndOtherCompoundsAreRefused) {
  const ScratchFolder folder;
  write_raw(folder / "a.h5", write_compounds);
  const Hdf5File file(folder / "a.h5");
  EXPECT_TRUE(file.info("wave").complex);
  const Tensor wave = file.read_rows("wave", ElementType::f64, 1, 2);
  ASSERT_EQ(wave.shape(), (Shape{2, 2}));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(wave.at(i), 3 + i);
  expect_error(ErrorCode::bad_file, {"'table'", "compound"}, [&] { file.read("table", ElementType::f32); });
}

constexpr H5Z_filter_t bitshuffle = 32008, unknown_filter = 300;

// A filter that does nothing, registered while a file is written and gone when it is read.
std::size_t pass_through(unsigned, std::size_t, const unsigned[], std::size_t bytes, std::size_t*, void**) {
  return bytes;
}

void write_filtered(hid_t file, H5Z_filter_t filter, std::vector<unsigned> parameters) {
  const hsize_t extent = 4096;
  const hid_t space = H5Screate_simple(1, &extent, nullptr), creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(creation, 1, &extent);
  H5Pset_filter(creation, filter, H5Z_FLAG_MANDATORY, parameters.size(), parameters.data());
  const hid_t set = H5Dcreate2(file, "x", H5T_NATIVE_INT32, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  std::vector<std::int32_t> values(4096);
  for (int i = 0; i < 4096; ++i) values[static_cast<std::size_t>(i)] = i;
  H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  H5Dclose(set);
  H5Pclose(creation);
  H5Sclose(space);
}

TEST(Hdf5, AMissingFilterIsNamed) {
  const ScratchFolder folder;
  const H5Z_class2_t filter{H5Z_CLASS_T_VERS,  unknown_filter, 1,       1,
                            "a test's filter", nullptr,        nullptr, pass_through};
  H5Zregister(&filter);
  write_raw(folder / "a.h5", [](hid_t file) { write_filtered(file, unknown_filter, {}); });
  EXPECT_EQ(Hdf5File(folder / "a.h5").read("x", ElementType::i32).at(77), 77);
  H5Zunregister(unknown_filter);
  expect_error(ErrorCode::unsupported, {"'x'", "filter 300", "a test's filter", "HDF5_PLUGIN_PATH"},
               [&] { Hdf5File(folder / "a.h5").read("x", ElementType::i32); });
}

TEST(Hdf5, ReadsBitshuffleWithLz4WhereThePluginIs) {
  H5PLappend("/usr/lib/x86_64-linux-gnu/hdf5/serial/plugins");
  if (H5Zfilter_avail(bitshuffle) <= 0) GTEST_SKIP() << "the bitshuffle plugin of HDF5 is not installed";
  const ScratchFolder folder;
  write_raw(folder / "a.h5", [](hid_t file) { write_filtered(file, bitshuffle, {0, 2}); });
  EXPECT_LT(std::filesystem::file_size(folder / "a.h5"), 4096 * 4u);
  EXPECT_EQ(Hdf5File(folder / "a.h5").read("x", ElementType::i32).at(4095), 4095);
}

void write_under_limit(const std::filesystem::path& path, rlim_t bytes, const Layout& layout) {
  Hdf5Writer writer(path);
  const FileSizeLimit limit(bytes);
  writer.write("patch", ramp(ElementType::f32, {1000, 121}), layout);
  writer.write("ploc", ramp(ElementType::f32, {1000, 2}), layout);
  writer.close();
}

TEST(Hdf5, AFullDiskIsAnErrorAndLeavesNothing) {
  const ScratchFolder folder;
  for (const Layout& layout : {Layout{}, Layout{.chunk_rows = 1000}, Layout{.extendable = true}})
    for (const rlim_t bytes : {2000, 300000, 485000}) {
      expect_error(ErrorCode::io, {"a.h5", "File too large", "ulimit"},
                   [&] { write_under_limit(folder / "a.h5", bytes, layout); });
      EXPECT_EQ(folder.file_count(), 0);
    }
  write_under_limit(folder / "a.h5", 600000, {});  // and the library still works
  EXPECT_EQ(Hdf5File(folder / "a.h5").data_sets().size(), 2u);
  expect_error(ErrorCode::io, {"none/a.h5", "No such file"}, [&] { Hdf5Writer(folder / "none/a.h5"); });
}

TEST(Check, NamesTheFirstBadNumber) {
  Tensor tensor(ElementType::f32, {3, 4});
  require_finite(tensor, "x");
  tensor.as<float>()[6] = std::numeric_limits<float>::quiet_NaN();
  tensor.as<float>()[9] = std::numeric_limits<float>::infinity();
  expect_error(ErrorCode::bad_file, {"f.h5: data set 'patch'", "nan", "[101,2]"},
               [&] { require_finite(tensor, "f.h5: data set 'patch'", 100); });
  expect_error(ErrorCode::bad_file, {"inf", "[9]"}, [&] {
    require_finite(Tensor::from<double>({10}, {0, 0, 0, 0, 0, 0, 0, 0, 0, -1.0 / 0.0}), "x");
  });
  require_finite(Tensor::full(ElementType::f16, {4}, 1), "x");
  expect_error(ErrorCode::bad_file, {"inf"},
               [] { require_finite(Tensor::full(ElementType::f16, {4}, 1e6), "x"); });
  expect_error(ErrorCode::bad_file, {"1.5 at [1]", "outside [0, 1]"}, [] {
    require_in_range(Tensor::from<float>({2}, {1, 1.5f}), 0, 1, "x");
  });
}

}  // namespace
}  // namespace superstep::data
