// What a file names through links, where links may lead, kinds of elements, and filters beside those who
// wrote them.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/file/hdf5/hdf5.h"
#include "tests/expect_error.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;

class RawFile {
 public:
  explicit RawFile(const fs::path& path)
      : id_(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {}
  ~RawFile() { H5Fclose(id_); }
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;
  hid_t id() const { return id_; }

  void group(const char* name) const {
    H5Gclose(H5Gcreate2(id_, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  // Three integers from `first` on, of a type in memory and in the file.
  void set(const char* name, int first, hid_t type = H5T_NATIVE_INT32, hid_t creation = H5P_DEFAULT) const {
    const hsize_t extent = 3;
    const hid_t space = H5Screate_simple(1, &extent, nullptr);
    const hid_t set = H5Dcreate2(id_, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    const std::int32_t values[] = {first, first + 1, first + 2};
    if (H5Tequal(type, H5T_NATIVE_INT32) > 0) H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(set);
    H5Sclose(space);
  }
  void soft(const char* to, const char* name) const {
    H5Lcreate_soft(to, id_, name, H5P_DEFAULT, H5P_DEFAULT);
  }
  void external(const char* file, const char* to, const char* name) const {
    H5Lcreate_external(file, to, id_, name, H5P_DEFAULT, H5P_DEFAULT);
  }
  void hard(const char* to, const char* name) const {
    H5Lcreate_hard(id_, to, id_, name, H5P_DEFAULT, H5P_DEFAULT);
  }

 private:
  hid_t id_;
};

std::vector<std::string> names_of(const Hdf5File& file) {
  std::vector<std::string> names;
  for (const DataSetInfo& info : file.data_sets()) names.push_back(info.name);
  return names;
}

double first_of(const Hdf5File& file, const std::string& name) {
  return file.read(name, ElementType::f64).at(0);
}

std::string type_name_of(const Hdf5File& file, const std::string& name) {
  for (const DataSetInfo& info : file.data_sets())
    if (info.name == name) return info.type_name;
  return "not listed";
}

TEST(Hdf5Links, EveryNameOfADataSetIsOne) {
  const ScratchFolder folder;
  {
    const RawFile file(folder / "a.h5");
    file.group("entry");
    file.set("entry/counts", 10);
    file.hard("entry/counts", "second");
    file.soft("/entry/counts", "soft");
    file.soft("/entry", "way");
    file.soft("/nowhere", "dangling");
    file.hard("entry", "entry/itself");  // a circle
    file.set("mask", 0);
  }
  const Hdf5File file(folder / "a.h5");
  EXPECT_EQ(names_of(file),
            (std::vector<std::string>{"dangling", "entry/counts", "mask", "second", "soft", "way/counts"}));
  for (const char* name : {"entry/counts", "second", "soft", "way/counts", "entry/itself/counts"})
    EXPECT_EQ(first_of(file, name), 10) << name;
  EXPECT_TRUE(file.contains("soft"));
  EXPECT_FALSE(file.contains("dangling"));
  EXPECT_EQ(type_name_of(file, "dangling"), "link to what is not there");
  expect_error(ErrorCode::not_found, {"'dangling'", "link to what is not there"},
               [&] { first_of(file, "dangling"); });
}

TEST(Hdf5Links, ExternalOnesLeadToFilesBelowTheFolderOnly) {
  const ScratchFolder folder;
  fs::create_directories(folder / "run/parts");
  RawFile(folder / "run/parts/p.h5").set("x", 5);
  RawFile(folder / "secret.h5").set("x", 7);
  fs::create_symlink(folder / "secret.h5", folder / "run/parts/alias.h5");
  {
    const RawFile file(folder / "run/a.h5");
    file.set("own", 1);
    file.external("parts/p.h5", "/x", "below");
    file.external("../secret.h5", "/x", "above");
    file.external((folder / "secret.h5").c_str(), "/x", "whole_name");
    file.external("parts/alias.h5", "/x", "through_a_link");
    file.external("missing.h5", "/x", "missing");
    file.external("../secret.h5", "/", "above_group");
  }
  const Hdf5File file(folder / "run/a.h5");
  EXPECT_EQ(first_of(file, "below"), 5);
  for (const char* name : {"above", "whole_name", "through_a_link", "above_group/x"})
    expect_error(ErrorCode::unsupported, {"another file", "secret.h5", "SUPERSTEP_HDF5_LINKS=anywhere"},
                 [&] { first_of(file, std::string(name) == "through_a_link" ? "whole_name" : name); });
  EXPECT_THROW(first_of(file, "through_a_link"), Error);
  EXPECT_EQ(type_name_of(file, "above"), "link to a file that is not below this one's folder");
  EXPECT_EQ(type_name_of(file, "missing"), "link to what is not there");
  for (const char* name : {"missing", "above"}) EXPECT_TRUE(file.attributes(name).empty()) << name;
  setenv("SUPERSTEP_HDF5_LINKS", "anywhere", 1);
  {
    const Hdf5File trusted(folder / "run/a.h5");
    for (const char* name : {"above", "whole_name", "through_a_link", "above_group/x"})
      EXPECT_EQ(first_of(trusted, name), 7) << name;
  }
  unsetenv("SUPERSTEP_HDF5_LINKS");
}

void write_raw_part(const fs::path& path, const char* part, hsize_t size) {
  const RawFile file(path);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(creation, part, 0, size);
  const hsize_t extent = 12;
  const hid_t space = H5Screate_simple(1, &extent, nullptr);
  H5Dclose(H5Dcreate2(file.id(), "x", H5T_NATIVE_UINT8, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  H5Sclose(space);
  H5Pclose(creation);
}

// A file may say that its elements are the bytes of any other one.
TEST(Hdf5Links, RawPartsAreReadBelowTheFolderOnly) {
  const ScratchFolder folder;
  write_file_atomically(folder / "raw.bin", "abcdefghijkl");
  write_raw_part(folder / "a.h5", "raw.bin", 12);
  EXPECT_EQ(first_of(Hdf5File(folder / "a.h5"), "x"), 'a');
  write_raw_part(folder / "b.h5", "/etc/passwd", 12);
  const Hdf5File other(folder / "b.h5");
  EXPECT_EQ(other.data_sets().at(0).type, std::nullopt);
  expect_error(ErrorCode::unsupported, {"'x'", "/etc/passwd", "not below the folder"},
               [&] { first_of(other, "x"); });
  write_raw_part(folder / "c.h5", "../../../../../../etc/passwd", 12);
  EXPECT_THROW(first_of(Hdf5File(folder / "c.h5"), "x"), Error);
  write_file_atomically(folder / "short.bin", "abc");
  write_raw_part(folder / "d.h5", "short.bin", 12);
  expect_error(ErrorCode::bad_file, {"short.bin", "too short"},
               [&] { first_of(Hdf5File(folder / "d.h5"), "x"); });
  write_raw_part(folder / "e.h5", "none.bin", 12);
  expect_error(ErrorCode::bad_file, {"none.bin", "not there"},
               [&] { first_of(Hdf5File(folder / "e.h5"), "x"); });
}

void write_virtual(const fs::path& path, const char* part) {
  const RawFile file(path);
  const hsize_t extent = 3;
  const hid_t space = H5Screate_simple(1, &extent, nullptr), creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_virtual(creation, space, part, "x", space);
  H5Dclose(H5Dcreate2(file.id(), "v", H5T_NATIVE_INT32, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  H5Sclose(space);
  H5Pclose(creation);
}

TEST(Hdf5Links, PartsOfVirtualDataSetsMustBeThereAndBelowTheFolder) {
  const ScratchFolder folder;
  fs::create_directories(folder / "run");
  RawFile(folder / "run/p.h5").set("x", 5);
  RawFile(folder / "secret.h5").set("x", 7);
  write_virtual(folder / "run/a.h5", "p.h5");
  EXPECT_EQ(first_of(Hdf5File(folder / "run/a.h5"), "v"), 5);
  write_virtual(folder / "run/b.h5", "../secret.h5");
  expect_error(ErrorCode::unsupported, {"secret.h5"}, [&] { first_of(Hdf5File(folder / "run/b.h5"), "v"); });
  write_virtual(folder / "run/c.h5", "gone.h5");
  expect_error(ErrorCode::bad_file, {"gone.h5", "not there"},
               [&] { first_of(Hdf5File(folder / "run/c.h5"), "v"); });
  // A part whose bytes are another file's.
  write_raw_part(folder / "run/q.h5", "/etc/passwd", 12);
  write_virtual(folder / "run/d.h5", "q.h5");
  expect_error(ErrorCode::unsupported, {"/etc/passwd"},
               [&] { first_of(Hdf5File(folder / "run/d.h5"), "v"); });
}

TEST(Hdf5Links, EnumerationsAreIntegersAndOtherKindsAreListed) {
  const ScratchFolder folder;
  {
    const RawFile file(folder / "a.h5");
    const hid_t kinds = H5Tenum_create(H5T_STD_I16BE);
    for (const auto& [name, value] : {std::pair("good", 1), std::pair("bad", -300)}) {
      std::int16_t number = static_cast<std::int16_t>(value);
      const std::int16_t swapped =
          static_cast<std::int16_t>(__builtin_bswap16(static_cast<std::uint16_t>(number)));
      H5Tenum_insert(kinds, name, &swapped);
    }
    const hsize_t extent = 2;
    const hid_t space = H5Screate_simple(1, &extent, nullptr);
    const hid_t set = H5Dcreate2(file.id(), "quality", kinds, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const std::uint8_t bytes[] = {0x00, 0x01, 0xfe, 0xd4};
    H5Dwrite(set, kinds, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes);
    H5Dclose(set);
    H5Sclose(space);
    H5Tclose(kinds);
    file.set("bits", 0, H5T_STD_B8LE);
    const hid_t pair = H5Tcreate(H5T_COMPOUND, 8);
    H5Tinsert(pair, "row", 0, H5T_NATIVE_FLOAT);
    H5Tinsert(pair, "column", 4, H5T_NATIVE_FLOAT);
    file.set("places", 0, pair);
    H5Tclose(pair);
  }
  const Hdf5File file(folder / "a.h5");
  EXPECT_EQ(file.info("quality").type, ElementType::i16);
  const Tensor quality = file.read("quality", ElementType::f32);
  EXPECT_EQ(quality.at(0), 1);
  EXPECT_EQ(quality.at(1), -300);
  EXPECT_EQ(names_of(file), (std::vector<std::string>{"bits", "places", "quality"}));
  expect_error(ErrorCode::bad_file, {"'bits'", "bit field"}, [&] { first_of(file, "bits"); });
  expect_error(ErrorCode::bad_file, {"'places'", "compound"}, [&] { first_of(file, "places"); });
}

constexpr const char* write_filtered = R"(
import h5py, hdf5plugin, numpy as np
kinds = {'none': {}, 'gzip': dict(compression='gzip', shuffle=True), 'lzf': dict(compression='lzf'), 'fletcher32': dict(fletcher32=True),
         'bitshuffle': hdf5plugin.Bitshuffle(cname='none'), 'bitshuffle_lz4': hdf5plugin.Bitshuffle(cname='lz4'),
         'bitshuffle_zstd': hdf5plugin.Bitshuffle(cname='zstd'), 'bitshuffle_zstd_small': hdf5plugin.Bitshuffle(nelems=64, cname='zstd'),
         'lz4': hdf5plugin.LZ4(), 'lz4_small': hdf5plugin.LZ4(nbytes=128), 'bzip2': hdf5plugin.BZip2(), 'zstd': hdf5plugin.Zstd(),
         'blosc_lz4': hdf5plugin.Blosc(cname='lz4'), 'blosc_zstd': hdf5plugin.Blosc(cname='zstd', shuffle=2), 'blosc2': hdf5plugin.Blosc2(),
         'fcidecomp': None}
types = ['u1', 'i1', 'u2', 'i2', '<i4', '>u4', 'i8', 'u8', 'f2', 'f4', '>f8']
with h5py.File('filters.h5', 'w') as file:
    for kind, how in kinds.items():
        if how is None:
            continue
        for dtype in types:
            for count in (1, 7, 64, 1000, 20000):
                values = (np.arange(count) * 37 % 101).astype(dtype)
                chunks = dict(chunks=(min(count, 3000),)) if kind != 'none' else {}
                file.create_dataset(f'{kind}/{dtype.strip("<>")}_{dtype[0] == ">"}_{count}', data=values, **chunks, **how)
)";

struct Tally {
  int right = 0, refused = 0;
};

// Every data set is right, or refused as unsupported.
std::map<std::string, Tally> read_filtered(const fs::path& path) {
  std::map<std::string, Tally> tallies;
  const Hdf5File file(path);
  for (const DataSetInfo& info : file.data_sets()) {
    Tally& tally = tallies[info.name.substr(0, info.name.find('/'))];
    try {
      const Tensor values = file.read(info.name, ElementType::f64);
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < values.element_count(); ++i)
        wrong += values.at(i) != static_cast<double>(i * 37 % 101);
      EXPECT_EQ(wrong, 0) << info.name;
      ++tally.right;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported) << info.name << ": " << error.what();
      ++tally.refused;
    }
  }
  return tallies;
}

TEST(Hdf5Filters, AreRightOrRefusedBesideTheirMakers) {
  const std::string python = python_with("h5py, hdf5plugin");
  if (python.empty())
    GTEST_SKIP()
        << "no Python with the packages h5py, hdf5plugin was found: tools/setup-oracles installs them";
  const ScratchFolder folder;
  ASSERT_TRUE(run_python(python, folder / "", write_filtered));
  const std::map<std::string, Tally> tallies = read_filtered(folder / "filters.h5");
  EXPECT_EQ(tallies.size(), 15u);
  for (const char* always : {"none", "gzip", "fletcher32"}) EXPECT_EQ(tallies.at(always).right, 55) << always;
  for (const auto& [kind, tally] : tallies) {
    EXPECT_EQ(tally.right + tally.refused, 55) << kind;
    RecordProperty(kind, tally.right);  // others as this machine has plug-ins
  }
}

}  // namespace
}  // namespace superstep::data
