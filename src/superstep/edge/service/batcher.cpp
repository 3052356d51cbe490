#include "superstep/edge/service/batcher.h"

#include <algorithm>

namespace superstep::edge {
namespace {

Tally one(const Job& job) { return {.requests = 1, .rows = static_cast<std::uint64_t>(job.rows)}; }

void move_tally(Tally& from, Tally& to, const Job& job) {
  from.requests -= 1;
  from.rows -= static_cast<std::uint64_t>(job.rows);
  to += one(job);
}

}  // namespace

bool Batcher::fits(const Job& job) const {
  return queued_rows_ + job.rows <= settings_.queue_rows &&
         queued_bytes_ + job.bytes() <= settings_.queue_bytes;
}

// The front of the queue ends without being computed. Of a job that is computed in part the rest is: its
// rows that were taken cannot be called back.
void Batcher::leave_queue(Outcome outcome, std::vector<Ended>& ended) {
  const JobPointer job = queue_.front();
  queue_.pop_front();
  queued_rows_ -= job->rows;
  queued_bytes_ -= job->bytes();
  move_tally(account_.waiting, account_.of(outcome), *job);
  ended.push_back({job, outcome});
  ++telling_;
}

void Batcher::make_room(const Job& job, std::vector<Ended>& ended) {
  while (!fits(job) && !queue_.empty() && queue_.front()->taken_rows == 0)
    leave_queue(Outcome::dropped, ended);
}

bool Batcher::submit(const JobPointer& job, bool may_wait) {
  std::vector<Ended> ended;
  bool queued = false;
  {
    std::unique_lock lock(mutex_);
    job->arrived = Clock::now();
    // What can never fit would wait for ever.
    const bool may_ever_fit = job->rows <= settings_.queue_rows && job->bytes() <= settings_.queue_bytes;
    if (may_wait && may_ever_fit && settings_.when_full == QueueFull::wait)
      room_.wait(lock, [&] { return closed_ || fits(*job); });
    account_.received += one(*job);
    if (settings_.when_full == QueueFull::drop_oldest && may_ever_fit && !closed_) make_room(*job, ended);
    queued = !closed_ && fits(*job);
    if (queued) {
      account_.waiting += one(*job);
      queue_.push_back(job);
      queued_rows_ += job->rows;
      queued_bytes_ += job->bytes();
    } else {
      account_.of(closed_ ? Outcome::closed : Outcome::refused) += one(*job);
    }
  }
  if (queued) work_.notify_one();
  tell(ended);
  return queued;
}

void Batcher::count_invalid() {
  const std::scoped_lock lock(mutex_);
  account_.received.requests += 1;
  account_.of(Outcome::invalid).requests += 1;
}

void Batcher::drop_expired(std::vector<Ended>& ended) {
  const Clock::time_point now = Clock::now();
  const auto expired = [&](const JobPointer& job) {
    return job->taken_rows == 0 && job->deadline && *job->deadline < now;
  };
  while (!queue_.empty() && expired(queue_.front())) leave_queue(Outcome::expired, ended);
}

bool Batcher::is_batch_ready(Clock::time_point now) const {
  return closed_ || queued_rows_ >= settings_.max_batch || queue_.front()->taken_rows > 0 ||
         now >= queue_.front()->arrived + settings_.max_delay;
}

// The rows at the front that are of one version, at most max_batch.
Batch Batcher::take_front() {
  Batch batch{.pieces = {}, .rows = 0, .taken = Clock::now()};
  const std::shared_ptr<Version> version = queue_.front()->version;
  const std::int64_t most = std::min(settings_.max_batch, version->max_batch());
  while (!queue_.empty() && batch.rows < most && queue_.front()->version == version) {
    const JobPointer job = queue_.front();
    if (job->taken_rows == 0) {
      if (batch.rows > 0 && job->deadline && *job->deadline < batch.taken) break;  // the next take() says so
      job->started = batch.taken;
      move_tally(account_.waiting, account_.running, *job);
      times_.queue.add(job->started - job->arrived);
    }
    const std::int64_t count = std::min(job->rows - job->taken_rows, most - batch.rows);
    batch.pieces.push_back({job, job->taken_rows, count});
    batch.rows += count;
    job->taken_rows += count;
    queued_rows_ -= count;
    if (job->taken_rows < job->rows) break;
    queued_bytes_ -= job->bytes();
    queue_.pop_front();
  }
  return batch;
}

std::optional<Batch> Batcher::take() {
  for (;;) {
    std::vector<Ended> ended;
    std::optional<Batch> batch;
    bool over = false;
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [&] { return closed_ || !queue_.empty(); });
      drop_expired(ended);
      if (!ended.empty()) room_.notify_all();
      if (queue_.empty()) {
        over = closed_;
      } else if (!is_batch_ready(Clock::now())) {
        // More may come, or another worker may take it: looked at again.
        work_.wait_until(lock, queue_.front()->arrived + settings_.max_delay);
      } else {
        batch = take_front();
        if (!queue_.empty()) work_.notify_one();
        room_.notify_all();
      }
      if (is_idle()) idle_.notify_all();
    }
    tell(ended);
    if (batch || over) return batch;
  }
}

