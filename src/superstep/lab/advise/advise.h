// Which machine, how split, in which precision and batch: every machine's best configuration of a model for a
// goal, ranked as far as the intervals of their predictions tell them apart.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "superstep/lab/advise/changes.h"
#include "superstep/lab/advise/coverage.h"
#include "superstep/lab/advise/search.h"
#include "superstep/record/result.h"
#include "superstep/run/model.h"

namespace superstep::lab {

struct AdviseSettings {
  run::TrainSettings model;
  bool trains = true;
  Goal goal = Goal::throughput;
  std::vector<std::string> machines;  // ids or files; empty: all, this computer where it was measured
  std::vector<std::string> precisions;
  std::string stack;  // the software that drives them, as their files name it; empty: the best there is
  int units = 1;
  std::int64_t most_samples = 0;  // of a step; 0: a training's batch, 1024 of a server
  double latency_limit = 0, rate_wanted = 0;
  int input_bytes = 0;
  std::map<std::string, double> prices;  // of a unit-hour, by machine
  std::map<std::string, double> powers;  // W of a unit, by machine: in place of the data sheet's
  bool measures = false;                 // this computer beside them
  int threads = 1;
};

struct MachineAdvice {
  machine::Machine machine;
  bool of_sheet = false;        // it was not asked for, and a data sheet alone is known of it
  std::vector<Option> options;  // all that was tried
  int best = -1;                // of them; -1: none
  // Places in the ranking that the 80 % intervals leave open: first to last, from 1; 0 without a best one.
  int first_place = 0, last_place = 0;
  std::vector<std::string> reasons;
  std::vector<Change> changes;     // of the model, that would gain here
  std::vector<Coverage> coverage;  // of its operators by the machine's compilers

  const Option* best_option() const { return best < 0 ? nullptr : &options[static_cast<std::size_t>(best)]; }
};

// What this computer does, measured by the protocol.
struct Measured {
  std::string what;                                    // "infer, batch 64, bf16, 2 threads"
  double samples = 0, seconds = 0, low = 0, high = 0;  // of a call; the interval holds 95 %
  Figure figure;                                       // of the goal; not known of energy and cost
};

struct Advice {
  std::string model;
  bool trains = true;
  Goal goal = Goal::throughput;
  std::string stack;
  SearchSettings search;
  double recipe_samples = 0;
  std::vector<MachineAdvice> machines;  // best first, those without an option last
  std::vector<Measured> here;
  std::size_t predictions = 0;
};

// Throws Error: an unknown workload, machine or precision; operators without a cost model (unsupported); a
// goal that lacks what it is counted in (cost without prices, time-to-quality of a server).
Advice advise(const AdviseSettings& settings);

// The machines as `stack` drives them, all as they are where it is empty. One that was asked for by `named`
// and has no numbers of it is refused; of the others those are left out. Throws Error (invalid_argument).
std::vector<machine::Machine> driven_by(const std::string& stack, std::vector<machine::Machine> machines,
                                        bool named);

// As commands write results: a result a machine, and the measured ones.
std::vector<record::Result> results_of(const Advice& advice);

// For the terminal.
std::string text_of(const Advice& advice, bool every_option);

// "12.1 ms", "3.4 Msamples/s", "1.27 J", "0.52".
std::string amount_of(Goal goal, double value);
std::string interval_of(Goal goal, const Figure& figure);  // "406 to 590 ksamples/s", "9.9 ms to 1.1 s"

}  // namespace superstep::lab
