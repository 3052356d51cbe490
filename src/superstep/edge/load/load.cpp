#include "superstep/edge/load/load.h"

#include <boost/asio.hpp>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>

#include "superstep/base/random.h"
#include "superstep/base/statistics.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/edge/load/connection.h"

namespace superstep::edge {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr double patience = 10;  // seconds for what is on its way at the end

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// When requests are due, one after the other.
class Schedule {
 public:
  Schedule(const LoadSettings& settings, Clock::time_point begin)
      : settings_(settings), random_(settings.seed, 1), begin_(begin) {
    advance();
  }
  Clock::time_point next() const {
    return begin_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(at_));
  }
  void advance() {
    at_ += settings_.arrivals == Arrivals::constant ? 1 / settings_.rate
                                                    : -std::log1p(-random_.uniform()) / settings_.rate;
  }

 private:
  const LoadSettings& settings_;
  RandomStream random_;
  Clock::time_point begin_;
  double at_ = 0;
};

class Run {
 public:
  Run(const LoadTarget& target, const LoadSettings& settings)
      : target_(target),
        settings_(settings),
        message_(infer_message(target, settings.rows, settings.binary, settings.seed)),
        connections_(connections_to(target, message_, context_)),
        timer_(context_),
        watch_(context_) {}

  LoadReport make();

 private:
  bool open_loop() const { return settings_.rate > 0; }
  bool is_measured(Clock::time_point due) const { return due >= measured_from_ && due < end_; }
  void connect();
  void arm();
  void on_time();
  void start(Connection& client, Clock::time_point due);
  void answered(Connection& client, Clock::time_point due, int status, Clock::time_point now);
  void look();
  bool is_over() const {
    if (lost_ == clients_.size()) return true;  // nobody is left to ask
    return Clock::now() >= end_ && on_their_way_ == 0 && waiting_.empty();
  }
  void judge();

  const LoadTarget& target_;
  const LoadSettings& settings_;
  const std::string message_;
  asio::io_context context_;
  const std::unique_ptr<Connections> connections_;
  asio::steady_timer timer_, watch_;
  std::vector<std::unique_ptr<Connection>> clients_;
  std::vector<Connection*> free_;
  std::deque<Clock::time_point> waiting_;  // due, with no connection free
  std::optional<Schedule> schedule_;
  Clock::time_point measured_from_, end_;
  std::size_t on_their_way_ = 0, lost_ = 0;
  std::vector<std::pair<Clock::time_point, double>> samples_;  // due, latency
  LoadReport report_;
};

void Run::connect() {
  for (int i = 0; i < settings_.connections; ++i) {
    clients_.push_back(connections_->connect());
    free_.push_back(clients_.back().get());
  }
}

void Run::start(Connection& client, Clock::time_point due) {
  ++on_their_way_;
  client.send(
      [this, &client, due](int status, Clock::time_point now) { answered(client, due, status, now); });
}

void Run::answered(Connection& client, Clock::time_point due, int status, Clock::time_point now) {
  --on_their_way_;
  if (is_measured(due)) {
    ++report_.statuses[status];
    if (status == 200) samples_.emplace_back(due, seconds_between(due, now));
  }
  if (status == 0) {  // this connection is lost; the others go on
    ++lost_;
    return;
  }
  if (!open_loop()) {
    if (const Clock::time_point next = Clock::now(); next < end_) start(client, next);
  } else if (waiting_.empty()) {
    free_.push_back(&client);
  } else {
    start(client, waiting_.front());
    waiting_.pop_front();
  }
}

void Run::arm() {
  if (schedule_->next() >= end_) return;
  timer_.expires_at(schedule_->next());
  timer_.async_wait([this](error_code stopped) {
    if (!stopped) on_time();
  });
}

// Everything that is due by now.
void Run::on_time() {
  for (Clock::time_point now = Clock::now(); schedule_->next() <= now && schedule_->next() < end_;
       schedule_->advance()) {
    const Clock::time_point due = schedule_->next();
    if (is_measured(due)) ++report_.due;
    if (free_.empty()) {
      waiting_.push_back(due);
      continue;
    }
    if (is_measured(due)) report_.lateness.push_back(seconds_between(due, now));
    Connection& client = *free_.back();
    free_.pop_back();
    start(client, due);
  }
  arm();
}

// Ends the run when all is answered, when patience is over or when the user wants it.
void Run::look() {
  watch_.expires_after(std::chrono::milliseconds(5));
  watch_.async_wait([this](error_code stopped) {
    if (stopped) return;
    if (is_over() || interrupted() || seconds_between(end_, Clock::now()) > patience) return context_.stop();
    look();
  });
}

void Run::judge() {
  std::vector<double> thirds[3];
  for (const auto& [due, latency] : samples_) {
    const double share = seconds_between(measured_from_, due) / settings_.seconds;
    thirds[std::clamp(static_cast<int>(share * 3), 0, 2)].push_back(latency);
    report_.latencies.push_back(latency);
  }
  std::ranges::sort(report_.latencies);
  std::ranges::sort(report_.lateness);
  std::vector<double> medians;
  for (const std::vector<double>& third : thirds) medians.push_back(third.empty() ? 0 : median(third));
  const auto [least, most] = std::ranges::minmax(medians);
  report_.steady = least > 0 && most <= 1.1 * least;
  std::uint64_t answers = 0;
  for (const auto& [status, count] : report_.statuses) answers += count;
  if (!open_loop()) report_.due = answers + on_their_way_;
  report_.unanswered = report_.due - std::min(report_.due, answers);
  report_.seconds = settings_.seconds;
}

LoadReport Run::make() {
  const ServerTimes before = server_times(target_);
  connect();
  const Clock::time_point begin = Clock::now();
  const auto after = [&](double seconds) {
    return begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  };
  measured_from_ = after(settings_.warm_up);
  end_ = after(settings_.warm_up + settings_.seconds);
  if (open_loop()) {
    schedule_.emplace(settings_, begin);
    arm();
  } else {
    for (const auto& client : clients_) start(*client, begin);
  }
  look();
  context_.run();
  if (interrupted()) throw Error(ErrorCode::interrupted, "the load was cut short");
  judge();
  for (const auto& client : clients_) client->close();
  const ServerTimes now = server_times(target_);
  report_.server = {.requests = now.requests - before.requests,
                    .batches = now.batches - before.batches,
                    .rows = now.rows - before.rows,
                    .queue = now.queue - before.queue,
                    .compute = now.compute - before.compute};
  return std::move(report_);
}

}  // namespace

double LoadReport::reached() const {
  return seconds > 0 ? static_cast<double>(latencies.size()) / seconds : 0;
}

LoadReport apply_load(const LoadTarget& target, const LoadSettings& settings) {
  return Run(target, settings).make();
}

}  // namespace superstep::edge