void Batcher::end(const JobPointer& job, std::vector<Ended>& ended, Clock::time_point now) {
  const Outcome outcome = job->failure.empty() ? Outcome::served : Outcome::failed;
  move_tally(account_.running, account_.of(outcome), *job);
  times_.total.add(now - job->arrived);
  ended.push_back({job, outcome});
  ++telling_;
}

void Batcher::finish(const Batch& batch, const std::string& failure) {
  std::vector<Ended> ended;
  {
    const std::scoped_lock lock(mutex_);
    const Clock::time_point now = Clock::now();
    times_.compute.add(now - batch.taken);
    times_.by_rows[batch.rows].add(now - batch.taken);
    for (const Piece& piece : batch.pieces) {
      piece.job->done_rows += piece.count;
      if (!failure.empty()) piece.job->failure = failure;
      if (piece.job->done_rows == piece.job->rows) end(piece.job, ended, now);
    }
    if (is_idle()) idle_.notify_all();
  }
  tell(ended);
}

void Batcher::close() {
  {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
  }
  work_.notify_all();
  room_.notify_all();
}

void Batcher::abandon() {
  std::vector<Ended> ended;
  {
    const std::scoped_lock lock(mutex_);
    // What is computed in part is finished: its rows at the front are few.
    std::deque<JobPointer> kept;
    while (!queue_.empty()) {
      if (queue_.front()->taken_rows == 0) {
        leave_queue(Outcome::closed, ended);
        continue;
      }
      kept.push_back(queue_.front());
      queue_.pop_front();
    }
    queue_ = std::move(kept);
    if (is_idle()) idle_.notify_all();
  }
  tell(ended);
}

bool Batcher::wait_until_idle(Clock::time_point until) {
  std::unique_lock lock(mutex_);
  return idle_.wait_until(lock, until, [&] { return is_idle(); });
}

Account Batcher::account() const {
  const std::scoped_lock lock(mutex_);
  return account_;
}

ServiceTimes Batcher::times() const {
  const std::scoped_lock lock(mutex_);
  return times_;
}

// Who is told may be gone once nothing is left: that is so when all of them have heard.
void Batcher::tell(const std::vector<Ended>& ended) {
  if (ended.empty()) return;
  for (const Ended& one : ended)
    if (one.job->done) one.job->done(*one.job, one.outcome, one.job->failure);
  const std::scoped_lock lock(mutex_);
  telling_ -= ended.size();
  if (is_idle()) idle_.notify_all();
}

bool Batcher::is_idle() const {
  return account_.waiting.requests + account_.running.requests + telling_ == 0;
}

}  // namespace superstep::edge
