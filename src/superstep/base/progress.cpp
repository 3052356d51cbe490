#include "superstep/base/progress.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "superstep/base/listener.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/text.h"
#include "superstep/base/watch.h"

namespace superstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto shortest_pause = std::chrono::milliseconds(100);
std::atomic<bool> quiet{false}, bar_is_open{false};
constexpr int not_chosen = -1;
std::atomic<int> chosen{not_chosen};

Listener<void(const ProgressReport&)>& listener() {
  static Listener<void(const ProgressReport&)> installed;
  return installed;
}

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 80;
}

// What is under way, for the thread that writes lines. Never destroyed: that thread outlives everything.
struct Lines {
  std::mutex mutex;
  std::vector<const Progress*> under_way;  // the innermost last
  Clock::time_point last = Clock::now();
  Clock::time_point begun = Clock::now();
  std::string label;
};
Lines& lines() {
  static auto* const all = new Lines;
  return *all;
}

void write_line(const std::string& line) {
  fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
}

void write_due_line(std::chrono::milliseconds interval) {
  const std::lock_guard lock(lines().mutex);
  const auto now = Clock::now();
  if (progress_mode() != ProgressMode::line || now - lines().last < interval) return;
  lines().last = now;
  const double seconds = std::chrono::duration<double>(now - lines().begun).count();
  write_line(lines().under_way.empty()
                 ? fmt::format("{}: at work for {}", lines().label, format_seconds(seconds))
                 : lines().under_way.back()->line());
}

}  // namespace

void set_quiet(bool value) { quiet = value; }
bool is_quiet() { return quiet; }
void set_progress_listener(std::function<void(const ProgressReport&)> told) {
  listener().set(std::move(told));
}

void set_progress(ProgressMode mode) { chosen = static_cast<int>(mode); }

ProgressMode progress_mode() {
  if (quiet) return ProgressMode::none;
  if (const int mode = chosen; mode != not_chosen) return static_cast<ProgressMode>(mode);
  return isatty(STDERR_FILENO) ? ProgressMode::bar : ProgressMode::none;
}

void start_progress_lines(std::string label, std::chrono::milliseconds interval) {
  {
    const std::lock_guard lock(lines().mutex);
    lines().label = std::move(label);
    lines().begun = lines().last = Clock::now();
  }
  const auto look = std::min<std::chrono::milliseconds>(interval / 4, std::chrono::seconds(1));
  // Signals are for the threads that work.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    std::thread([interval, look] {
      for (;;) {
        std::this_thread::sleep_for(look);
        write_due_line(interval);
      }
    }).detach();
  } catch (
      const std::system_error&) {  // no thread to be had: work that says how far it is does so all the same
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool progress_line_is_open() { return bar_is_open; }

Progress::Progress(std::string label, double total, std::string unit, double start)
    : Progress(std::move(label), total, std::move(unit), start, Kind::whole) {}

Progress Progress::passing(std::string label, double total, std::string unit) {
  return {std::move(label), total, std::move(unit), 0, Kind::passing};
}

Progress Progress::phase(std::string label) { return {std::move(label), 0, "", 0, Kind::phase}; }

Progress::Progress(std::string label, double total, std::string unit, double start, Kind kind)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      start_(start),
      done_(start),
      begun_(Clock::now()),
      kind_(kind) {
  const std::lock_guard lock(lines().mutex);
  lines().under_way.push_back(this);
}

Progress::~Progress() {
  finish();
  const std::lock_guard lock(lines().mutex);
  std::erase(lines().under_way, this);
}

double Progress::seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }

void Progress::update(double done, std::string_view note) {
  const std::lock_guard lock(mutex_);
  done_ = done;
  if (!note.empty()) last_note_ = note;
  const auto now = Clock::now();
  if (now - told_ >= shortest_pause) {
    told_ = now;
    inform(last_note_);
  }
  if (now - drawn_ < shortest_pause || progress_mode() != ProgressMode::bar) return;
  if (kind_ != Kind::whole && now - begun_ < std::chrono::seconds(1)) return;
  drawn_ = now;
  draw();
}

void Progress::milestone(std::string_view words) {
  const std::lock_guard all(lines().mutex);
  const std::lock_guard lock(mutex_);
  last_note_ = words;
  if (progress_mode() != ProgressMode::line) return;
  lines().last = Clock::now();
  write_line(line_with(words));
}

void Progress::finish(std::string_view note) {
  const std::lock_guard lock(mutex_);
  if (!note.empty()) last_note_ = note;
  if (std::exchange(finished_, true)) return;
  inform(last_note_);
  if (progress_mode() != ProgressMode::bar) return;
  if (kind_ != Kind::whole) {
    if (drawn_ != Clock::time_point()) tell("\r\033[K");
    bar_is_open = false;
    return;
  }
  draw();
  std::fputc('\n', stderr);
  bar_is_open = false;
}

void Progress::inform(std::string_view note) {
  if (const auto told = listener().installed())
    (*told)({.label = label_, .unit = unit_, .note = note, .done = done_, .total = total_});
}

std::string Progress::line() const {
  const std::lock_guard lock(mutex_);
  return line_with(last_note_);
}

std::string Progress::line_with(std::string_view note) const {
  const double elapsed = seconds();
  std::string line = label_ + ":";
  if (total_ <= 0) {
    line += fmt::format(" for {}", format_seconds(elapsed));
  } else {
    const double rate = elapsed > 0 ? (done_ - start_) / elapsed : 0;
    line += fmt::format(" {:.0f} %, {} of {} {}", 100 * std::clamp(done_ / total_, 0.0, 1.0),
                        format_count(done_), format_count(total_), unit_);
    if (rate > 0) line += fmt::format(", {}/s", format_si(rate, unit_));
    if (rate > 0 && done_ < total_) line += fmt::format(", {} left", format_seconds((total_ - done_) / rate));
  }
  if (!note.empty()) line += fmt::format(", {}", note);
  return line;
}

void Progress::draw() {
  const double elapsed = seconds();
  const double rate = elapsed > 0 ? (done_ - start_) / elapsed : 0;
  const double fraction = total_ > 0 ? std::clamp(done_ / total_, 0.0, 1.0) : 0;
  constexpr int cells = 24;
  const int full = static_cast<int>(fraction * cells);
  std::string line =
      fmt::format("{} [{}{}] {:3.0f} %  {}", label_, std::string(static_cast<std::size_t>(full), '='),
                  std::string(static_cast<std::size_t>(cells - full), ' '), 100 * fraction,
                  format_si(rate, unit_ + "/s"));
  if (rate > 0 && done_ < total_) line += fmt::format("  {} left", format_seconds((total_ - done_) / rate));
  if (!last_note_.empty()) line += fmt::format("  {}", last_note_);
  line.resize(std::min(line.size(), terminal_width() - 1));
  bar_is_open = true;
  tell(fmt::format("\r{}\033[K", line));
}

}  // namespace superstep
