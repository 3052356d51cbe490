#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

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

TEST(MappedFile, ReadsPartsOfTheFile) {
  const ScratchFolder folder;
  write_file_atomically(folder / "a", std::string(9000, 'a') + "middle" + std::string(9000, 'b'));
  const MappedFile file(folder / "a");
  std::string part(6, ' ');
  file.read(file.bytes().subspan(9000, 6), reinterpret_cast<std::byte*>(part.data()));
  EXPECT_EQ(part, "middle");
  file.read(file.bytes().first(0), nullptr);
}

TEST(MappedFile, WhatWasCutShortOrWrittenToIsNotRead) {
  const ScratchFolder folder;
  const auto refused = [](const MappedFile& file) {
    std::vector<std::byte> part(9000);
    try {
      file.read(file.bytes().last(9000), part.data());
    } catch (const Error& error) {
      return error.code() == ErrorCode::io && error.where().ends_with("a");
    }
    return false;
  };
  write_file_atomically(folder / "a", std::string(18000, 'a'));
  const MappedFile file(folder / "a");
  EXPECT_FALSE(refused(file));
  write_file_atomically(folder / "a",
                        std::string(18000, 'c'));  // another file of this name: ours is as it was
  EXPECT_FALSE(refused(file));
  const MappedFile other(folder / "a");
  std::filesystem::resize_file(folder / "a", 10000);
  EXPECT_TRUE(refused(other));
  EXPECT_FALSE(refused(file));
}

const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

// Of the pages of a part, how many this process has: the highest bit of their numbers in the system's table;
// -1 where it shows none.
std::int64_t pages_here(std::span<const std::byte> part) {
  const auto first = reinterpret_cast<std::uintptr_t>(part.data()) / page,
             last = (reinterpret_cast<std::uintptr_t>(part.data()) + part.size() - 1) / page;
  std::vector<std::uint64_t> entries(last - first + 1);
  const std::size_t bytes = entries.size() * sizeof(std::uint64_t);
  const int table = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  const auto got = ::pread(table, entries.data(), bytes, static_cast<off_t>(first * sizeof(std::uint64_t)));
  ::close(table);
  if (got != static_cast<ssize_t>(bytes)) return -1;
  return std::ranges::count_if(entries, [](std::uint64_t entry) { return entry >> 63 != 0; });
}

bool system_brings_pages(std::span<const std::byte> part) {
#ifdef MADV_POPULATE_READ
  // Emulators may say that they did it and do nothing.
  return pages_here(part) >= 0 &&
         ::madvise(const_cast<std::byte*>(part.data()), part.size(), MADV_POPULATE_READ) == 0 &&
         pages_here(part) > 0;
#else
  return part.empty();
#endif
}

TEST(MappedFile, PartsAreBroughtBeforeTheyAreTouched) {
  const ScratchFolder folder;
  const std::size_t size = 512 * page * 4, begin = 512 * page + 3 * page + 17;
  write_file_atomically(folder / "a", std::string(size, 'x'));
  const MappedFile file(folder / "a");
  if (!system_brings_pages(file.bytes().first(page))) GTEST_SKIP() << "this system brings no pages";
  const auto part = file.bytes().subspan(begin, size / 2);
  EXPECT_EQ(pages_here(part), 0);
  bring_into_memory(part);
  EXPECT_EQ(pages_here(part), static_cast<std::int64_t>(size / 2 / page + 1));
  bring_into_memory({});
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
