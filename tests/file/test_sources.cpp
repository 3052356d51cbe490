// Sources of samples: the same rows of every form, whatever names them, and what is refused.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <numeric>

#include "superstep/base/file.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npy.h"
#include "superstep/file/npz.h"
#include "superstep/file/safetensors.h"
#include "superstep/file/source/forms.h"
#include "superstep/file/source/order.h"
#include "superstep/file/source/ordered_source.h"
#include "superstep/file/source/paths.h"
#include "superstep/file/zip_places.h"
#include "tests/expect_error.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

Tensor counted(ElementType type, const Shape& shape, int first = 0) {
  Tensor tensor(type, shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, static_cast<double>((i + first) % 101));
  return tensor;
}

NamedTensors samples(int first = 0, std::int64_t rows = 10) {
  return {{"x", counted(ElementType::f32, {rows, 2, 3}, first)},
          {"y", counted(ElementType::i64, {rows}, first)},
          {"table", counted(ElementType::f64, {4, 5})}};
}

void write(const std::filesystem::path& path, const NamedTensors& arrays) {
  if (path.extension() == ".npz") return write_npz(path, arrays);
  if (path.extension() == ".safetensors") return write_safetensors(path, {.tensors = arrays, .metadata = {}});
  Hdf5Writer file(path);
  for (const auto& [name, tensor] : arrays)
    file.write(name, tensor, name == "x" ? Layout{.chunk_rows = 3, .deflate = 1} : Layout{});
  file.close();
}

void expect_rows(const SampleSource& source, const std::string& name, const Tensor& all,
                 const std::vector<std::int64_t>& rows) {
  const std::size_t array = find_array(source, name);
  ASSERT_LT(array, source.arrays().size()) << name;
  const Tensor found = read_rows(source, array, rows);
  EXPECT_EQ(found.type(), all.type());
  const std::int64_t row = all.element_count() / all.shape()[0];
  ASSERT_EQ(found.element_count(), row * static_cast<std::int64_t>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::int64_t k = 0; k < row; ++k)
      EXPECT_EQ(found.at(static_cast<std::int64_t>(i) * row + k), all.at(rows[i] * row + k))
          << name << rows[i];
}

TEST(Sources, AllFormsGiveTheSameRows) {
  const ScratchFolder folder;
  const NamedTensors arrays = samples();
  for (const char* name : {"a.npz", "a.h5", "a.safetensors"}) {
    write(folder / name, arrays);
    const auto source = open_source(folder / name);
    ASSERT_EQ(source->arrays().size(), 3U) << name;
    EXPECT_TRUE(source->shards().empty());
    for (const auto& [array, tensor] : arrays) {
      expect_rows(*source, array, tensor, {0, 1, 2, 3});
      expect_rows(*source, array, tensor, {3, 0, 1, 1});
      EXPECT_EQ(read_whole(*source, find_array(*source, array)).shape(), tensor.shape());
    }
    expect_rows(*source, "x", arrays.at("x"), {9, 2, 3, 4, 0});
  }
  write_npy(folder / "a.npy", arrays.at("x"));
  expect_rows(*open_source(folder / "a.npy"), "", arrays.at("x"), {9, 2, 3, 4, 0});
}

TEST(Sources, FilesAreJoinedHoweverTheyAreNamed) {
  const ScratchFolder folder;
  write(folder / "s-08.h5", samples(0));
  write(folder / "s-09.h5", samples(60));
  write(folder / "s-10.npz", samples(120, 5));
  write_file_atomically(folder / "all.list", std::string_view("# shards\ns-08.h5\n\ns-09.h5\r\ns-10.npz\n"));
  std::vector<float> wanted;
  for (int i = 0; i < 150; ++i) wanted.push_back(static_cast<float>(i % 101));
  const Tensor x = Tensor::from<float>({25, 2, 3}, wanted);
  const std::string base = (folder / "").string();
  const std::string several[] = {base + "s-08.h5", base + "s-09.h5", base + "s-10.npz"};
  for (const std::string& given : {base + "@all.list", base + "s-*", base + "{s-08.h5,s-09.h5,s-10.npz}",
                                   base + "s-{08..10}.*", joined_names(several).string()}) {
    SCOPED_TRACE(given);
    const auto source = open_source(given.starts_with(base + "@") ? "@" + base + "all.list" : given);
    EXPECT_EQ(source->arrays()[find_array(*source, "x")].rows, 25);
    EXPECT_EQ(source->arrays()[find_array(*source, "table")].rows, 4) << "it is shared";
    expect_rows(*source, "x", x, {24, 0, 9, 10, 11, 20, 19});
  }
  std::filesystem::create_directory(folder / "d");
  std::filesystem::rename(folder / "s-08.h5", folder / "d/b.h5");
  std::filesystem::rename(folder / "s-09.h5", folder / "d/c.h5");
  write_file_atomically(folder / "d/README", std::string_view("what they are\n"));
  EXPECT_EQ(open_source(folder / "d")->arrays()[0].rows, 4);
  expect_rows(*open_source(folder / "d"), "x", x, {0, 19, 10});
}

