// The chemical elements: symbols and standard atomic weights.
//
// Weights: IUPAC abridged standard atomic weights (2021); of elements without one, the mass number of the
// longest-lived isotope.
#pragma once

#include <optional>
#include <string_view>

namespace superstep::data {

inline constexpr int element_count = 118;

// Symbol of atomic number 1..118 ("H", "Og"); "*" for 0, the unknown atom of SMILES. Throws Error
// (invalid_argument) outside that range.
std::string_view element_symbol(int atomic_number);
double element_mass(int atomic_number);  // g/mol; 0 for the unknown atom

// Atomic number of a symbol as it is written ("Cl", not "CL"); nothing when there is no such element.
std::optional<int> element_from_symbol(std::string_view symbol);

}  // namespace superstep::data
