// Conversions that are ended at any moment: the next call goes on, and writes the same bytes as an unbroken
// one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <map>

#include "superstep/base/encoding/sha256.h"
#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/system/folder_lock.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/file/convert/convert.h"
#include "superstep/file/convert/file_states.h"
#include "superstep/file/convert/sample_writer.h"
#include "superstep/file/npz.h"
#include "superstep/file/source/forms.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t samples = 60;

Tensor filled(ElementType type, Shape shape, std::int64_t modulus) {
  Tensor tensor(type, std::move(shape));
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, static_cast<double>(i * 7919 % modulus));
  return tensor;
}

NamedTensors arrays_of(const WriterForm& form) {
  NamedTensors arrays{{"image", filled(ElementType::u8, {samples, 3, 9, 14}, 256)},
                      {"label", filled(ElementType::i64, {samples}, 10)},
                      {"x", filled(ElementType::f32, {samples, 4, 3}, 1001)},
                      {"yes", filled(ElementType::boolean, {samples}, 2)}};
  if (form.holds_shared) {
    arrays.emplace("basis", filled(ElementType::f64, {40, 30}, 97));
    arrays.emplace("unit", Tensor::scalar(2.5f));
  }
  return arrays;
}

// The samples of another source, and something done at each block.
class Watched : public SampleSource {
 public:
  Watched(const SampleSource& source, std::function<void(std::int64_t block)> at_block)
      : source_(source), at_block_(std::move(at_block)) {}
  const std::vector<SourceArray>& arrays() const override { return source_.arrays(); }
  void read(std::span<const std::int64_t> rows, std::span<const RowsTo> to) const override {
    at_block_(blocks_++);
    source_.read(rows, to);
  }
  std::string place(std::size_t array, std::int64_t row) const override { return source_.place(array, row); }

 private:
  const SampleSource& source_;
  std::function<void(std::int64_t)> at_block_;
  mutable std::atomic<std::int64_t> blocks_{0};
};

// All that is at a path: names and bytes.
std::map<std::string, std::string> contents_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {{"", read_text_file(path)}};
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(path))
    if (!entry.is_directory())
      contents[fs::relative(entry.path(), path).string()] = read_text_file(entry.path());
  return contents;
}

class ResumedConvert : public testing::Test {
 protected:
  ConvertRequest request_of(const WriterForm& form, const std::string& out) const {
    constexpr std::size_t five_samples = 5 * (3 * 9 * 14 + 8 + 48 + 2);
    return {.out = folder / out,
            .form = form.name,
            .resume_key = "these files",
            .save_seconds = 0,
            .block_bytes = five_samples};
  }
  fs::path kept(const std::string& out) const { return folder / ("." + out + ".converting"); }

  const ScratchFolder folder;
};

// A child process that converts one sample's block more than the last one did, and is killed in the next.
bool killed_at(const SampleSource& source, const ConvertRequest& request, std::int64_t block) {
  const pid_t child = ::fork();
  if (child == 0) {
    ThreadPool alone(1);
    const Watched dying(source, [&](std::int64_t now) {
      if (now == block) ::raise(SIGKILL);
    });
    convert_samples(dying, request, alone);
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) || status == 0) << status;
  return WIFSIGNALED(status);
}

TEST_F(ResumedConvert, KilledAtEveryBlockEveryFormIsTheSameInTheEnd) {
  for (const WriterForm& form : writer_forms()) {
    write_npz(folder / "in.npz", arrays_of(form));
    const auto source = open_source(folder / "in.npz");
    ThreadPool pool(2);
    const Converted whole = convert_samples(*source, request_of(form, "whole"), pool);
    EXPECT_EQ(whole.continued_from, 0) << form.name;
    // One block further each time: the first is the one that the last call was killed in.
    int kills = 0;
    while (killed_at(*source, request_of(form, "resumed"), 4)) {
      ++kills;
      EXPECT_FALSE(fs::exists(folder / "resumed")) << form.name;
      ASSERT_TRUE(fs::exists(kept("resumed"))) << form.name;
      ASSERT_LT(kills, 100) << form.name << ": never ends";
    }
    EXPECT_GE(kills, 2) << form.name;
    EXPECT_EQ(contents_of(folder / "resumed"), contents_of(folder / "whole")) << form.name;
    EXPECT_FALSE(fs::exists(kept("resumed"))) << form.name;
    fs::remove_all(folder / "resumed");
    fs::remove_all(folder / "whole");
  }
}