TEST(Sources, WhatCannotBeReadIsNamed) {
  const ScratchFolder folder;
  write(folder / "a.npz", samples());
  write(folder / "b.npz",
        {{"x", counted(ElementType::f32, {10, 2, 4})}, {"y", counted(ElementType::i64, {10})}});
  write(folder / "c.npz", {{"x", counted(ElementType::f32, {10, 2, 3})}});
  write_file_atomically(folder / "t.bin", std::string_view("\x01\x02\xff"));
  std::filesystem::create_directory(folder / "empty");
  const std::string base = (folder / "").string();
  expect_error(ErrorCode::not_found, {"none.h5"}, [&] { open_source(base + "none.h5"); });
  expect_error(ErrorCode::not_found, {"no file fits", "x-*"}, [&] { open_source(base + "x-*"); });
  expect_error(ErrorCode::bad_file, {"t.bin", "npz, hdf5"}, [&] { open_source(base + "t.bin"); });
  expect_error(ErrorCode::bad_file, {"empty", "no file in it"}, [&] { open_source(base + "empty"); });
  expect_error(ErrorCode::bad_file, {"b.npz", "'x'", "[10,2,4]"}, [&] { open_source(base + "{c,b}.npz"); });
  expect_error(ErrorCode::bad_file, {"c.npz", "no array 'table'"}, [&] { open_source(base + "{a,c}.npz"); });
  expect_error(ErrorCode::invalid_argument, {"counts no files"}, [&] { open_source(base + "a{7..3}.npz"); });
  write_file_atomically(folder / "loop", std::string_view("@loop\n"));
  expect_error(ErrorCode::invalid_argument, {"itself"}, [&] { open_source("@" + base + "loop"); });
  const std::string odd[] = {"a,b", "c"};
  expect_error(ErrorCode::invalid_argument, {"a,b", "@FILE"}, [&] { joined_names(odd); });
}

TEST(Sources, AFileThatChangesIsRefused) {
  const ScratchFolder folder;
  for (const char* name : {"a.npy", "a.npz", "a.safetensors", "a.h5"}) {
    SCOPED_TRACE(name);
    NamedTensors arrays = samples();
    arrays.erase("y");
    if (std::string(name) == "a.npy")
      write_npy(folder / name, arrays.at("x"));
    else
      write(folder / name, arrays);
    const auto source = open_source(folder / name);
    const std::int64_t rows[] = {9, 1};
    const std::size_t x = source->arrays().size() - 1;
    read_rows(*source, x, rows);
    std::filesystem::resize_file(folder / name, std::filesystem::file_size(folder / name) - 1);
    expect_error(ErrorCode::io, {"a.", "changed after it was opened"}, [&] { read_rows(*source, x, rows); });
  }
}

// Python writes what no writer of ours does: big-endian, column-major, packed, large archives' records.
TEST(Sources, ArraysOfNumPyWhateverTheirLayout) {
  const ScratchFolder folder;
  const std::string python = python_with("numpy");
  if (python.empty()) GTEST_SKIP() << "no numpy";
  ASSERT_TRUE(run_python(python, folder / "",
                         "import numpy as n\na=n.arange(60).reshape(10,2,3)\n"
                         "n.savez('a.npz', big=a.astype('>f4'), columns=n.asfortranarray(a.astype('f4')),"
                         " flag=a%2==0, pair=a+1j*a, one=n.float32(7), none=n.zeros((0,3)))\n"
                         "n.savez_compressed('b.npz', big=a.astype('>f4'))\n"));
  const auto source = open_source(folder / "a.npz");
  Tensor a(ElementType::f32, {10, 2, 3});
  for (std::int64_t i = 0; i < 60; ++i) a.set(i, static_cast<double>(i));
  for (const char* name : {"big", "columns"}) expect_rows(*source, name, a, {7, 8, 1, 0});
  expect_rows(*open_source(folder / "b.npz"), "big", a, {7, 8, 1, 0});
  const std::int64_t row[] = {3};
  EXPECT_EQ(read_rows(*source, find_array(*source, "flag"), row).at(1), 0);
  EXPECT_EQ(read_rows(*source, find_array(*source, "pair"), row).at(3), 19);
  EXPECT_TRUE(source->arrays()[find_array(*source, "one")].single);
  EXPECT_EQ(read_whole(*source, find_array(*source, "one")).at(0), 7);
  EXPECT_EQ(read_whole(*source, find_array(*source, "none")).shape(), (Shape{0, 3}));
  EXPECT_EQ(stored_entries(StableFile(folder / "a.npz")).size(), 6U);
  EXPECT_TRUE(stored_entries(StableFile(folder / "b.npz")).empty());
}

