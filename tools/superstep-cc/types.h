// Types that only a function knows: their definitions, for bodies that are functions of their own.
#pragma once

#include <string>

#include "region.h"

namespace superstep_cc {

// "float name", "int name[10]": a type around a name; types without a name get one.
std::string declare(const Source& source, clang::QualType type, const std::string& name);

// The definitions that are in sight where the region stands, in the order of the program.
std::string types_in_sight(const Source& source, const Region& region);

// A type that a copy of its definition may not stand for.
bool is_hidden(clang::QualType type);
// A type of the function's own, or without a name.
bool is_local_type(clang::QualType type);

}  // namespace superstep_cc
