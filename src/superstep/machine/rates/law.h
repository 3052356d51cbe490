// A law of four constants for whatever a machine does in one call: kernels, collectives, steps of language
// models, whole networks of which the sums alone are known.
//
//     seconds = launch x launches + serial / compute share
//             + max(compute / compute share, memory / memory share) + collective x collectives
//
// compute, serial and memory are seconds at the data sheet's peaks. Constants are known at levels: of the
// law; of a vendor; of a generation of its machines; of one machine, two of them, where many of its calls
// were measured. What a level does not know comes from the one above it.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace superstep::machine {

struct Terms {
  double launches = 1, serial = 0, compute = 0, memory = 0, collectives = 0;
};

struct LawConstants {
  double launch = 0, compute_share = 1, memory_share = 1, collective = 0;
  int fitted = 0;                     // constants that were fitted for this key alone
  std::size_t calls = 0, groups = 0;  // that set them: calls, and models or machines among them
};

double law_seconds(const Terms& terms, const LawConstants& constants);

// One measured call. Its keys go from the particular to the general, the last one the law's.
struct MeasuredCall {
  std::array<std::string, 4> keys;
  Terms terms;
  std::vector<double> place;  // logarithms of what it is of, for its neighbours; empty: it takes none
  double seconds = 0, weight = 1;
  bool may_be_kept = true;  // the licence of its table lets the program have it
  std::string group;        // model or machine, of which a level wants several
};

class FittedLaws {
 public:
  FittedLaws() = default;
  // Fits every level over the calls that carry its key; Huber's loss of the logarithm.
  explicit FittedLaws(const std::vector<const MeasuredCall*>& calls);

  // Of the most particular key that is known; 0: none is.
  double seconds(const MeasuredCall& call) const;
  // As it, times what its nearest measured neighbours on the same machine took over the law.
  double seconds_by_neighbours(const MeasuredCall& call) const;
  bool knows(const std::string& key) const { return constants_.contains(key); }
  const std::map<std::string, LawConstants>& constants() const { return constants_; }

  // What a measured call took over the law, as a logarithm.
  struct Neighbour {
    std::vector<double> place;
    double residual = 0;
    bool may_be_kept = true;
  };
  const std::map<std::string, std::vector<Neighbour>>& neighbours() const { return neighbours_; }
  void add(const std::string& key, const LawConstants& constants) { constants_[key] = constants; }
  void add(const std::string& key, Neighbour neighbour) { neighbours_[key].push_back(std::move(neighbour)); }

 private:
  const LawConstants* find(const MeasuredCall& call) const;

  std::map<std::string, LawConstants> constants_;
  std::map<std::string, std::vector<Neighbour>> neighbours_;
};

}  // namespace superstep::machine
