// How a call is timed: warm-up until times are steady, then samples until the interval of the median is
// tight or the budget ends. Contenders are interleaved, so that a busy neighbour slows all of them alike.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "superstep/lab/measure/clock.h"
#include "superstep/record/summary.h"

namespace superstep::lab {

struct Protocol {
  // Warm-up goes on for at least so many calls and so long, and until the median of five calls moves by less
  // than `steady_change`; `warm_up_limit` ends it in any case, which is flagged.
  int warm_up_calls = 10;
  double warm_up_seconds = 1, warm_up_limit = 10;
  double steady_change = 0.02;
  // Samples: at least `least_samples`, until the interval of the median is at most `interval` of the median,
  // or `budget_seconds` of timed work a contender are over. Three are taken even beyond the budget.
  int least_samples = 20;
  double interval = 0.01, budget_seconds = 5;
  // Twenty samples of microseconds are over before the machine has changed: an interval is not tight before
  // so much timed work.
  double least_seconds = 0;
  std::int64_t most_samples = 10000;
  // A sample is as many calls in a row as take this long: a clock cannot time a call of nanoseconds.
  double least_sample_seconds = 50e-6;
  // Of several contenders each has a turn a round: a call that is not timed, which wakes its threads and
  // fetches its data back from where the others have driven them, then so many samples.
  int samples_a_turn = 5;
  std::uint64_t seed = 1;  // of the order within a round
};

struct Contender {
  std::string name;
  std::function<void()> call;  // all work is done when it returns
  // Of a contender in another process, in place of `call`: so many calls in a row, the seconds that they took
  // there.
  std::function<double(std::int64_t calls)> timed = {};
};

enum class StopReason { tight, budget, count };
const char* name_of(StopReason reason);

struct Measurement {
  std::string name;
  double first_call = 0;  // s
  std::int64_t warm_up_calls = 0;
  double warm_up_seconds = 0;
  bool steady = false;
  std::int64_t calls_per_sample = 1;
  std::vector<double> samples;  // s a call, in the order they were taken
  StopReason stop = StopReason::budget;
  record::Summary summary;
  std::vector<std::string> flags;  // what a reader must know: "drift +8 %", "warm-up ended at its limit"
};

// Each contender is warmed up, then rounds give a turn to every contender that still wants samples, in an
// order drawn anew. Throws what a call throws, and Error (interrupted) between calls.
std::vector<Measurement> measure_interleaved(std::span<const Contender> contenders, const Protocol& protocol,
                                             Clock& clock = steady_clock());

Measurement measure(const Contender& contender, const Protocol& protocol, Clock& clock = steady_clock());

// The flags that follow from samples alone: outliers, drift, too few.
std::vector<std::string> flags_of(const record::Summary& summary, int least_samples);

}  // namespace superstep::lab
