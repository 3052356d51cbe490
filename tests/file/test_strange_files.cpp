// Files that are none, have no end, or hold more than they should: refused before anything waits or is
// allocated.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <fstream>
#include <functional>

#include "superstep/file/atoms/extxyz.h"
#include "superstep/file/cifar_file.h"
#include "superstep/file/csv.h"
#include "superstep/file/form.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/idx.h"
#include "superstep/file/npy.h"
#include "superstep/file/npz.h"
#include "superstep/file/safetensors.h"
#include "superstep/file/source/forms.h"
#include "superstep/file/tiff.h"
#include "superstep/file/weights/weight_file.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;

// Every reader of a file that a user names.
const std::vector<std::pair<const char*, std::function<void(const fs::path&)>>>& readers() {
  static const std::vector<std::pair<const char*, std::function<void(const fs::path&)>>> all{
      {"csv", [](const fs::path& path) { CsvReader reader(path); }},
      {"xyz", [](const fs::path& path) { XyzReader reader(path); }},
      {"hdf5", [](const fs::path& path) { Hdf5File file(path); }},
      {"idx", [](const fs::path& path) { read_idx(path); }},
      {"npy", [](const fs::path& path) { read_npy(path); }},
      {"npz", [](const fs::path& path) { read_npz(path); }},
      {"tiff", [](const fs::path& path) { read_tiff(path); }},
      {"safetensors", [](const fs::path& path) { read_safetensors(path); }},
      {"weights", [](const fs::path& path) { WeightFile::open(path); }}};
  return all;
}

void expect_refused(const fs::path& path, const char* part) {
  for (const auto& [name, read] : readers()) {
    SCOPED_TRACE(name);
    expect_error(ErrorCode::bad_file, {path.filename().string(), part}, [&] { read(path); });
  }
  EXPECT_EQ(form_of(path), FileForm::other);
}

TEST(StrangeFiles, PipesAreNotWaitedFor) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe.safetensors").c_str(), 0600), 0);
  expect_refused(folder / "pipe.safetensors", "this is");
}

TEST(StrangeFiles, DevicesHaveNoEnd) {
  const ScratchFolder folder;
  fs::create_symlink("/dev/zero", folder / "zero.safetensors");
  expect_refused(folder / "zero.safetensors", "this is");
}

TEST(StrangeFiles, TablesWithoutLinesAreNone) {
  const ScratchFolder folder;
  std::ofstream(folder / "x.csv") << "a,b\n1,2\n";
  fs::resize_file(folder / "x.csv", std::uintmax_t{1} << 40);
  CsvReader reader(folder / "x.csv");
  EXPECT_TRUE(reader.next());
  expect_error(ErrorCode::bad_file, {"x.csv:3", "longer than 64 MB"}, [&] { reader.next(); });
  // As a source of samples, which looks for its rows first: refused there, not a terabyte later.
  expect_error(ErrorCode::bad_file, {"x.csv", "a row of more than 64 MB"},
               [&] { open_source(folder / "x.csv", {.wanted = {}, .options = {}, .skip_broken = false}); });
  std::ofstream(folder / "q.csv") << "a,\"";
  fs::resize_file(folder / "q.csv", std::uintmax_t{1} << 40);
  expect_error(ErrorCode::bad_file, {"q.csv:1", "longer than 64 MB"}, [&] { CsvReader(folder / "q.csv"); });
  std::ofstream(folder / "x.xyz") << "1\n";
  fs::resize_file(folder / "x.xyz", std::uintmax_t{1} << 40);
  XyzReader atoms(folder / "x.xyz");
  expect_error(ErrorCode::bad_file, {"x.xyz, line 2", "longer than 16 MB"}, [&] {
    XyzFrame frame;
    while (atoms.next(frame)) {
    }
  });
}

// 4 MB that say, and are, 4 GB.
TEST(StrangeFiles, ImagesThatPackAsNoneDoAreRefused) {
  const ScratchFolder folder;
  const gzFile file = gzopen((folder / "x.gz").c_str(), "wb1");
  const unsigned char head[] = {0, 0, 8, 1, 0xff, 0, 0, 0};
  gzwrite(file, head, sizeof head);
  const std::string zeros(1 << 20, '\0');
  for (int i = 0; i < 16; ++i) gzwrite(file, zeros.data(), static_cast<unsigned>(zeros.size()));
  gzclose(file);
  expect_error(ErrorCode::bad_file, {"x.gz", "unpacks to 4.28 GB"}, [&] { read_idx(folder / "x.gz"); });
}

// Named, with the command that makes a form of them that is read; of a folder by its first file.
TEST(ForeignForms, OfRootAndDicomAreRefusedWithWhatConvertsThem) {
  const ScratchFolder folder;
  std::ofstream(folder / "run.root") << "root" << std::string(200, '\1');
  expect_error(ErrorCode::unsupported, {"run.root", "is a file of ROOT", "uproot.open('", "run.root:TREE')"},
               [&] { open_source(folder / "run.root"); });
  fs::create_directories(folder / "series");
  for (const char* name : {"2.dcm", "1.dcm"})
    std::ofstream(folder / (std::string("series/") + name))
        << std::string(128, '\0') << "DICM" << std::string(90, '\0');
  for (const char* path : {"series", "series/1.dcm"})
    expect_error(ErrorCode::unsupported, {"1.dcm", "is a file of DICOM", "dcm2niix -f %s -o . '", "series'"},
                 [&] { open_source(folder / path); });
  std::ofstream(folder / "none") << "roo";
  expect_error(ErrorCode::bad_file, {"none", "read are: "}, [&] { open_source(folder / "none"); });
}

}  // namespace
}  // namespace superstep::data
