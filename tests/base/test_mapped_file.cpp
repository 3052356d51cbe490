#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/system/mapped_file.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

ErrorCode refusal(const std::filesystem::path& path) {
  try {
    const MappedFile file(path);
  } catch (const Error& error) {
    EXPECT_NE(error.where().find(path.filename().string()), std::string::npos) << error.what();
    return error.code();
  }
  ADD_FAILURE() << path << " was opened";
  return ErrorCode::internal;
}

TEST(MappedFile, HoldsTheBytesOfTheFile) {
  const ScratchFolder folder;
  const std::string text = std::string(10000, 'a') + '\0' + "end";
  write_file_atomically(folder / "a", text);
  const MappedFile file(folder / "a");
  ASSERT_EQ(file.bytes().size(), text.size());
  EXPECT_TRUE(std::ranges::equal(file.bytes(), std::as_bytes(std::span(text))));
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
  const ScratchFolder folder;
  write_file_atomically(folder / "empty", "");
  EXPECT_TRUE(MappedFile(folder / "empty").bytes().empty());
}

TEST(MappedFile, WhatIsNoFileIsRefused) {
  const ScratchFolder folder;
  write_file_atomically(folder / "a", "text");
  EXPECT_EQ(refusal(folder / "none"), ErrorCode::not_found);
  EXPECT_EQ(refusal(folder / "a/below"), ErrorCode::not_found);  // a file is no folder
  std::filesystem::create_directory(folder / "folder");
  EXPECT_EQ(refusal(folder / "folder"), ErrorCode::bad_file);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(refusal(folder / "pipe"), ErrorCode::bad_file);  // and nobody waits for a writer
  EXPECT_EQ(refusal("/dev/null"), ErrorCode::bad_file);
}

}  // namespace
}  // namespace superstep
