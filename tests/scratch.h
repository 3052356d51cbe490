// A folder for a test's files, removed when the test ends; its ONNX files may be kept (tests/keep_written.h).
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/keep_written.h"

namespace superstep {

class ScratchFolder {
 public:
  ScratchFolder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    test_ = fmt::format("{}.{}", test->test_suite_name(), test->name());
    path_ = std::filesystem::temp_directory_path() /
            fmt::format("superstep-{}-{}-{}", test->test_suite_name(), test->name(), ::getpid());
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() {
    keep_written(path_, test_);
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  // How many files it holds: to see that nothing was left behind.
  long file_count() const {
    return std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator());
  }

 private:
  std::string test_;
  std::filesystem::path path_;
};

}  // namespace superstep
