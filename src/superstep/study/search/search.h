// A search over options of a training: trials drawn from ranges, each trained for as long as it stays among
// the best, in one folder that several processes share and a later call goes on with.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "superstep/run/train/until.h"
#include "superstep/study/search/halving.h"
#include "superstep/study/search/space.h"
#include "superstep/study/search/storage.h"

namespace superstep::study {

struct SearchSettings {
  std::string workload;           // of the zoo, or a model file
  std::vector<std::string> base;  // options of superstep train that all trials have
  std::vector<Parameter> parameters;
  std::int64_t trials = 40;
  double minutes = 0;  // of this call; 0: until it is over
  std::optional<run::Until> until;
  std::string metric;  // that trials are judged by
  bool higher_is_better = false;
  double epochs = 1;  // of a trial that is trained to the end
  Halving halving;
  std::uint64_t seed = 1;
  std::filesystem::path out;
  int threads = 1;
  // The words of a call of superstep train as its file of options (cli/call/config_file.h).
  std::function<std::string(const std::vector<std::string>&)> config_of;
};

// Epochs and qualities along a trial's training, as its log has them.
struct Curve {
  std::vector<double> epochs, qualities;
};

struct SearchReport {
  SearchSettings settings;
  std::vector<Trial> trials;
  std::vector<Curve> curves;  // of each
  bool over = false;          // nothing is left to do; else the same call goes on
  std::optional<std::size_t> best;

  // Throws Error (io) where it is over and no trial came to a quality: why, as the first of them says it.
  void require_best() const;

  std::filesystem::path run_of(const Trial& trial) const;
  // Its call of superstep train, without --out.
  std::vector<std::string> words_of(const Trial& trial) const;
};

// Draws and trains until all trials are over, one reaches the target, or the time is. Processes that are
// given the same call share the folder: what one was killed over another takes up. Writes index.html,
// results.json and best.toml. Throws Error: invalid_argument where the folder holds another search or other
// things; interrupted, after which the same call goes on; io where the first trials fail one and all.
SearchReport search(const SearchSettings& settings);

std::vector<std::string> findings_of(const SearchReport& report);
std::string text_of(const SearchReport& report);
std::string page_of(const SearchReport& report);
nlohmann::json json_of(const SearchReport& report);

}  // namespace superstep::study
