// Generators of data from physics: the interface every workload's generator has.
//
// A sample is a function of (seed, index) alone: any sample can be made by itself, in any order, on any
// number of threads, with the same bits. What many samples share (the object of a scan, a cell line) is a
// function of (seed, index of the group) and is cached by the generator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/element_type.h"
#include "superstep/base/options.h"
#include "superstep/base/shape.h"
#include "superstep/base/tensor.h"
#include "superstep/base/thread_pool.h"

namespace superstep::data {

// One data set of the file: [samples, shape...]. The draw's parameters are stored as fields of their own.
struct Field {
  std::string name;  // as users of such files know it: "patch", "ploc"
  ElementType type = ElementType::f32;
  Shape shape;          // of one sample, without the sample axis
  std::string unit;     // "px", "counts", "rad"; empty for none
  std::string meaning;  // one line, stored as an attribute of the data set
};

struct WriteRequest {
  std::filesystem::path path;
  std::uint64_t seed = 1;
  std::uint64_t samples = 0;
  ThreadPool* pool = nullptr;  // never null
};

class Generator {
 public:
  virtual ~Generator() = default;

  virtual std::string_view name() const = 0;  // the workload's id
  virtual int version() const = 0;            // raised whenever the bits of a sample change
  virtual std::span<const Field> fields() const = 0;

  // Makes sample `index`: out[f] is the memory of one sample of fields()[f], zeroed. Thread-safe.
  virtual void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const = 0;

  // Things of the whole file that the samples share (a probe, a basis); stored beside the fields.
  virtual std::map<std::string, Tensor> shared_arrays(std::uint64_t seed) const;
  // Every setting of the draw, stored as the attribute `parameters`.
  virtual nlohmann::json parameters() const = 0;

  // Writes `samples` samples. The default streams chunks of all fields to an HDF5 file (.h5) or an archive
  // of NumPy (.npz), generating on every thread while the previous chunk is written; memory does not grow
  // with the number of samples. The file has the attributes synthetic=1, generator, version, seed,
  // parameters; of an archive they are its comment, in JSON. A file whose writing
  // was cut short (an error, Ctrl-C) is removed: `path` appears when it is whole. Workloads whose users
  // have other formats override this and choose by the extension of `path`.
  virtual void write(const WriteRequest& request) const;
};

// Memory for `count` samples of every field, for tests and in-memory use: [count, shape...] each.
std::vector<Tensor> generate_in_memory(const Generator& generator, std::uint64_t seed, std::uint64_t first,
                                       std::uint64_t count, ThreadPool& pool);

class Hdf5Writer;
// The attributes synthetic=1, generator, version, seed and parameters, for those that override write().
void write_provenance(Hdf5Writer& file, const Generator& generator, std::uint64_t seed);

// A line of the table of generators.
struct GeneratorEntry {
  std::string name;     // the workload's id, as typed: `superstep generate NAME`
  std::string summary;  // one line
  std::vector<OptionSpec> options;
  std::unique_ptr<Generator> (*make)(const Options& options);
};

// All generators, in the order `superstep list` shows them (physics/generators.cpp).
std::span<const GeneratorEntry> generators();
// Throws Error (invalid_argument) with the nearest name.
const GeneratorEntry& find_generator(std::string_view name);

}  // namespace superstep::data
