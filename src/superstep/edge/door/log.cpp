#include "superstep/edge/door/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"

namespace superstep::edge {
namespace {

std::filesystem::path older(const std::filesystem::path& file, int number) {
  return file.string() + "." + std::to_string(number);
}

}  // namespace

std::string time_of_day() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  ::gmtime_r(&now.tv_sec, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, now.tv_nsec / 1'000'000);
}

JsonLog::JsonLog(LogSettings settings) : settings_(std::move(settings)) {
  if (settings_.file.empty()) return;
  open();
  if (descriptor_ < 0)
    throw Error(ErrorCode::io, fmt::format("cannot be written to: {}", std::strerror(errno)),
                settings_.file.string(), "name a file in a folder that this user may write to");
}

JsonLog::~JsonLog() {
  if (!is_written()) return;
  say_left_out();
  if (descriptor_ >= 0) ::close(descriptor_);
}

// Addresses of people are in it: for the server's user and its group alone.
void JsonLog::open() {
  descriptor_ = ::open(settings_.file.c_str(),
                       O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0640);
  struct stat status {};
  size_ =
      descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0;
}

void JsonLog::rotate() {
  if (descriptor_ >= 0) ::close(descriptor_);
  std::error_code ignored;
  std::filesystem::remove(older(settings_.file, settings_.kept), ignored);
  for (int number = settings_.kept; number-- > 1;)
    std::filesystem::rename(older(settings_.file, number), older(settings_.file, number + 1), ignored);
  if (settings_.kept > 0)
    std::filesystem::rename(settings_.file, older(settings_.file, 1), ignored);
  else
    std::filesystem::remove(settings_.file, ignored);
  open();
}

void JsonLog::write(const std::string& text) {
  if (size_ > 0 && size_ + text.size() > settings_.bytes) rotate();
  if (descriptor_ < 0) open();  // perhaps there is room again
  const ssize_t written = descriptor_ < 0 ? -1 : ::write(descriptor_, text.data(), text.size());
  if (written > 0) size_ += static_cast<std::size_t>(written);
  if (written != static_cast<ssize_t>(text.size())) ++lost_;
}

void JsonLog::say_left_out() {
  if (unsaid_ == 0) return;
  write(nlohmann::json{{"time", time_of_day()}, {"left_out", unsaid_}}.dump() + "\n");
  unsaid_ = 0;
}

void JsonLog::add(const nlohmann::json& line) {
  if (!is_written()) return;
  nlohmann::json with_time = line;
  with_time["time"] = time_of_day();
  const std::string text = with_time.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const std::scoped_lock lock(mutex_);
  if (settings_.lines_per_second > 0) {
    if (const auto now = Clock::now(); now - second_ >= std::chrono::seconds(1)) {
      second_ = now;
      in_second_ = 0;
      say_left_out();
    }
    if (++in_second_ > settings_.lines_per_second) {
      ++unsaid_;
      ++left_out_;
      return;
    }
  }
  write(text);
}

std::uint64_t JsonLog::lost() const {
  const std::scoped_lock lock(mutex_);
  return lost_;
}
std::uint64_t JsonLog::left_out() const {
  const std::scoped_lock lock(mutex_);
  return left_out_;
}

}  // namespace superstep::edge
