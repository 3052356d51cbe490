#include "superstep/base/system/interrupt.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "superstep/base/listener.h"
#include "superstep/base/system/asked_to_stop.h"
#include "superstep/base/system/partial_files.h"
#include "superstep/base/system/stops_when.h"
#include "superstep/base/watch.h"

namespace superstep {
namespace {

constexpr auto grace = std::chrono::milliseconds(500);
constexpr auto held_poll = std::chrono::milliseconds(10);
// What comes sooner is the same wish: timeout(1), launchers and terminals signal a process and its group.
constexpr auto once_more = std::chrono::milliseconds(200);

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");
std::atomic<int> holds{0}, deaf{0};
thread_local const StopsWhen* own_reason = nullptr;
sem_t asked;

// Of the first signal, and of the first of a person or a launcher that means it; 0 before.
std::atomic<std::int64_t> asked_at{0}, urged_at{0};
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "a signal handler writes it");

std::int64_t monotonic_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);  // may be called in a signal handler
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void on_signal(int signal) {
  const int error = errno;
  const std::int64_t now = monotonic_milliseconds();
  std::int64_t first = 0, urged = 0;
  if (asked_at.compare_exchange_strong(first, now)) {
    stop_requested = true;
    sem_post(&asked);
  }
  // A batch system warns before it means it, and the limit of processor time comes anew each second: what
  // they ask for is done in order, however often they say so.
  const bool urges = signal == SIGINT || signal == SIGTERM;
  if (urges && !urged_at.compare_exchange_strong(urged, now) && now - urged >= once_more.count()) {
    std::signal(signal, SIG_DFL);
    raise(signal);  // ends the program when the handler returns
  }
  errno = error;
}

// Never destroyed: the program may be ended while statics go.
struct Notes {
  std::mutex mutex;
  std::vector<const std::string*> texts;  // the innermost last
};
Notes& notes() {
  static auto* const all = new Notes;
  return *all;
}
Notes& reasons_to_hold() {
  static auto* const all = new Notes;
  return *all;
}

void add_note(Notes& all, const std::string* text) {
  const std::lock_guard lock(all.mutex);
  all.texts.push_back(text);
}

void remove_note(Notes& all, const std::string* text) {
  const std::lock_guard lock(all.mutex);
  std::erase(all.texts, text);
}

// Of the program that works are done for.
Listener<bool()>& check() {
  static Listener<bool()> installed;
  return installed;
}

std::string innermost(Notes& all) {
  const std::lock_guard lock(all.mutex);
  for (auto text = all.texts.rbegin(); text != all.texts.rend(); ++text)
    if (!(*text)->empty()) return **text;
  return {};
}

bool takes_more(int file) {
  pollfd wanted{file, POLLOUT, 0};
  return ::poll(&wanted, 1, 0) == 1;
}

// What was printed is not lost, unless somebody is printing right now or nobody reads it.
void flush_output() {
  if (!takes_more(STDOUT_FILENO) || ftrylockfile(stdout) != 0) return;
  fflush_unlocked(stdout);
  funlockfile(stdout);
}

void say(const std::string& words) {
  if (takes_more(STDERR_FILENO)) (void)!::write(STDERR_FILENO, words.data(), words.size());
}

using Words = std::string (*)(const std::string&);

// Says at once what is waited for.
void wait_for_holds(Words heard) {
  for (bool told = heard == nullptr; holds.load() > 0; std::this_thread::sleep_for(held_poll)) {
    const std::string reason = told ? std::string() : innermost(reasons_to_hold());
    if (reason.empty()) continue;
    say(heard(reason));
    told = true;
  }
}

[[noreturn]] void end_from_outside(int code, Words last_words, Words heard) {
  while (sem_wait(&asked) != 0) continue;
  std::this_thread::sleep_for(grace);
  wait_for_holds(heard);
  remove_open_partial_files();
  flush_output();
  say(last_words(innermost(notes())));
  _exit(code);
}

}  // namespace

void watch_for_interrupts() {
  static bool watching = false;
  if (std::exchange(watching, true)) return;  // what was asked since then stays asked
  sem_init(&asked, 0, 0);
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  // A terminal that is closed, a batch system's warning (Slurm: --signal), a limit of processor time. Who
  // started the program may have them ignored (nohup).
  for (const int gentle : {SIGHUP, SIGUSR1, SIGXCPU})
    if (std::signal(gentle, on_signal) == SIG_IGN) std::signal(gentle, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is an error of the write, not the end of the program
}

// Signals are left to the other threads, whose system calls they are to interrupt.
void end_when_asked(int code, Words last_words, Words heard) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    std::thread(end_from_outside, code, last_words, heard).detach();
  } catch (const std::system_error&) {  // no thread to be had: who polls is heard all the same
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool interrupted() {
  if (own_reason && own_reason->asked()) return true;
  return deaf.load(std::memory_order_relaxed) == 0 && asked_to_stop();
}
bool asked_to_stop() {
  if (stop_requested.load(std::memory_order_relaxed)) return true;
  const auto asked_too = check().installed();
  return asked_too && (*asked_too)();
}
void request_interrupt() { stop_requested = true; }
void clear_interrupt() {
  stop_requested = false;
  asked_at = urged_at = 0;
}
void set_interrupt_check(std::function<bool()> asked_too) { check().set(std::move(asked_too)); }

HoldEnd::HoldEnd(std::string reason) : reason_(std::move(reason)) {
  add_note(reasons_to_hold(), &reason_);
  ++holds;
}

HoldEnd::~HoldEnd() {
  --holds;
  remove_note(reasons_to_hold(), &reason_);
}

Uninterrupted::Uninterrupted() { ++deaf; }
Uninterrupted::~Uninterrupted() { --deaf; }

StopsWhen::StopsWhen(std::function<bool()> asked) : asked_(std::move(asked)), outer_(own_reason) {
  own_reason = this;
}
StopsWhen::~StopsWhen() { own_reason = outer_; }

StopNote::StopNote(std::string text) : text_(std::move(text)) { add_note(notes(), &text_); }

StopNote::~StopNote() { remove_note(notes(), &text_); }

void StopNote::set(std::string text) {
  const std::lock_guard lock(notes().mutex);
  text_ = std::move(text);
}

}  // namespace superstep
