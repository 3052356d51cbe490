// A search's trials in one SQLite file that several processes share, with the tables of an Optuna storage
// (schema 12), so that Optuna and its dashboard read it: optuna.load_study(storage="sqlite:///search.db").
// Beside them stand two tables of our own: what the search is, and how far each trial's training is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "superstep/record/database.h"
#include "superstep/study/search/halving.h"
#include "superstep/study/search/space.h"

namespace superstep::study {

enum class TrialState { running, paused, done, reached, diverged, failed };
const char* name_of(TrialState state);

struct Trial {
  std::int64_t number = 0;
  TrialState state = TrialState::running;
  int rung = 0;                     // that it is on, or has done
  std::vector<std::string> values;  // of the parameters, in their order
  std::vector<double> qualities;    // of each rung that it has done; not finite where it diverged
  double seconds = 0;               // of all its trainings
  std::string words;                // why it failed, or where it diverged

  bool over() const { return state != TrialState::running && state != TrialState::paused; }
};

// As the rungs see them, smaller losses being better.
std::vector<Standing> standings_of(const std::vector<Trial>& trials, bool higher_is_better);

// What a search is: processes and calls that say the same share its trials.
struct SearchIdentity {
  std::string name;                                       // of the study
  std::vector<std::pair<std::string, std::string>> what;  // by name: {"epochs", "27"}
  bool higher_is_better = false;
  std::size_t parameters = 0, rungs = 0;  // how many: of the values and qualities of its trials
};

class SearchStorage {
 public:
  // Opens the file, or makes it, with this search in it. Throws Error (invalid_argument), naming what
  // differs, where the file holds another search, (bad_file) where it is none, (io).
  SearchStorage(const std::filesystem::path& file, SearchIdentity identity);

  // While one lives, no other process changes the trials.
  record::Transaction alone() { return record::Transaction(database_); }

  // In the order of their numbers. Throws Error (bad_file) for a trial that this search cannot have.
  std::vector<Trial> trials();
  std::int64_t next_number();
  // A trial with the next number, running on the first rung.
  Trial add(const std::vector<Parameter>& parameters, std::vector<std::string> values);
  // A trial that Optuna was asked to queue (study.enqueue_trial) and nobody has begun, with the values that
  // it is to have, by name; the others are drawn.
  struct Queued {
    std::int64_t id = 0, number = 0;
    std::map<std::string, std::string> values;
  };
  std::optional<Queued> queued();
  Trial begin(const Queued& queued, const std::vector<Parameter>& parameters,
              std::vector<std::string> values);
  // It fails, with these words.
  void refuse(const Queued& queued, const std::vector<Parameter>& parameters, const std::string& words);
  // As it is now; `epochs` of the rung that it has done, where it has.
  void update(const Trial& trial, std::optional<int> epochs);

 private:
  void make_tables();
  void make_study();
  void require_same();
  nlohmann::json list_in(const std::string& cell, std::int64_t number) const;
  void require_sound(const Trial& trial) const;
  void fill(std::int64_t id, const Trial& trial, const std::vector<Parameter>& parameters);
  std::int64_t id_of(std::int64_t number);

  const SearchIdentity identity_;
  record::Database database_;
  std::int64_t study_ = 0;
};

}  // namespace superstep::study
