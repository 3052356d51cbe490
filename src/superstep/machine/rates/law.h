// A law of few constants for whatever a machine does in one call: kernels, collectives, steps of language
// models, whole networks of which the sums alone are known.
//
//     seconds = launch x launches + serial / compute share
//             + max(compute / compute share, memory / memory share)
//             + vectors / vector share + grouped / grouped share + link / link share
//             + collective x collectives
//
// compute, serial, memory, vectors, grouped and link are seconds at the data sheet's peaks. Constants belong
// to kinds of calls, from the particular ("product bf16") to the general ("product"); a kind has its own
// where they pay, and its parent's otherwise. What vendors, generations, machines and stacks differ by are
// factors of whole calls, drawn towards one: what was never measured has none.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace superstep::machine {

struct Terms {
  double launches = 1, serial = 0, compute = 0, memory = 0, vectors = 0, grouped = 0, link = 0,
         collectives = 0;
};

struct LawConstants {
  double launch = 0, compute_share = 1, memory_share = 1, vector_share = 1, grouped_share = 1, link_share = 1,
         collective = 0;
  int fitted = 0;                     // constants that are this kind's alone
  std::size_t calls = 0, groups = 0;  // that set them: calls, and models or machines among them
};

double law_seconds(const Terms& terms, const LawConstants& constants);

// One measured call, or a question about one.
struct MeasuredCall {
  std::vector<std::string> kinds;      // whose constants, from the particular to the law
  std::vector<std::string> factors;    // what makes it slower or faster than its kind
  std::string own;                     // whose measured neighbours: a law's, a type's and a machine's
  std::vector<std::string> relatives;  // and where that has none, of machines like it
  Terms terms;
  std::vector<double> place;  // logarithms of what it is of, for its neighbours; empty: it takes none
  double seconds = 0, weight = 1;
  double most_share = 3;  // of a peak: sheets' clocks are not the boards', caches keep bytes (chosen)
  // What a constant of its own has to take off the loss, lest a kind goes by its parent's and a factor is
  // one: a call of weight one that was off by a factor of 1.35 and is exact then takes off 0.15. Chosen of
  // 0.5, 1, 1.5 and 3 by the errors of models and machines left out.
  double worth = 1.5;
  bool may_be_kept = true;  // the licence of its table lets the program have it
  std::string group;        // model or machine, of which a kind wants several

  const std::string& law() const { return kinds.back(); }
};

class FittedLaws {
 public:
  FittedLaws() = default;
  // Fits all kinds and factors of one law's calls; Huber's loss of the logarithm.
  explicit FittedLaws(const std::vector<const MeasuredCall*>& calls);

  // Of the most particular kind that is known; 0: none is.
  double seconds(const MeasuredCall& call) const;
  // Whose these are, without factors; null: none is known.
  const LawConstants* constants_of(const MeasuredCall& call) const;
  // As it, times what its nearest measured neighbours took over the law: on the same machine, or on its
  // relatives.
  double seconds_by_neighbours(const MeasuredCall& call) const;
  bool knows(const std::string& kind) const { return constants_.contains(kind); }
  // Whether this machine's calls of this law were measured.
  bool measured(const MeasuredCall& call) const;

  struct Factor {
    double log = 0;
    std::size_t calls = 0;
  };
  // What a measured call took over the law, as a logarithm.
  struct Neighbour {
    std::vector<double> place;
    double residual = 0;
    bool may_be_kept = true;
  };
  struct Neighbours {
    std::vector<std::string> relatives;  // groups that their machine belongs to
    std::vector<Neighbour> all;
  };
  const std::map<std::string, LawConstants>& constants() const { return constants_; }
  const std::map<std::string, Factor>& factors() const { return factors_; }
  const std::map<std::string, Neighbours>& neighbours() const { return neighbours_; }
  std::size_t constant_count() const;

  void add(const std::string& kind, const LawConstants& constants) { constants_[kind] = constants; }
  void add(const std::string& name, const Factor& factor) { factors_[name] = factor; }
  void add(const std::string& own, const std::vector<std::string>& relatives, Neighbour neighbour);

 private:
  double factor_of(const MeasuredCall& call) const;

  std::map<std::string, LawConstants> constants_;
  std::map<std::string, Factor> factors_;
  std::map<std::string, Neighbours> neighbours_;
  std::map<std::string, std::vector<std::string>> related_;  // group of machines: whose neighbours
};

}  // namespace superstep::machine