TEST_F(ResumedConvert, CtrlCLosesNothing) {
  for (const WriterForm& form : writer_forms()) {
    write_npz(folder / "in.npz", arrays_of(form));
    const auto source = open_source(folder / "in.npz");
    ThreadPool pool(1);
    const ConvertRequest request = request_of(form, "out");
    const Watched stopping(*source, [](std::int64_t block) {
      if (block == 2) request_interrupt();
    });
    ConvertRequest seldom = request;
    seldom.save_seconds = 1e9;
    expect_error(ErrorCode::interrupted,
                 {"of 60 samples are written", "the same call goes on", ".out.converting"},
                 [&] { convert_samples(stopping, seldom, pool); });
    clear_interrupt();
    EXPECT_FALSE(fs::exists(folder / "out")) << form.name;
    std::int64_t blocks = 0;
    const Watched counting(*source, [&](std::int64_t block) { blocks = block + 1; });
    const Converted done = convert_samples(counting, seldom, pool);
    EXPECT_GT(done.continued_from, 0) << form.name;
    EXPECT_LT(done.continued_from, samples) << form.name;
    ConvertRequest unbroken = request_of(form, "unbroken");
    unbroken.resume_key.clear();
    convert_samples(*source, unbroken, pool);
    EXPECT_EQ(contents_of(folder / "out"), contents_of(folder / "unbroken")) << form.name;
    fs::remove_all(folder / "out");
    fs::remove_all(folder / "unbroken");
  }
}

TEST_F(ResumedConvert, AnotherConversionBeginsAgainAndSaysSo) {
  const WriterForm& form = writer_forms().front();
  write_npz(folder / "in.npz", arrays_of(form));
  const auto source = open_source(folder / "in.npz");
  ConvertRequest request = request_of(form, "out");
  ThreadPool pool(1);
  ASSERT_TRUE(killed_at(*source, request, 4));
  request.resume_key = "other files";
  const Converted done = convert_samples(*source, request, pool);
  EXPECT_EQ(done.continued_from, 0);
  ASSERT_FALSE(done.notes.empty());
  EXPECT_NE(done.notes.back().find("begun again"), std::string::npos) << done.notes.back();
}

// What was left is damaged, or is shorter than it was: nothing is built upon it.
TEST_F(ResumedConvert, WhatWasLeftAndIsDamagedIsBegunAgain) {
  for (const WriterForm& form : writer_forms()) {
    write_npz(folder / "in.npz", arrays_of(form));
    const auto source = open_source(folder / "in.npz");
    ThreadPool pool(1);
    const ConvertRequest request = request_of(form, "out");
    for (const bool state : {true, false}) {
      ASSERT_TRUE(killed_at(*source, request, 4)) << form.name;
      if (state)
        write_file_atomically(kept("out") / "state", read_text_file(kept("out") / "state") + " ");
      else
        for (const char* name : {"data", "data.arrays"}) fs::remove_all(kept("out") / name);
      const Converted done = convert_samples(*source, request, pool);
      EXPECT_EQ(done.continued_from, 0) << form.name;
      EXPECT_NE(done.notes.back().find("begun again"), std::string::npos) << form.name;
      fs::remove_all(folder / "out");
    }
  }
}

TEST_F(ResumedConvert, OneCallAtATimeWorksThere) {
  const WriterForm& form = writer_forms().front();
  write_npz(folder / "in.npz", arrays_of(form));
  const auto source = open_source(folder / "in.npz");
  ThreadPool pool(1);
  ASSERT_TRUE(killed_at(*source, request_of(form, "out"), 4));
  {
    const FolderLock other(kept("out"));
    expect_error(ErrorCode::io, {".out.converting", "being written to"},
                 [&] { convert_samples(*source, request_of(form, "out"), pool); });
  }
  EXPECT_TRUE(fs::exists(kept("out") / "state"));
  convert_samples(*source, request_of(form, "out"), pool);
  fs::create_directories(kept("mine"));
  write_file_atomically(kept("mine") / "notes.txt", std::string_view("mine"));
  expect_error(ErrorCode::invalid_argument, {".mine.converting", "something else is there"},
               [&] { convert_samples(*source, request_of(form, "mine"), pool); });
  EXPECT_TRUE(fs::exists(kept("mine") / "notes.txt"));
}

TEST_F(ResumedConvert, FilesThatWereWrittenToAreOthers) {
  fs::create_directories(folder / "data/deep");
  write_file_atomically(folder / "data/deep/a", std::string_view("1"));
  write_file_atomically(folder / "data/b", std::string_view("1"));
  const std::vector<fs::path> paths{folder / "data"};
  const std::string before = state_of_files(paths);
  EXPECT_EQ(state_of_files(paths), before);
  write_file_atomically(folder / "data/deep/a", std::string_view("12"));
  const std::string longer = state_of_files(paths);
  EXPECT_NE(longer, before);
  fs::last_write_time(folder / "data/deep/a", fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_NE(state_of_files(paths), longer);
  fs::rename(folder / "data/b", folder / "data/c");
  EXPECT_NE(state_of_files(paths), longer);
}

}  // namespace
}  // namespace superstep::data
