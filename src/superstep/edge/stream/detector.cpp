#include "superstep/edge/stream/detector.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>
#include <thread>

#include "superstep/base/option_range.h"
#include "superstep/base/progress.h"
#include "superstep/base/random.h"
#include "superstep/base/statistics.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/edge/stream/acknowledged.h"
#include "superstep/edge/stream/answers.h"
#include "superstep/edge/stream/ends.h"

namespace superstep::edge {
namespace {

using SteadyClock = std::chrono::steady_clock;

enum Purpose : std::uint32_t { of_faults, of_order, of_arrivals, of_damage };

// The kernel may wake a thread up to 50 us late, to wake several together; a detector would not wait.
class PunctualThread {
 public:
  PunctualThread() : before_(::prctl(PR_GET_TIMERSLACK)) { ::prctl(PR_SET_TIMERSLACK, 1UL); }
  ~PunctualThread() {
    if (before_ > 0) ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(before_));
  }
  PunctualThread(const PunctualThread&) = delete;
  PunctualThread& operator=(const PunctualThread&) = delete;

 private:
  int before_;  // ns
};

class Detector {
 public:
  Detector(const Tensor& pixels, const DetectorSettings& settings)
      : pixels_(pixels), settings_(settings), arrivals_(settings.seed, 0, of_arrivals) {
    if (settings.acknowledge)
      acknowledged_.emplace(settings.to, static_cast<std::size_t>(settings.high_water), settings.curve);
    else
      pushed_ = open_sender(settings.to, settings.high_water, settings.series, settings.curve);
    if (settings.answers.empty()) return;
    const auto patience =
        std::chrono::milliseconds(static_cast<std::int64_t>(1000 * std::min(settings.patience, 86400.0)));
    due_times_.resize(settings.frames);
    answers_.emplace(settings.answers, settings.series, settings.frames, patience, settings.curve);
  }

  DetectorReport run() {
    const PunctualThread punctual;
    hand_over(encode_begin(settings_.format, {settings_.series, settings_.frames}, frame(0)));
    const Stopwatch watch;
    begin_ = SteadyClock::now();
    Progress progress("stream " + settings_.series, static_cast<double>(settings_.frames), "frames");
    for (std::uint64_t first = 0; first < settings_.frames; first += window()) {
      for (const std::uint64_t number : order_of(first)) send(number);
      progress.update(static_cast<double>(std::min(settings_.frames, first + window())));
    }
    report_.seconds = watch.seconds();
    wait_for_acknowledgements();  // the end is the last that anybody hears
    hand_over(encode_end(settings_.format, {settings_.series}));
    wait_for_acknowledgements();
    constexpr auto patience = std::chrono::milliseconds(30'000);
    if (pushed_) pushed_->flush(patience);
    if (answers_) take_latencies();
    std::ranges::sort(lateness_);
    report_.lateness_p99 = lateness_.empty() ? 0 : nearest_rank(lateness_, 0.99);
    return report_;
  }

 private:
  std::uint64_t window() const { return std::max<std::uint64_t>(1, settings_.faults.reorder); }

  Frame frame(std::uint64_t number) const {
    const auto count = static_cast<std::uint64_t>(pixels_.shape()[0]);
    const std::size_t bytes = pixels_.byte_count() / count;
    const std::vector<std::int64_t>& extents = pixels_.shape().extents();
    return {.series = settings_.series,
            .number = number,
            .element = pixels_.type(),
            .extents = {extents.begin() + 1, extents.end()},
            .pixels = {pixels_.bytes() + number % count * bytes, bytes},
            .position = settings_.positions.empty()
                            ? std::nullopt
                            : std::optional(settings_.positions[number % settings_.positions.size()])};
  }

  std::vector<std::uint64_t> order_of(std::uint64_t first) {
    std::vector<std::uint64_t> numbers(std::min(window(), settings_.frames - first));
    std::iota(numbers.begin(), numbers.end(), first);
    RandomStream random(settings_.seed, first, of_order);
    for (std::size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[random.below(i)]);
    for (std::size_t i = 0; i < numbers.size(); ++i) report_.reordered += numbers[i] != first + i;
    return numbers;
  }

  // When the next frame is due, in seconds since the first.
  double next_due() {
    if (settings_.rate == 0) return 0;
    const double due = due_;
    ++paced_;
    if (settings_.pace == Pace::poisson)
      due_ -= std::log1p(-arrivals_.uniform()) / settings_.rate;
    else if (settings_.pace == Pace::constant)
      due_ = static_cast<double>(paced_) / settings_.rate;
    else
      due_ = static_cast<double>(paced_ / settings_.burst * settings_.burst) / settings_.rate;
    return due;
  }

  void send(std::uint64_t number) {
    double due = next_due();
    due += stalled(due);
    const auto when =
        begin_ + std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(due));
    RandomStream random(settings_.seed, number, of_faults);
    const bool drop = random.uniform() < settings_.faults.drop,
               twice = random.uniform() < settings_.faults.twice,
               corrupt = random.uniform() < settings_.faults.corrupt;
    std::vector<std::string> message = encode_frame(settings_.format, frame(number), settings_.compression);
    if (answers_ && !drop && !corrupt) due_times_[number] = when;
    if (settings_.rate > 0) std::this_thread::sleep_until(when);
    if (interrupted()) throw Error(ErrorCode::interrupted, fmt::format("at frame {}", number));
    if (drop) {
      ++report_.dropped;
      return;
    }
    if (corrupt) {
      ++report_.corrupt;
      std::string& last = message.back();
      last.resize(RandomStream(settings_.seed, number, of_damage).below(last.size()));
    }
    hand_over(message);
    ++report_.sent;
    if (twice && !corrupt) {
      ++report_.twice;
      ++report_.sent;
      hand_over(message);
    }
    if (settings_.rate > 0)
      lateness_.push_back(std::chrono::duration<double>(SteadyClock::now() - when).count());
  }

