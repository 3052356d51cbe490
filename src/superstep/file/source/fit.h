// How an array that a file has fits what a model takes: axes of one element that are missing or too many, a
// sample alone, and larger pictures of which the middle is taken.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/file/source/sample_source.h"

namespace superstep::data {

using Extents = std::vector<std::int64_t>;  // of a shape; -1: any

struct Fit {
  Shape row;                // of a sample, as it is wanted: axes that may be of any length have the array's
  Shape from;               // of a sample before its middle is cut out: as many axes; else as `row`
  bool one_sample = false;  // the whole array is one sample
  bool crops() const { return from != row; }
};

// What is wanted of an array: its name, and the shape of a row.
struct WantedRow {
  std::string name;
  Extents row;
};

// -1 in `want` is any extent. Axes keep their order; elements are never moved. With `crop` the axes of a
// sample with two or more that are longer than wanted are cut to their middle, the shorter half in front. No
// value: it does not fit.
std::optional<Fit> fit_to(const SourceArray& have, const Extents& want, bool crop);

// The option that would make it fit, as a hint; empty where none does.
std::string hint_to_fit(const SourceArray& have, const Extents& want);

// The source with the arrays that `wanted` names (name and row) in these rows, where they fit; others as they
// are. What was done is among its notes. An array without a name, alone, is the only one that is wanted.
std::shared_ptr<const SampleSource> fitted(std::shared_ptr<const SampleSource> source,
                                           std::span<const WantedRow> wanted, bool crop);

}  // namespace superstep::data
