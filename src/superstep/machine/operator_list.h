// Which operators the vendors' compilers take: machines/operators/*.toml, each with its source. A machine
// that is in none of them has no public list that could be read.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/error.h"

namespace superstep::machine {

struct OperatorList {
  std::string id;                     // "popart"
  std::string name;                   // "PopART 3.4"
  std::string source;                 // where the list comes from
  std::vector<std::string> machines;  // ids of those that it is the compiler of
  bool serves_only = false;           // it trains nothing
  // Of ONNX's default domain: taken as they are, taken as others (under another name, or written by exporters
  // in operators that are taken), and of both those that have no derivative.
  std::set<std::string, std::less<>> operators, as_others, no_derivative;

  bool takes(std::string_view op) const { return operators.contains(op) || as_others.contains(op); }
};

// All that the program knows, in the order of their machines.
const std::vector<OperatorList>& operator_lists();

// The lists of a machine's compilers; empty: none is public.
std::vector<const OperatorList*> operator_lists_of(std::string_view machine_id);

// Throws Error (bad_file), naming the key: a list is read like any other file.
OperatorList parse_operator_list(std::string_view text, const std::string& where);

}  // namespace superstep::machine
