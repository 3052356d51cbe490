// The queue: batches are of one version and within their bounds, and every request is accounted for.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "superstep/base/random.h"
#include "superstep/edge/service/batcher.h"
#include "tests/edge/models.h"

namespace superstep::edge {
namespace {

std::shared_ptr<Version> version(std::int64_t max_batch = 16) {
  const target::Target& cpu = target::find_target("cpu");
  return std::make_shared<Version>(read_blueprint({.what = "mlp"}, cpu), cpu,
                                   VersionSettings{.max_batch = max_batch});
}

struct Told {
  std::atomic<int> times = 0;
  std::atomic<Outcome> outcome = Outcome::served;
};

JobPointer job_of(const std::shared_ptr<Version>& of, std::int64_t rows, Told& told) {
  JobPointer job = make_job(of, rows);
  job->done = [&told](Job&, Outcome outcome, const std::string&) {
    told.outcome = outcome;
    ++told.times;
  };
  return job;
}

TEST(Batcher, JoinsWhatWaits) {
  const auto model = version();
  Batcher batcher({.max_batch = 16});
  Told told[3];
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(batcher.submit(job_of(model, i + 1, told[i])));
  EXPECT_EQ(batcher.account().waiting.requests, 3U);
  const auto batch = batcher.take();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->rows, 6);
  EXPECT_EQ(batch->pieces.size(), 3U);
  EXPECT_EQ(batcher.account().running, (Tally{3, 6}));
  batcher.finish(*batch);
  for (const Told& one : told) {
    EXPECT_EQ(one.times, 1);
    EXPECT_EQ(one.outcome.load(), Outcome::served);
  }
  EXPECT_EQ(batcher.account().of(Outcome::served), (Tally{3, 6}));
  EXPECT_TRUE(batcher.account().balances());
  EXPECT_EQ(batcher.times().by_rows.at(6).count(), 1U);
}

TEST(Batcher, DividesALongRequestAndJoinsItsEndWithTheNext) {
  const auto model = version();
  Batcher batcher({.max_batch = 16});
  Told first, second;
  batcher.submit(job_of(model, 40, first));
  batcher.submit(job_of(model, 3, second));
  std::vector<Batch> batches;
  for (int i = 0; i < 3; ++i) batches.push_back(*batcher.take());
  EXPECT_EQ(batches[0].rows, 16);
  EXPECT_EQ(batches[1].pieces[0].first, 16);
  EXPECT_EQ(batches[2].rows, 11);
  ASSERT_EQ(batches[2].pieces.size(), 2U);
  batcher.finish(batches[2]);  // in any order
  EXPECT_EQ(first.times, 0);
  EXPECT_EQ(second.times, 1);
  batcher.finish(batches[0]);
  batcher.finish(batches[1], "a worker fell over");
  EXPECT_EQ(first.times, 1);
  EXPECT_EQ(first.outcome.load(), Outcome::failed);
  EXPECT_TRUE(batcher.account().balances());
}

TEST(Batcher, NeverMixesVersions) {
  const auto old = version(), next = version();
  Batcher batcher({.max_batch = 16});
  Told told[4];
  batcher.submit(job_of(old, 1, told[0]));
  batcher.submit(job_of(old, 1, told[1]));
  batcher.submit(job_of(next, 1, told[2]));
  batcher.submit(job_of(old, 1, told[3]));
  for (const std::size_t pieces : {2U, 1U, 1U}) {
    const auto batch = batcher.take();
    EXPECT_EQ(batch->pieces.size(), pieces);
    for (const Piece& piece : batch->pieces) EXPECT_EQ(piece.job->version, batch->pieces[0].job->version);
    batcher.finish(*batch);
  }
}

TEST(Batcher, RefusesWhatDoesNotFit) {
  const auto model = version();
  Batcher batcher({.queue_rows = 4});
  Told told[3];
  EXPECT_TRUE(batcher.submit(job_of(model, 3, told[0])));
  EXPECT_FALSE(batcher.submit(job_of(model, 2, told[1])));
  EXPECT_TRUE(batcher.submit(job_of(model, 1, told[2])));
  EXPECT_EQ(told[1].times, 0) << "who is refused knows it from submit()";
  EXPECT_EQ(batcher.account().of(Outcome::refused), (Tally{1, 2}));
  EXPECT_TRUE(batcher.account().balances());
}

TEST(Batcher, RefusesBytesBeyondItsBound) {
  const auto model = version();
  Told told;
  const std::size_t row = job_of(model, 1, told)->bytes();
  Batcher batcher({.queue_bytes = 2 * row});
  EXPECT_TRUE(batcher.submit(job_of(model, 2, told)));
  EXPECT_FALSE(batcher.submit(job_of(model, 1, told)));
  batcher.finish(*batcher.take());
  EXPECT_TRUE(batcher.submit(job_of(model, 1, told))) << "taken rows leave room";
}

TEST(Batcher, DropsTheOldestWhereItIsToldTo) {
  const auto model = version();
  Batcher batcher({.queue_rows = 4, .when_full = QueueFull::drop_oldest});
  Told told[4];
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(batcher.submit(job_of(model, 2, told[i])));
  EXPECT_EQ(told[0].outcome.load(), Outcome::dropped);
  EXPECT_EQ(told[1].times, 0);
  EXPECT_FALSE(batcher.submit(job_of(model, 5, told[3]))) << "what never fits drops nothing";
  EXPECT_EQ(told[1].times, 0);
  EXPECT_TRUE(batcher.account().balances());
}

TEST(Batcher, GivesUpWhatIsTooLate) {
  const auto model = version();
  Batcher batcher({});
  Told late, early;
  const JobPointer job = job_of(model, 1, late);
  job->deadline = Clock::now() - std::chrono::milliseconds(1);
  batcher.submit(job);
  batcher.submit(job_of(model, 1, early));
  const auto batch = batcher.take();
  EXPECT_EQ(late.outcome.load(), Outcome::expired);
  EXPECT_EQ(batch->pieces.size(), 1U);
  batcher.finish(*batch);
  EXPECT_TRUE(batcher.account().balances());
}

TEST(Batcher, WaitsForMoreWhereItIsToldTo) {
  const auto model = version();
  Batcher batcher({.max_delay = std::chrono::milliseconds(200)});
  Told told[2];
  const Clock::time_point begin = Clock::now();
  batcher.submit(job_of(model, 1, told[0]));
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    batcher.submit(job_of(model, 1, told[1]));
  });
  EXPECT_EQ(batcher.take()->rows, 2);
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(200));
  later.join();
}

