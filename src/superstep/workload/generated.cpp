#include "superstep/workload/generated.h"

#include <fmt/format.h>

namespace superstep::workload {

std::unique_ptr<data::Generator> make_generator(std::string_view name,
                                                std::span<const std::string> settings) {
  const data::GeneratorEntry& entry = data::find_generator(name);
  return entry.make(Options(entry.options, settings));
}

Fields generated_fields(const data::Generator& generator, const TaskSettings& settings,
                        std::int64_t default_samples) {
  const std::int64_t count = settings.samples > 0 ? settings.samples : default_samples;
  std::vector<Tensor> tensors = data::generate_in_memory(generator, settings.seed, 0,
                                                         static_cast<std::uint64_t>(count), *settings.pool);
  Fields fields;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    fields.emplace(generator.fields()[i].name, std::move(tensors[i]));
  return fields;
}

std::string generated_source(const TaskSettings& settings) {
  return fmt::format("generated, seed {}", settings.seed);
}

}  // namespace superstep::workload
