// What values of a database of LMDB hold, as those who store samples in them pack them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/file/records/lmdb.h"
#include "superstep/file/records/record.h"

namespace superstep::data {

// The entries that are samples: keys that are numbers in their order, where most are; what counts or
// describes the others ("length", "nextid", "metadata", ...) is left out. Else all, by their keys.
std::vector<LmdbEntry> samples_of(const Lmdb& base);

// The value without what packs it as a whole: a stream of zlib or gzip. Throws Error (bad_file): damaged, or
// it unpacks to more than bytes of data do.
std::vector<std::byte> unpacked_value(std::vector<std::byte> value, const std::string& where);

// An npz archive, an npy array, an object of JSON (arrays as ASE writes them, too), or other bytes, which
// have the name "value". Throws Error: unsupported (a Python pickle, msgpack: with the command that makes
// readable ones), bad_file.
Record record_of_value(std::vector<std::byte> value, const std::string& where);

// {"__ndarray__": [[2, 3], "float64", [...]]}, as ASE writes arrays in JSON; nothing of other objects.
std::optional<Tensor> ase_array(const nlohmann::json& object, const std::string& where);

}  // namespace superstep::data