// --- orders, and sources that can only be read in theirs

TEST(Order, IsAPermutationOfSeedAndEpochAlone) {
  for (const std::int64_t buffer : {0, 1, 7, 1000}) {
    const ForcedOrder forced{.shards = {0, 30, 31, 80}, .buffer = buffer};
    auto order = epoch_order(100, 3, 2, forced);
    EXPECT_EQ(order, epoch_order(100, 3, 2, forced));
    EXPECT_NE(order, epoch_order(100, 3, 4, forced));
    std::ranges::sort(order);
    for (std::int64_t i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  }
  EXPECT_EQ(epoch_order(50, 1, 1, {.shards = {0, 40, 60}, .buffer = 4}).size(), 50U) << "training samples";
}

// Numbers its samples, and counts how often shards are begun and samples decoded.
class CountingSource : public OrderedSource {
 public:
  using OrderedSource::OrderedSource;
  const std::vector<SourceArray>& arrays() const override { return arrays_; }
  std::string place(std::size_t, std::int64_t) const override { return "counted"; }
  std::vector<std::int64_t> shards() const override { return {0, 40, 45}; }
  mutable int begun = 0, decoded = 0;

 protected:
  class Cursor : public SampleCursor {
   public:
    Cursor(int& decoded, std::int64_t at) : decoded_(decoded), at_(at) {}
    void next(std::span<std::byte* const> arrays) override {
      ++decoded_;
      if (at_ == 77) throw Error(ErrorCode::bad_file, "is broken", "counted");
      std::memcpy(arrays[0], &at_, sizeof at_);
      const auto half = static_cast<float>(at_) / 2;
      std::memcpy(arrays[1], &half, sizeof half);
      ++at_;
    }

   private:
    int& decoded_;
    std::int64_t at_;
  };
  std::unique_ptr<SampleCursor> open_shard(std::size_t shard) const override {
    ++begun;
    return std::make_unique<Cursor>(decoded, shards()[shard]);
  }

 private:
  std::vector<SourceArray> arrays_{{.name = "n", .type = ElementType::i64, .row = Shape{}, .rows = 100},
                                   {.name = "half", .type = ElementType::f32, .row = Shape{}, .rows = 100}};
};

TEST(OrderedSource, ReadsEachShardOnceInTheOrderOfABuffer) {
  const CountingSource source;
  const auto order = epoch_order(70, 5, 0, {.shards = source.shards(), .buffer = 8});
  const Tensor n = read_rows(source, 0, order), half = read_rows(source, 1, order);
  for (std::size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(n.at(static_cast<std::int64_t>(i)), static_cast<double>(order[i]));
    EXPECT_EQ(half.at(static_cast<std::int64_t>(i)), static_cast<double>(order[i]) / 2);
  }
  EXPECT_EQ(source.begun, 3);
  EXPECT_EQ(source.decoded, 70);
}

TEST(OrderedSource, IsSlowButRightInAnyOrder) {
  const CountingSource source(24);  // keeps two samples
  const auto order = epoch_order(70, 5, 0);
  const Tensor n = read_rows(source, 0, order);
  for (std::size_t i = 0; i < order.size(); ++i)
    EXPECT_EQ(n.at(static_cast<std::int64_t>(i)), static_cast<double>(order[i]));
  EXPECT_GT(source.begun, 3);
  const std::int64_t broken[] = {76, 77}, good[] = {76};
  expect_error(ErrorCode::bad_file, {"is broken"}, [&] { read_rows(source, 0, broken); });
  EXPECT_EQ(read_rows(source, 0, good).at(0), 76) << "it goes on";
}

}  // namespace
}  // namespace superstep::data
