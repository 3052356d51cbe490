// Samples that a generator makes in memory, for a workload that is given no file.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "superstep/physics/generator.h"
#include "superstep/workload/task.h"

namespace superstep::workload {

using Fields = std::map<std::string, Tensor>;  // by name, [samples, ...] each

// A generator of physics/generators.h with `settings` (name=value) on top of its defaults.
std::unique_ptr<data::Generator> make_generator(std::string_view name,
                                                std::span<const std::string> settings = {});

// Its fields for as many samples as the user asks for, else for `default_samples`.
Fields generated_fields(const data::Generator& generator, const TaskSettings& settings,
                        std::int64_t default_samples);

// Where such data come from, in words.
std::string generated_source(const TaskSettings& settings);

}  // namespace superstep::workload