  void take_latencies() {
    constexpr auto quiet = std::chrono::seconds(5);
    const auto whole = static_cast<std::uint64_t>(
        std::ranges::count_if(due_times_, [](const auto& due) { return due != SteadyClock::time_point(); }));
    answers_->finish(whole, quiet, interrupted);
    for (std::uint64_t number = 0; number < due_times_.size(); ++number)
      if (const auto came = answers_->came(number); came && due_times_[number] != SteadyClock::time_point())
        report_.latencies.push_back(std::chrono::duration<double>(*came - due_times_[number]).count());
    std::ranges::sort(report_.latencies);
    report_.unanswered = whole - report_.latencies.size();
  }

  bool send_within(const std::vector<std::string>& message, std::chrono::milliseconds wait) {
    return acknowledged_ ? acknowledged_->send(message, wait) : pushed_->send(message, wait);
  }

  void require_patience(const Stopwatch& watch) const {
    if (interrupted()) throw Error(ErrorCode::interrupted, "nobody takes frames");
    if (watch.seconds() > settings_.patience)
      throw Error(
          ErrorCode::io, fmt::format("nobody has taken a frame for {}", format_seconds(settings_.patience)),
          settings_.to,
          settings_.acknowledge
              ? "superstep serve MODEL --pull tcp://THIS_HOST:PORT --journal DIR --write DIR takes them"
              : "superstep serve MODEL --pull tcp://THIS_HOST:PORT takes them");
  }

  void hand_over(const std::vector<std::string>& message) {
    if (send_within(message, std::chrono::milliseconds(0))) return;
    ++report_.held_back;
    const Stopwatch watch;
    while (!send_within(message, std::chrono::milliseconds(100))) require_patience(watch);
  }

  void wait_for_acknowledgements() {
    if (!acknowledged_) return;
    Stopwatch watch;
    for (std::size_t left = acknowledged_->unacknowledged();
         !acknowledged_->wait_for_all(std::chrono::milliseconds(100));) {
      require_patience(watch);
      if (acknowledged_->unacknowledged() < left) watch = Stopwatch();
      left = acknowledged_->unacknowledged();
    }
    report_.sent_again = acknowledged_->sent_again();
  }

  // Seconds later than it would be due without the stalls.
  double stalled(double due) const {
    if (settings_.faults.stall == 0) return 0;
    return std::floor(due / settings_.faults.every) * settings_.faults.stall;
  }

  const Tensor& pixels_;
  const DetectorSettings& settings_;
  std::unique_ptr<Outlet> pushed_;
  std::optional<AcknowledgedSender> acknowledged_;
  std::optional<AnswerListener> answers_;
  std::vector<SteadyClock::time_point> due_times_;  // of frames that are sent whole; the clock's zero: others
  RandomStream arrivals_;
  SteadyClock::time_point begin_;
  double due_ = 0;
  std::uint64_t paced_ = 0;
  std::vector<double> lateness_;
  DetectorReport report_;
};

constexpr const char* known_faults =
    "drop=SHARE, dup=SHARE, corrupt=SHARE (0 to 1), reorder=N, stall=SECONDS@EVERY_SECONDS";

void read_stall(const std::string& word, Faults& faults) {
  const std::size_t at = word.find('@');
  const auto seconds =
      at < 6 || at == std::string::npos ? std::nullopt : finite_number(word.substr(6, at - 6));
  const auto every = at == std::string::npos ? std::nullopt : finite_number(word.substr(at + 1));
  faults.stall = seconds.value_or(0);
  faults.every = every.value_or(0);
  if (faults.stall <= 0 || faults.every <= 0 || faults.stall > 3600 || faults.every > 1e6)
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no fault", word), "--faults", known_faults);
}

}  // namespace

Faults faults_from_text(const std::string& text) {
  Faults faults;
  if (text.empty()) return faults;
  for (const std::string& word : split(text, ',')) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (name == "stall") {
      read_stall(word, faults);
      continue;
    }
    const double value =
        (equals == std::string::npos ? std::nullopt : finite_number(word.substr(equals + 1))).value_or(-1);
    double* share = name == "drop"      ? &faults.drop
                    : name == "dup"     ? &faults.twice
                    : name == "corrupt" ? &faults.corrupt
                                        : nullptr;
    if (share && value >= 0 && value <= 1)
      *share = value;
    else if (name == "reorder" && value >= 1 && value <= 65536)
      faults.reorder = static_cast<std::uint64_t>(value);
    else
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no fault", word), "--faults",
                  known_faults);
  }
  return faults;
}

DetectorReport send_series(const Tensor& pixels, const DetectorSettings& settings) {
  if (pixels.shape().rank() < 1 || pixels.shape()[0] < 1)
    throw Error(ErrorCode::invalid_argument, "there are no frames to send");
  if (settings.frames > most_frames)
    throw Error(ErrorCode::invalid_argument, fmt::format("a series has at most {} frames", most_frames),
                "--frames");
  if (!settings.answers.empty() && settings.rate == 0)
    throw Error(ErrorCode::invalid_argument,
                "counts from when a frame is due, and frames that go as fast as they are taken never are",
                "--answers", "give --rate");
  return Detector(pixels, settings).run();
}

}  // namespace superstep::edge
