// Public set-ups: how a model's vendor or its authors run it, as data of machines/set-ups/*.toml. Facts of
// configuration files, each with its source and licence; no published performance stands among them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "superstep/machine/style.h"

namespace superstep::machine {

// One way to cut a step. 0, empty: it does not say.
struct SetUp {
  std::string name;    // "poptorch/resnet50"
  std::string source;  // repository, file and entry
  std::string licence;
  std::string workload;  // of the zoo, or a form's name
  std::vector<std::string> software;
  Style style = Style::bulk_synchronous;  // of the machines that it is for
  bool training = true;
  std::int64_t length = 0;  // of sequences; 0: any
  std::string precision;
  std::int64_t micro_batch = 0;
  int accumulate = 0;
  // Samples of an update over all replicas, by units: the line with the most units that there are counts.
  std::vector<std::pair<int, std::int64_t>> update_samples;
  std::vector<int> pipeline;  // relative layers a stage
  std::vector<int> chips;     // of each stage, where one has several
  int stages = 0;             // where the cut is not known
  bool recompute = false, optimizer_off_chip = false, optimizer_sharded = false;
  int input_bytes = 0, loaders = 0, device_iterations = 0;
  double packed_samples = 1;  // samples in an item of the batch where several are packed into one

  int chip_count() const;                           // of a replica
  std::int64_t samples_of_update(int units) const;  // 0: it does not say
};

// A name that stands for a workload of the zoo with other options.
struct Form {
  std::string name, workload, source;
  std::vector<std::string> options;
  bool published_only = false;  // a table's name for it, where the zoo's own form is another
};

// Where the samples of a workload lie that everybody trains it on.
struct DataFacts {
  std::string workload, source;
  bool in_files = false, graphs = false;
  int loaders = 0, input_bytes = 0;
  double epoch_samples = 0;
};

struct SetUpFacts {
  std::vector<SetUp> set_ups;
  std::vector<Form> forms;
  std::vector<DataFacts> data;
};

// A file of set-ups; `where` stands in messages. Throws Error (bad_file), naming the key.
SetUpFacts parse_set_ups(std::string_view text, const std::string& where);

// Of all files that the program has.
const SetUpFacts& public_set_ups();

// Null: there is none of this name.
const Form* form_of(std::string_view name);
const DataFacts* data_facts_of(std::string_view workload);

// Those of this model in this mode for machines of this style, in the order of the files. Of a model's form
// its own; else those of the workload that it is a form of, with sequences of this length where either says
// one.
std::vector<const SetUp*> set_ups_of(std::string_view workload, Style style, bool training,
                                     std::int64_t length);

}  // namespace superstep::machine