TEST(Batcher, DoesNotWaitForMoreThanABatch) {
  const auto model = version();
  Batcher batcher({.max_batch = 2, .max_delay = std::chrono::hours(1)});
  Told told;
  batcher.submit(job_of(model, 2, told));
  EXPECT_EQ(batcher.take()->rows, 2);
}

TEST(Batcher, IsEmptiedBeforeItEnds) {
  const auto model = version();
  Batcher batcher({.max_delay = std::chrono::hours(1)});
  Told told[2];
  batcher.submit(job_of(model, 1, told[0]));
  batcher.close();
  EXPECT_FALSE(batcher.submit(job_of(model, 1, told[1])));
  const auto batch = batcher.take();
  ASSERT_TRUE(batch) << "what waited is served, without delay";
  batcher.finish(*batch);
  EXPECT_FALSE(batcher.take());
  EXPECT_EQ(batcher.account().of(Outcome::closed).requests, 1U);
  EXPECT_TRUE(batcher.account().balances());
}

TEST(Batcher, IsIdleWhenAllHaveHeard) {
  const auto model = version();
  Batcher batcher({});
  std::atomic<bool> telling = false, may_return = false;
  JobPointer job = make_job(model, 1);
  job->done = [&](Job&, Outcome, const std::string&) {
    telling = true;
    telling.notify_all();
    may_return.wait(false);
  };
  batcher.submit(job);
  std::thread worker([&] { batcher.finish(*batcher.take()); });
  telling.wait(false);
  EXPECT_EQ(batcher.account().of(Outcome::served).requests, 1U);
  EXPECT_FALSE(batcher.wait_until_idle(Clock::now() + std::chrono::milliseconds(20)))
      << "who is told may not be gone yet";
  may_return = true;
  may_return.notify_all();
  EXPECT_TRUE(batcher.wait_until_idle(Clock::now() + std::chrono::seconds(60)));
  worker.join();
}

// Many who ask, many who work, every way to end: each request is told once or refused, and the account is
// exact at every look.
void stress(int askers, int workers, QueueFull when_full) {
  const auto model = version(8);
  Batcher batcher(
      {.max_batch = 8, .max_delay = std::chrono::microseconds(50), .queue_rows = 24, .when_full = when_full});
  constexpr int each = 200;
  std::atomic<int> told = 0, refused = 0, served = 0;
  std::vector<std::thread> threads;
  for (int w = 0; w < workers; ++w)
    threads.emplace_back([&] {
      while (const auto batch = batcher.take()) {
        EXPECT_LE(batch->rows, 8);
        batcher.finish(*batch);
      }
    });
  std::atomic<bool> over = false;
  std::thread auditor([&] {
    while (!over) {
      EXPECT_TRUE(batcher.account().balances());
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> clients;
  for (int a = 0; a < askers; ++a)
    clients.emplace_back([&, a] {
      RandomStream random(7, static_cast<std::uint64_t>(a));
      for (int i = 0; i < each; ++i) {
        JobPointer job = make_job(model, 1 + static_cast<std::int64_t>(random.below(20)));
        if (random.below(10) == 0)
          job->deadline = Clock::now() + std::chrono::microseconds(random.below(300));
        job->done = [&](Job&, Outcome outcome, const std::string&) {
          ++told;
          served += outcome == Outcome::served;
        };
        if (!batcher.submit(job, true)) ++refused;
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(batcher.wait_until_idle(Clock::now() + std::chrono::seconds(60)));
  batcher.close();
  for (std::thread& thread : threads) thread.join();
  over = true;
  auditor.join();
  EXPECT_EQ(told + refused, askers * each);
  const Account account = batcher.account();
  EXPECT_EQ(account.received.requests, static_cast<std::uint64_t>(askers * each));
  EXPECT_EQ(account.of(Outcome::served).requests, static_cast<std::uint64_t>(served.load()));
  EXPECT_EQ(account.of(Outcome::refused).requests, static_cast<std::uint64_t>(refused.load()));
  EXPECT_EQ(account.waiting, Tally{});
  EXPECT_EQ(account.running, Tally{});
  EXPECT_TRUE(account.balances());
  if (when_full == QueueFull::wait) {
    EXPECT_EQ(refused, 0) << "who waits loses nothing";
  }
}

TEST(Batcher, LosesNothingUnderManyThreads) {
  for (const QueueFull when_full : {QueueFull::refuse, QueueFull::drop_oldest, QueueFull::wait})
    for (const auto& [askers, workers] :
         {std::pair(1, 1), std::pair(8, 2), std::pair(2, 8), std::pair(64, 64)})
      stress(askers, workers, when_full);
}

}  // namespace
}  // namespace superstep::edge
