// Where the translator's header and the library of translated programs are: beside an installed translator,
// or where both were built.
#pragma once

#include <string>

namespace superstep_cc {

std::string include_folder();  // omp.h
std::string library_folder();  // libsuperstep_omp.so

}  // namespace superstep_cc
