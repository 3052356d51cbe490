// What a source of samples is opened for. Apart from the table of forms, which names every form: a form needs
// this alone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "superstep/file/source/sample_source.h"
#include "superstep/file/source/scaled_source.h"

namespace superstep::data {

// What a source is opened for.
struct SourceRequest {
  // Arrays that are wanted, by name, with type and shape of a row. A form that has a choice (the size of
  // pictures, the length of texts) makes these; one that has none gives what the file holds.
  std::vector<SourceArray> wanted = {};
  std::map<std::string, std::string> options = {};  // of the forms, by name: "tokenizer"
  bool skip_broken = false;                         // samples that cannot be read are left out and told
  // The name under which the only array of what has no names (npy, PATH:ARRAY) is wanted; empty: none.
  std::string unnamed = {};
  // The name under which the signal of a NeXus file is wanted, whatever its shape; empty: as `wanted` says.
  std::string signal = {};
  std::vector<Scaling> scalings = {};  // of arrays, by the names that they have here
};

}  // namespace superstep::data
