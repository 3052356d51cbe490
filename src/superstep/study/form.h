// What a study is: a table or a figure of a paper as data. Which cells it has, which published rows belong to
// them, what is measured on this computer for them, what is executed on the machine model, what is drawn.
// docs/add-a-study.md describes the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::study {

// A column of the tables of published rows that cells may state.
struct Column {
  std::string_view name;
  bool counts = false;  // whole numbers above zero
};
std::span<const Column> columns();

using Row = std::map<std::string, std::string>;  // by column; what is not said is not there

// Cells of every combination of what its columns list.
struct Grid {
  std::vector<std::pair<std::string, std::vector<std::string>>> lists;
  std::string where;  // "my.toml:12"
};

enum class Way { bench, train, scale, all_reduce, nothing, quality, engine };  // engine: of the machine model

// How cells are measured on this computer.
struct Measure {
  Way way = Way::bench;
  std::vector<std::string> workloads;  // whose cells; empty: all
  std::vector<std::string> notes;      // of these the cells with such a note; empty: all
  std::string why;                     // why nothing is measured, or not what was published
  std::string workload;                // that is measured in place of the cell's; empty: its own
  std::string precision;               // f32, bf16; empty: by the cell's
  std::string quantity;  // of a training: which one is the cell's figure; empty: by the cell's metric
  std::int64_t batch = 0, most_batch = 0;  // in place of the cell's; the largest that is run; 0: not said
  std::int64_t steps = 0, samples = 0;     // of a training, at the study's own time
  int seeds = 1;                           // trainings of each cell
  double factor = 1;                       // from the quantity's unit to the cell's
  double least = 1;                        // seconds that one command takes at least
  std::vector<std::string> options;        // of the model, name=value
  std::string gradient;  // of a training: transform/training/gradient_mode.h; empty: reverse
  // Of trainings to a quality (`superstep study quality`): METRIC=VALUE, epochs at most, how the learning
  // rate follows the batch.
  std::string until, rate_rule;
  double epochs = 0;
};

// Of one unit of a machine, as its maker or a report states it: never measured here.
struct Price {
  std::string machine, source;
  double dollars = 0;
};

// What is executed on the machine model: cells of one of its chips.
struct Execution {
  std::vector<std::string> workloads;
  std::int64_t batch = 0, most_batch = 0;
  double least = 1;  // seconds
};

struct Drawing {
  std::string metric;  // whose cells are drawn; empty: all
  std::string x;       // a column with numbers, or empty: bars of all cells
  std::string series;  // a column; empty: one series
  bool log_x = false, log_y = false;
};

struct Study {
  std::string name, title, paper, place, shows;
  std::string unpublished;             // why there are no published rows, or fewer than the paper shows
  double minutes = 1;                  // that it takes by default
  std::vector<std::string> published;  // ids of rows of data/published
  std::filesystem::path rows;          // a table of the user's own beside it; empty: none
  std::vector<Grid> grids;
  std::vector<Measure> measures;  // the first that names a cell's workload and note counts
  std::vector<Execution> executions;
  std::vector<Price> prices;
  Drawing drawing;
};

// Reads the text of a study; `where` is its file. Throws Error (invalid_argument) with file, line and key.
Study parse_study(std::string_view text, const std::string& where);

// Those that the program has, by name.
const std::vector<Study>& studies();
std::string_view text_of(const std::string& name);  // of one of them; throws Error (invalid_argument)
// One of them, or that of a file (FILE.toml). Throws Error (invalid_argument, not_found).
Study find_study(const std::string& name_or_file);

const char* name_of(Way way);

}  // namespace superstep::study
