// Options of model files that several commands have.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace superstep::cli {

inline void add_bound_option(CLI::App& command, std::vector<std::string>& bounds) {
  command
      .add_option("--bound", bounds,
                  "of a model file: how long the result of a node may be whose length depends on the data: "
                  "NODE=N or NODE=all, * in a name is any letters; may be repeated")
      ->type_name("NODE=N")
      ->allow_extra_args(false);
}

}  // namespace superstep::cli
