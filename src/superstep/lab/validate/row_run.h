// What a row of published results ran: the model in the form that was published, the machine and the software
// that drove it, and what the row says of how a step was cut. What it does not say is the resolver's to find
// (machine/configuration/).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/lab/bench/configurations.h"
#include "superstep/lab/validate/table.h"
#include "superstep/machine/configuration/question.h"
#include "superstep/machine/machine.h"

namespace superstep::lab {

struct RowRun {
  std::string workload, machine, stack, metric;
  bool training = true, called_directly = false;
  Passes passes = Passes::both;  // of a primitive
  bool packed = false;           // its samples are sequences, several packed into one item
  machine::Question question;
  std::vector<std::string> options;  // of the model's published form
  double epoch_samples = 0;          // of its published data; 0: not known

  std::string graph_key(std::int64_t micro_batch) const;  // equal: the same graph
  std::string key() const;                                // equal: the same answer
};

RowRun run_of_row(const PublishedTable& table, std::size_t row);

// The workload of the zoo that a row's name means: its own, or the one whose published form it is
// ("bert-large-squad"); empty where there is none.
std::string known_workload(const std::string& row_workload);

bool is_ipu(const std::string& machine);

// The number after `words` in a note; 0 where there is none.
std::int64_t number_after(const std::string& note, std::string_view words);
std::string machine_of_row(const std::string& name);

// The machine as the row's software drives it.
machine::Machine machine_of(const RowRun& run);
graph::Graph graph_of(const RowRun& run, std::int64_t micro_batch);

// Of software that rows name, the stack of the machine's file that stands for it; empty: the best library.
std::string stack_of(const machine::Machine& machine, const std::string& framework, bool half,
                     const std::string& source, const std::string& note);

}  // namespace superstep::lab
