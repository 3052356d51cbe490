// Sums in shared memory, with threads in the place of processes: the order of terms, every length, and that
// nothing waits for what will not come.
#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <cstring>
#include <thread>

#include "superstep/base/random.h"
#include "superstep/run/ranks/shared/adding.h"
#include "superstep/run/ranks/shared/shared_means.h"
#include "superstep/run/ranks/shared/staged_sum.h"

namespace superstep::run {
namespace {

// Threads of this process that meet as ranks do. They map each other's memory by the same road as processes.
class Threads {
 public:
  explicit Threads(int size) : size_(size), words_(static_cast<std::size_t>(size)), barrier_(size) {}

  template <class Body>
  void run(Body body) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) threads.emplace_back([&, rank] { body(meeting(rank)); });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  Meeting meeting(int rank) {
    return {.rank = rank,
            .size = size_,
            .gather =
                [this, rank](const Meeting::Words& words) {
                  words_[static_cast<std::size_t>(rank)] = words;
                  barrier_.arrive_and_wait();
                  const auto found = words_;
                  barrier_.arrive_and_wait();
                  return found;
                },
            .all =
                [this](bool mine) {
                  if (!mine) all_ = false;
                  barrier_.arrive_and_wait();
                  const bool found = all_;
                  barrier_.arrive_and_wait();
                  all_ = true;
                  barrier_.arrive_and_wait();
                  return found;
                }};
  }

  int size_;
  std::vector<Meeting::Words> words_;
  std::barrier<> barrier_;
  std::atomic<bool> all_{true};
};

std::vector<float> values_of(int rank, std::size_t count, std::uint64_t round = 0) {
  RandomStream random(static_cast<std::uint64_t>(rank) * 1000 + round, 3, 1);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

std::vector<float> sum_in_order(int ranks, std::size_t count, std::uint64_t round, float scale = 1) {
  std::vector<float> sum = values_of(0, count, round);
  for (int r = 1; r < ranks; ++r) {
    const std::vector<float> term = values_of(r, count, round);
    for (std::size_t i = 0; i < count; ++i) sum[i] += term[i];
  }
  for (float& value : sum) value *= scale;
  return sum;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

TEST(Adding, IsInTheOrderOfTerms) {
  for (int terms : {1, 2, 3, 5}) {
    std::vector<std::vector<float>> values;
    std::vector<const float*> pointers;
    for (int t = 0; t < terms; ++t) values.push_back(values_of(t, 3001));
    for (const auto& term : values) pointers.push_back(term.data());
    // In place of the last term, as ranks do it.
    add_in_order(values.back().data(), pointers, 3001, 0.25f);
    EXPECT_TRUE(same_bits(values.back(), sum_in_order(terms, 3001, 0, 0.25f))) << terms;
  }
}

TEST(StagedSum, AddsUpEveryLengthInTheOrderOfRanks) {
  const std::vector<std::size_t> counts{1, 7, 2048, 2049, 32768, 32769, 100003, 5, 300000};
  for (int ranks : {2, 3}) {
    std::atomic<int> wrong{0};
    Threads(ranks).run([&](const Meeting& meeting) {
      const auto sum = StagedSum::open(meeting);
      if (!sum) {
        ++wrong;
        return;
      }
      // Twice: buffers are used again.
      for (std::uint64_t round = 0; round < 2; ++round)
        for (const std::size_t count : counts) {
          std::vector<float> values = values_of(meeting.rank, count, round);
          sum->sum(values);
          if (!same_bits(values, sum_in_order(ranks, count, round))) ++wrong;
          sum->meet();
        }
    });
    EXPECT_EQ(wrong, 0) << ranks;
  }
}

// One rank goes ahead as far as it is let: buffers may not be written before the slowest has read them.
TEST(StagedSum, WaitsForALateRank) {
  std::atomic<int> wrong{0};
  Threads(2).run([&](const Meeting& meeting) {
    const auto sum = StagedSum::open(meeting);
    for (std::uint64_t round = 0; round < 20; ++round) {
      if (meeting.rank == static_cast<int>(round % 2))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::vector<float> values = values_of(meeting.rank, round % 3 ? 70000 : 100, round);
      sum->sum(values);
      if (!same_bits(values, sum_in_order(2, values.size(), round))) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(SharedMeans, AreMadeRangeByRangeWhateverTheOrderTheyBecomeReadyIn) {
  const std::vector<target::ValueRange> ranges{{4096, 5000}, {16, 4000}, {9104, 1}, {0, 16}};
  for (int ranks : {2, 3}) {
    std::atomic<int> wrong{0};
    Threads(ranks).run([&](const Meeting& meeting) {
      const auto means = open_shared_means(meeting, 10000, ranges);
      for (std::uint64_t round = 1; round < 6; ++round) {
        const std::vector<float> own = values_of(meeting.rank, 10000, round);
        std::ranges::copy(own, means->values().begin());
        means->begin();
        for (std::size_t i = 0; i < ranges.size(); ++i) {
          means->ready((i + static_cast<std::size_t>(meeting.rank)) % ranges.size());
          means->progress();
        }
        means->finish();
        const std::vector<float> expected =
            sum_in_order(ranks, 10000, round, 1.0f / static_cast<float>(ranks));
        for (const target::ValueRange& range : ranges)
          if (!same_bits(means->values().subspan(range.begin, range.count),
                         std::span(expected).subspan(range.begin, range.count)))
            ++wrong;
        // Between ranges and after them nothing is touched.
        if (means->values()[4050] != own[4050] || means->values()[9999] != own[9999]) ++wrong;
      }
    });
    EXPECT_EQ(wrong, 0) << ranks;
  }
}

TEST(SharedMeans, SayHowLongTheyWaited) {
  std::array<double, 2> waited{};
  Threads(2).run([&](const Meeting& meeting) {
    const auto means = open_shared_means(meeting, 64, {{0, 64}});
    means->begin();
    if (meeting.rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    means->ready(0);
    means->finish();
    waited[static_cast<std::size_t>(meeting.rank)] = means->seconds_waited();
  });
  EXPECT_GT(waited[0], 0.02);
  EXPECT_LT(waited[1], 0.02);
}

// Ranks that cannot see each other's memory must all learn it, and take another road.
TEST(SharedSegments, AreRefusedToAllWhereOneCannotMapThem) {
  std::atomic<int> opened{0};
  Threads(2).run([&](Meeting meeting) {
    const auto gather = meeting.gather;
    if (meeting.rank == 1)
      meeting.gather = [gather](Meeting::Words words) {
        words[2] += 1;  // what lies there is not what this rank says: another process of that number
        return gather(words);
      };
    if (SharedSegments::open(meeting, 4096)) ++opened;
  });
  EXPECT_EQ(opened, 0);
}

}  // namespace
}  // namespace superstep::run
