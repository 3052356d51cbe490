// Arrays of one or several sources beside one another, under names and in rows of another kind.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "superstep/file/source/sample_source.h"

namespace superstep::data {

// Where an array comes from, and as what it is given.
struct Arranged {
  std::size_t part = 0;   // of the sources
  std::size_t array = 0;  // of the part
  SourceArray as;         // its name and rows from here on; its type is as it was
  // Of a row as it is read, as many axes as `as.row`: where it is longer, its middle is given.
  Shape from;
  bool whole = false;  // all rows of the array are one
};

// `notes` are told beside those of the parts.
std::unique_ptr<SampleSource> arranged_source(std::vector<std::shared_ptr<const SampleSource>> parts,
                                              std::vector<Arranged> arrays, std::vector<std::string> notes);

}  // namespace superstep::data
