// Options of models and of model files that several commands have.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace superstep::cli {

// A value of an option that may be repeated, where the next word is an argument of its own.
inline CLI::Option* add_repeated(CLI::App& command, const char* name, std::vector<std::string>& values,
                                 const char* help, const char* value) {
  return command.add_option(name, values, help)->type_name(value)->allow_extra_args(false);
}

inline void add_bound_option(CLI::App& command, std::vector<std::string>& bounds) {
  add_repeated(command, "--bound", bounds,
               "of a model file: how long the result of a node may be whose length depends on the data: "
               "NODE=N or NODE=all, * in a name is any letters; may be repeated",
               "NODE=N");
}

inline void add_shape_option(CLI::App& command, std::vector<std::string>& shapes) {
  add_repeated(command, "--shape", shapes, "of a model file: input=EXTENTS or symbol=N; may be repeated",
               "NAME=N,...");
}

inline void add_train_option(CLI::App& command, std::vector<std::string>& names) {
  add_repeated(command, "--train", names,
               "of a model file: initializers that are trained beside its weights, * and ? in them; may be "
               "repeated",
               "NAME");
}

inline void add_freeze_option(CLI::App& command, std::vector<std::string>& names) {
  add_repeated(command, "--freeze", names,
               "of a model file: initializers that are not trained, * and ? in them; may be repeated",
               "NAME");
}

inline void add_set_option(CLI::App& command, std::vector<std::string>& settings) {
  add_repeated(command, "--set", settings, "name=value of an option of the model; may be repeated",
               "NAME=VALUE");
}

}  // namespace superstep::cli
