// How far calls lie from the laws (law.h) where their model or their machine was left out of the fit:
// machines/rates/intervals.csv, which `superstep validate --tables DIR --keep-rates FOLDER` writes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/machine/rates/call.h"

namespace superstep::machine {

// Factors on a prediction between which 80 % of the published values lay, a tenth below and a tenth above.
struct Spread {
  double low = 1, high = 1;
  std::size_t cells = 0;
};

class Spreads {
 public:
  void add(const std::string& name, const Spread& spread) { spreads_[name] = spread; }
  void add_measured(const std::string& family, const std::string& machine) {
    measured_.push_back(family + " | " + machine);
  }
  // Whether calls of the family were measured on a machine.
  bool measured(const std::string& family, const std::string& machine) const;
  // Of a family's calls with a stack, else of the family, else of all: the first with 20 cells. `name`
  // becomes which.
  const Spread& of(const std::string& family, const std::string& software, bool measured_machine,
                   std::string& name) const;
  const std::map<std::string, Spread>& all() const { return spreads_; }
  const std::vector<std::string>& all_measured() const { return measured_; }

 private:
  std::map<std::string, Spread> spreads_;
  std::vector<std::string> measured_;
};

// The name of a class: of a family, or with a stack; where the machine was measured, the model is what was
// left out.
std::string spread_name(const std::string& family, const std::string& software, bool measured_machine);

std::string spreads_text(const Spreads& spreads);
void read_spreads(std::string_view text, const std::string& where, Spreads& to);  // throws Error (bad_file)
const Spreads& kept_spreads();

// What the program's own constants say of a call.
struct LawAnswer {
  double seconds = 0, low = 0, high = 0;  // 80 %
  bool measured_machine = false;          // whether the family's calls were measured on it
  std::string spread;                     // of which class the interval is
  std::size_t cells = 0;                  // that it is from
};
LawAnswer answer_by_law(const LawCall& call, const MachineFacts& machine, const std::string& software = {});

}  // namespace superstep::machine
