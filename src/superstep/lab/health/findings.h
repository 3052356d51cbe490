// What the facts of a machine mean for who works on it.
#pragma once

#include <string>
#include <vector>

#include "superstep/lab/health/facts.h"

namespace superstep::lab {

enum class Health {
  fine,
  note,   // works, and could be faster or do more
  wrong,  // something does not work
};

struct Finding {
  std::string subject;  // "threads"
  std::string found;    // "8, of 64 processors: a container allows 8"
  Health health = Health::fine;
  std::string advice;  // what to do; empty where it is fine
};

const char* name_of(Health health);

// In the order of subjects, the same for every machine.
std::vector<Finding> findings(const HostFacts& facts);

}  // namespace superstep::lab
