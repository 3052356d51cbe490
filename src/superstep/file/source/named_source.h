// Arrays that a user picks out of files and gives names: "x=scan.nxs:/entry/data/data,target=labels.npy".
#pragma once

#include <memory>
#include <span>
#include <string>

#include "superstep/file/source/paths.h"
#include "superstep/file/source/request.h"

namespace superstep::data {

using OpenFiles = std::unique_ptr<SampleSource> (*)(const std::filesystem::path&, const SourceRequest&);

// `open` opens what a path names. An array that is not said is the one of this name, the file's signal by
// NeXus, or the only one. Throws Error (not_found, invalid_argument) naming what there is to choose from.
std::unique_ptr<SampleSource> open_named(std::span<const NamedArray> named, const SourceRequest& request,
                                         OpenFiles open);

// The source, its only array, if it has no name, under this one.
std::unique_ptr<SampleSource> named_as(std::unique_ptr<SampleSource> source, const std::string& name);

}  // namespace superstep::data
