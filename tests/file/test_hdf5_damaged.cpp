// Files that the HDF5 library does not survive, or that ask for more than there is.
#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/stat.h>

#include <cstring>
#include <thread>

#include "superstep/base/file.h"
#include "superstep/file/hdf5/hdf5.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

using Close = herr_t (*)(hid_t);

struct Open {
  hid_t id;
  Close closing;
  ~Open() { closing(id); }
  operator hid_t() const { return id; }
};

Open create_file(const std::filesystem::path& path) {
  return {H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose};
}

// Texts of variable length, as h5py writes them: on the root and as a data set.
void write_variable_texts(const std::filesystem::path& path) {
  const Open file = create_file(path), type{H5Tcopy(H5T_C_S1), H5Tclose};
  H5Tset_size(type, H5T_VARIABLE);
  const Open one{H5Screate(H5S_SCALAR), H5Sclose};
  const std::string text(300, 's');
  const char* pointers[] = {text.c_str(), "b", "c"};
  for (const char* name : {"first", "second"}) {
    const Open attribute{H5Acreate2(file, name, type, one, H5P_DEFAULT, H5P_DEFAULT), H5Aclose};
    H5Awrite(attribute, type, pointers);
  }
  const hsize_t extent = 3;
  const Open three{H5Screate_simple(1, &extent, nullptr), H5Sclose};
  const Open set{H5Dcreate2(file, "names", type, three, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Dclose};
  H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers);
}

void read_everything(const std::filesystem::path& path) {
  const Hdf5File file(path);
  file.attributes();
  for (const DataSetInfo& info : file.data_sets()) {
    file.attributes(info.name);
    file.read_strings(info.name);
  }
}

TEST(Hdf5Damaged, TextsOfVariableLengthDoNotEndTheProgram) {
  const ScratchFolder folder;
  write_variable_texts(folder / "whole.h5");
  read_everything(folder / "whole.h5");
  const std::string whole = read_text_file(folder / "whole.h5");
  const std::size_t heap = whole.find("GCOL");
  ASSERT_NE(heap, std::string::npos);
  int refused = 0;
  // Sizes and references of the heap, where the library reads beyond what it has.
  for (std::size_t at = heap; at < heap + 96; ++at)
    for (const unsigned change : {0x01u, 0x80u, 0xffu}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ change);
      write_file_atomically(folder / "damaged.h5", damaged);
      try {
        read_everything(folder / "damaged.h5");
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == ErrorCode::bad_file || error.code() == ErrorCode::not_found)
            << error.what();
        ++refused;
      }
    }
  EXPECT_GT(refused, 20);
}

TEST(Hdf5Damaged, OurTextsAreOfFixedLength) {
  const ScratchFolder folder;
  const std::string longest(70000, 'l');
  Hdf5Writer writer(folder / "a.h5");
  writer.write("x", Tensor::scalar(1.0));
  for (const std::string text : {"", "µm", "a longer text"}) writer.set_attribute("x", "text " + text, text);
  writer.set_attribute("", "long", longest);
  writer.close();
  const Hdf5File file(folder / "a.h5");
  for (const std::string text : {"", "µm", "a longer text"})
    EXPECT_EQ(std::get<std::string>(file.attributes("x").at("text " + text)), text);
  EXPECT_EQ(std::get<std::string>(file.attributes().at("long")), longest);
  const Open raw{H5Fopen((folder / "a.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose};
  const Open attribute{H5Aopen_by_name(raw, "x", "text µm", H5P_DEFAULT, H5P_DEFAULT), H5Aclose};
  const Open type{H5Aget_type(attribute), H5Tclose};
  EXPECT_EQ(H5Tis_variable_str(type), 0);
  EXPECT_EQ(H5Tget_cset(type), H5T_CSET_UTF8);
}

// Chunks that nobody wrote take no room in a file, and all that they claim when they are read.
void write_claim(const std::filesystem::path& path, hsize_t rows, hsize_t chunk_rows) {
  const Open file = create_file(path), creation{H5Pcreate(H5P_DATASET_CREATE), H5Pclose};
  H5Pset_chunk(creation, 1, &chunk_rows);
  H5Pset_deflate(creation, 1);
  const Open space{H5Screate_simple(1, &rows, nullptr), H5Sclose};
  const Open set{H5Dcreate2(file, "x", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, creation, H5P_DEFAULT),
                 H5Dclose};
}

TEST(Hdf5Damaged, ClaimsAreHeldAgainstTheMemoryThereIs) {
  const ScratchFolder folder;
  write_claim(folder / "claim.h5", hsize_t{1} << 42, 1 << 20);
  const Hdf5File file(folder / "claim.h5");
  expect_error(ErrorCode::out_of_memory, {"claim.h5", "'x'", "needs 17.6 TB of memory", "are free"},
               [&] { file.read("x", ElementType::f32); });
  EXPECT_EQ(file.read_rows("x", ElementType::f32, 1 << 30, 5).element_count(), 5);
}

// The child's limit is on what nobody has accounted for, not on what is asked of it.
TEST(Hdf5Damaged, AnArrayLargerThanTheChildsLimitIsRead) {
  const ScratchFolder folder;
  write_claim(folder / "zeros.h5", 100'000'000, 1 << 20);
  const Tensor zeros = Hdf5File(folder / "zeros.h5").read("x", ElementType::f32);
  ASSERT_EQ(zeros.element_count(), 100'000'000);
  EXPECT_EQ(zeros.at(99'999'999), 0);
}

TEST(Hdf5Damaged, APipeIsRefusedAtOnce) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  expect_error(ErrorCode::bad_file, {"not a regular file"}, [&] { Hdf5File(folder / "pipe"); });
}

TEST(Hdf5Damaged, ManyThreadsReadAtOnce) {
  const ScratchFolder folder;
  Hdf5Writer writer(folder / "a.h5");
  Tensor values(ElementType::i32, {1000, 3});
  for (std::int64_t i = 0; i < 3000; ++i) values.set(i, static_cast<double>(i));
  writer.write("x", values, {.chunk_rows = 10, .deflate = 1});
  writer.close();
  const Hdf5File shared(folder / "a.h5");
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (std::int64_t row = t; row < 60; row += 6) {
        EXPECT_EQ(shared.read_rows("x", ElementType::i32, row, 1).at(2), static_cast<double>(3 * row + 2));
        const Hdf5File own(folder / "a.h5");
        EXPECT_EQ(own.read_rows("x", ElementType::f64, row, 1).at(1), static_cast<double>(3 * row + 1));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Hdf5Damaged, WhatWasReadOutlivesTheFile) {
  const ScratchFolder folder;
  Hdf5Writer writer(folder / "a.h5");
  writer.write("x", Tensor::full(ElementType::f32, {1 << 16}, 3));
  writer.close();
  Tensor values;
  {
    const Hdf5File file(folder / "a.h5");
    values = file.read("x", ElementType::f32);
  }
  values.set(7, 4);
  EXPECT_EQ(values.at(7), 4);
  EXPECT_EQ(values.at((1 << 16) - 1), 3);
}

}  // namespace
}  // namespace superstep::data
