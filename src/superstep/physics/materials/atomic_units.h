// Units of atomic simulations: length A, energy eV, mass g/mol, time fs, charge e. Constants: CODATA 2018.
#pragma once

namespace superstep::data {

inline constexpr double boltzmann_ev_per_kelvin = 8.617333262e-5;
// An acceleration of 1 eV / (A g/mol), in A/fs^2.
inline constexpr double acceleration_unit = 9.648533212e-3;
inline constexpr double ev_per_kcal_per_mol = 4184.0 / 96485.33212;
// e^2 / (4 pi epsilon_0), eV A.
inline constexpr double coulomb_ev_angstrom = 14.399645478;
// A pressure of 1 eV/A^3, in bar and in GPa.
inline constexpr double bar_per_ev_per_cubic_angstrom = 1.602176634e6;
inline constexpr double gpa_per_ev_per_cubic_angstrom = 160.2176634;

}  // namespace superstep::data
