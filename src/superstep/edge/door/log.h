// A log in lines of JSON that does not fill a disk: FILE, and FILE.1, FILE.2 ... of what was before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "superstep/edge/service/durations.h"

namespace superstep::edge {

struct LogSettings {
  std::filesystem::path file;                 // empty: nothing is written
  std::size_t bytes = std::size_t{16} << 20;  // of a file; then it becomes FILE.1
  int kept = 5;                               // files beside the present one
  std::uint64_t lines_per_second = 0;         // more are counted and left out; 0: none is
};

class JsonLog {
 public:
  // Throws Error (io) where the file cannot be written to.
  explicit JsonLog(LogSettings settings);
  ~JsonLog();  // says what was left out
  JsonLog(const JsonLog&) = delete;
  JsonLog& operator=(const JsonLog&) = delete;

  bool is_written() const { return !settings_.file.empty(); }
  // With the time in front, "time". What the disk refuses is counted in lost(): service goes on. Any thread.
  void add(const nlohmann::json& line);
  std::uint64_t lost() const;      // lines that could not be written
  std::uint64_t left_out() const;  // lines beyond the rate

 private:
  void write(const std::string& text);
  void open();
  void rotate();
  void say_left_out();

  const LogSettings settings_;
  mutable std::mutex mutex_;
  int descriptor_ = -1;
  std::size_t size_ = 0;
  Clock::time_point second_{};  // begins here: lines count within it
  std::uint64_t in_second_ = 0, unsaid_ = 0, left_out_ = 0, lost_ = 0;
};

// "2026-01-31T12:00:00.123Z".
std::string time_of_day();

}  // namespace superstep::edge
