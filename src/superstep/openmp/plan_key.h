// What tells one launch's plan from another's, as bytes.
#pragma once

#include <string>

#include "superstep/openmp/region.h"

namespace superstep::openmp {

// Everything that tells one launch's plan from another's. The values of scalars do not: they are data.
std::string plan_key(const Region& region);

// A key goes on with these bytes, or with a number's.
void put(std::string& key, const void* data, std::size_t bytes);
void put(std::string& key, std::int64_t number);

}  // namespace superstep::openmp
