// The arithmetic of a machine as its file has it, [numerics.MODE]: every setting with how it is known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "superstep/machine/constant.h"
#include "superstep/numerics/arithmetic.h"

namespace superstep::machine {

// One setting of numerics::settings(), or a habit of those who train there, which the emulation does not
// follow.
struct NumericsFact {
  std::string setting, value;
  Kind kind = Kind::guess;
  std::string source;  // in full; empty for a guess: it is not published, and a switch
  std::string note;
};

struct NumericsMode {
  std::string name;  // "16.16"
  std::vector<NumericsFact> facts;
  numerics::Arithmetic arithmetic;
};

// What files may say beside the settings: which order and type gradients are summed over devices in, and how
// losses are scaled.
struct Habit {
  std::string_view name, meaning;
};
std::span<const Habit> numerics_habits();

// An arithmetic by name, for people and for computing.
struct NamedArithmetic {
  std::string name;  // "gc200-16.16"
  numerics::Arithmetic arithmetic;
};
// "f32", "bf16" (numerics::plain_names()), a machine ("gc200": its first mode; "groq": the first whose id
// begins so), a machine's mode ("gc200-16.16"), or a machine file; each with switches:
// "gc200:chunk=8,seed=3". Throws Error (invalid_argument) on what there is not, naming it: a machine, a mode,
// a setting, a value.
NamedArithmetic find_arithmetic(std::string_view text);
// What it accepts, but for switches and files.
std::vector<std::string> arithmetic_names();

}  // namespace superstep::machine
