#include "superstep/physics/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/progress.h"
#include "superstep/file/form.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npz_writer.h"
#include "superstep/physics/stream_blocks.h"

namespace superstep::data {
namespace {

constexpr std::uint64_t block_bytes = 16
                                      << 20;  // of all fields together, generated while the last is written

std::vector<std::int64_t> with_sample_axis(std::uint64_t samples, const Shape& shape) {
  std::vector<std::int64_t> extents{static_cast<std::int64_t>(samples)};
  extents.insert(extents.end(), shape.begin(), shape.end());
  return extents;
}

std::size_t sample_bytes(const Field& field) {
  return static_cast<std::size_t>(field.shape.element_count()) * size_in_bytes(field.type);
}

// Samples of a block: about block_bytes of memory, and at least four for each thread.
std::uint64_t samples_a_block(const Generator& generator, const ThreadPool& pool) {
  std::uint64_t bytes = 1;
  for (const Field& field : generator.fields()) bytes += sample_bytes(field);
  return std::max<std::uint64_t>(block_bytes / bytes, 4 * static_cast<std::uint64_t>(pool.threads()));
}

using Provenance = std::vector<std::pair<std::string, Attribute>>;

Provenance provenance_of(const Generator& generator, std::uint64_t seed) {
  return {{"synthetic", std::int64_t{1}},
          {"generator", std::string(generator.name())},
          {"version", std::int64_t{generator.version()}},
          {"seed", static_cast<std::int64_t>(seed)},
          {"parameters", generator.parameters().dump()}};
}

// Archives of NumPy have no attributes: the comment of the archive says it.
void write_notes(NpzWriter& file, const Generator& generator, std::uint64_t seed) {
  nlohmann::json notes;
  for (const auto& [name, value] : provenance_of(generator, seed))
    std::visit([&, key = name](const auto& content) { notes[key] = content; }, value);
  for (const Field& field : generator.fields()) {
    notes["fields"][field.name]["meaning"] = field.meaning;
    if (!field.unit.empty()) notes["fields"][field.name]["unit"] = field.unit;
  }
  file.set_comment(notes.dump());
}

void write_notes(Hdf5Writer& file, const Generator& generator, std::uint64_t seed) {
  write_provenance(file, generator, seed);
  for (const Field& field : generator.fields()) {
    file.set_attribute(field.name, "meaning", field.meaning);
    if (!field.unit.empty()) file.set_attribute(field.name, "unit", field.unit);
  }
}

template <class File>
void write_samples(const Generator& generator, const WriteRequest& request) {
  File file(request.path);
  for (const Field& field : generator.fields())
    file.create(field.name, field.type, Shape(with_sample_axis(request.samples, field.shape)));
  write_notes(file, generator, request.seed);
  for (const auto& [name, tensor] : generator.shared_arrays(request.seed)) file.write(name, tensor);
  Progress progress("generating " + std::string(generator.name()), static_cast<double>(request.samples),
                    "samples");
  stream_blocks(
      request.samples, samples_a_block(generator, *request.pool), progress,
      [&](std::uint64_t first, std::uint64_t count) {
        return generate_in_memory(generator, request.seed, first, count, *request.pool);
      },
      [&](std::uint64_t first, const std::vector<Tensor>& block) {
        for (std::size_t f = 0; f < block.size(); ++f)
          file.write_rows(generator.fields()[f].name, static_cast<std::int64_t>(first), block[f]);
      });
  file.close();
}

}  // namespace

std::map<std::string, Tensor> Generator::shared_arrays(std::uint64_t) const { return {}; }

std::vector<Tensor> generate_in_memory(const Generator& generator, std::uint64_t seed, std::uint64_t first,
                                       std::uint64_t count, ThreadPool& pool) {
  const std::span<const Field> fields = generator.fields();
  std::vector<Tensor> block;
  for (const Field& field : fields)
    block.emplace_back(field.type, Shape(with_sample_axis(count, field.shape)));
  pool.parallel_for(static_cast<std::int64_t>(count), [&](std::int64_t item, int) {
    throw_if_interrupted();
    std::vector<std::byte*> out(fields.size());
    for (std::size_t f = 0; f < fields.size(); ++f)
      out[f] = block[f].bytes() + static_cast<std::size_t>(item) * sample_bytes(fields[f]);
    generator.sample(seed, first + static_cast<std::uint64_t>(item), out);
  });
  return block;
}

void write_provenance(Hdf5Writer& file, const Generator& generator, std::uint64_t seed) {
  for (const auto& [name, value] : provenance_of(generator, seed)) file.set_attribute("", name, value);
}

void Generator::write(const WriteRequest& request) const {
  if (ends_in(request.path, {".npz"})) return write_samples<NpzWriter>(*this, request);
  for (const char* other :
       {".npy", ".csv", ".tif", ".tiff", ".zip", ".tar", ".json", ".safetensors", ".parquet"})
    if (ends_in(request.path, {other}))
      throw Error(ErrorCode::invalid_argument, fmt::format("these data are not written as '{}'", other),
                  request.path.string(), "a name that ends in .h5 gives HDF5, in .npz an archive of NumPy");
  write_samples<Hdf5Writer>(*this, request);
}

}  // namespace superstep::data
