#include "superstep/physics/generator.h"

#include <algorithm>

#include "superstep/base/progress.h"
#include "superstep/file/hdf5/hdf5.h"
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

void create_data_sets(Hdf5Writer& file, const Generator& generator, const WriteRequest& request) {
  for (const Field& field : generator.fields()) {
    file.create(field.name, field.type, Shape(with_sample_axis(request.samples, field.shape)));
    file.set_attribute(field.name, "meaning", field.meaning);
    if (!field.unit.empty()) file.set_attribute(field.name, "unit", field.unit);
  }
  for (const auto& [name, tensor] : generator.shared_arrays(request.seed)) file.write(name, tensor);
}

void write_block(Hdf5Writer& file, std::span<const Field> fields, std::uint64_t first,
                 const std::vector<Tensor>& block) {
  for (std::size_t f = 0; f < fields.size(); ++f)
    file.write_rows(fields[f].name, static_cast<std::int64_t>(first), block[f]);
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
  file.set_attribute("", "synthetic", std::int64_t{1});
  file.set_attribute("", "generator", std::string(generator.name()));
  file.set_attribute("", "version", std::int64_t{generator.version()});
  file.set_attribute("", "seed", static_cast<std::int64_t>(seed));
  file.set_attribute("", "parameters", generator.parameters().dump());
}

void Generator::write(const WriteRequest& request) const {
  Hdf5Writer file(request.path);
  write_provenance(file, *this, request.seed);
  create_data_sets(file, *this, request);
  Progress progress("generating " + std::string(name()), static_cast<double>(request.samples), "samples");
  stream_blocks(
      request.samples, samples_a_block(*this, *request.pool), progress,
      [&](std::uint64_t first, std::uint64_t count) {
        return generate_in_memory(*this, request.seed, first, count, *request.pool);
      },
      [&](std::uint64_t first, const std::vector<Tensor>& block) {
        write_block(file, fields(), first, block);
      });
  file.close();
}

}  // namespace superstep::data
