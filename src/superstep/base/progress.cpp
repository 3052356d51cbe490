#include "superstep/base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <utility>

#include "superstep/base/listener.h"
#include "superstep/base/text.h"
#include "superstep/base/watch.h"

namespace superstep {
namespace {

constexpr auto shortest_pause = std::chrono::milliseconds(100);

std::atomic<bool> quiet{false};

Listener<void(const ProgressReport&)>& listener() {
  static Listener<void(const ProgressReport&)> installed;
  return installed;
}

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 80;
}

}  // namespace

void set_quiet(bool value) { quiet = value; }
bool is_quiet() { return quiet; }
void set_progress_listener(std::function<void(const ProgressReport&)> told) {
  listener().set(std::move(told));
}

Progress::Progress(std::string label, double total, std::string unit, double start)
    : Progress(std::move(label), total, std::move(unit), start, false) {}

Progress Progress::passing(std::string label, double total, std::string unit) {
  return {std::move(label), total, std::move(unit), 0, true};
}

Progress::Progress(std::string label, double total, std::string unit, double start, bool passing)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      start_(start),
      done_(start),
      begun_(std::chrono::steady_clock::now()),
      visible_(!quiet && isatty(STDERR_FILENO)),
      passing_(passing) {}

Progress::~Progress() { finish(last_note_); }

void Progress::update(double done, std::string_view note) {
  done_ = done;
  if (!note.empty()) last_note_ = note;
  const auto now = std::chrono::steady_clock::now();
  if (now - told_ >= shortest_pause) {
    told_ = now;
    tell(last_note_);
  }
  if (!visible_ || now - drawn_ < shortest_pause) return;
  if (passing_ && now - begun_ < std::chrono::seconds(1)) return;
  drawn_ = now;
  draw(last_note_);
}

void Progress::finish(std::string_view note) {
  if (std::exchange(finished_, true)) return;
  tell(note.empty() ? last_note_ : note);
  if (!visible_) return;
  if (passing_) {
    if (drawn_ != std::chrono::steady_clock::time_point()) fmt::print(stderr, "\r\033[K");
    return;
  }
  draw(note.empty() ? last_note_ : note);
  std::fputc('\n', stderr);
}

void Progress::tell(std::string_view note) {
  if (const auto told = listener().installed())
    (*told)({.label = label_, .unit = unit_, .note = note, .done = done_, .total = total_});
}

void Progress::draw(std::string_view note) {
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  const double rate = elapsed > 0 ? (done_ - start_) / elapsed : 0;
  const double fraction = total_ > 0 ? std::clamp(done_ / total_, 0.0, 1.0) : 0;
  constexpr int cells = 24;
  const int full = static_cast<int>(fraction * cells);
  std::string line = fmt::format(
      "{} [{}{}] {:3.0f} %  {}/s", label_, std::string(static_cast<std::size_t>(full), '='),
      std::string(static_cast<std::size_t>(cells - full), ' '), 100 * fraction, format_si(rate, unit_));
  if (rate > 0 && done_ < total_) line += fmt::format("  {} left", format_seconds((total_ - done_) / rate));
  if (!note.empty()) line += fmt::format("  {}", note);
  line.resize(std::min(line.size(), terminal_width() - 1));
  fmt::print(stderr, "\r{}\033[K", line);
  std::fflush(stderr);
}

}  // namespace superstep
