// The constants and the measured kernels that the program has: machines/rates/laws.csv, factors.csv and
// kernels.csv, which `superstep validate --tables DIR --keep-rates FOLDER` writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "superstep/machine/rates/law.h"

namespace superstep::machine {

// Texts of the three files, of all laws together. Kernels are those that may be kept.
std::string laws_text(const std::vector<const FittedLaws*>& laws);
std::string factors_text(const std::vector<const FittedLaws*>& laws);
std::string kernels_text(const std::vector<const FittedLaws*>& laws);

// What such texts say; `where` stands in messages. Throws Error (bad_file), naming the line.
void read_laws(std::string_view text, const std::string& where, FittedLaws& to);
void read_factors(std::string_view text, const std::string& where, FittedLaws& to);
void read_kernels(std::string_view text, const std::string& where, FittedLaws& to);

// Those of the program.
const FittedLaws& kept_laws();

// Software whose calls of a law ("generation", "network") set constants of their own there, by name: what a
// question may name.
std::vector<std::string> measured_software(std::string_view law);

}  // namespace superstep::machine
