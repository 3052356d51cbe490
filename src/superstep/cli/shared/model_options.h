// Options of models and of model files that several commands have.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "superstep/op/custom/operator_library.h"

namespace superstep::cli {

// A value of an option that may be repeated, where the next word is an argument of its own.
inline CLI::Option* add_repeated(CLI::App& command, const char* name, std::vector<std::string>& values,
                                 const char* help, const char* value) {
  return command.add_option(name, values, help)->type_name(value)->allow_extra_args(false);
}

// Loaded as soon as it is read: what follows on the line may be checked against it.
inline void add_operators_option(CLI::App& command) {
  command
      .add_option_function<std::vector<std::string>>(
          "--operators",
          [](const std::vector<std::string>& libraries) {
            for (const std::string& library : libraries) op::load_operators(library);
          },
          "a shared library with operators of your own (docs/custom-operators.md); may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

inline void add_bound_option(CLI::App& command, std::vector<std::string>& bounds) {
  add_repeated(command, "--bound", bounds,
               "longest result of a node whose length depends on the data, * matches; may be repeated",
               "NODE=N");
}

inline void add_shape_option(CLI::App& command, std::vector<std::string>& shapes) {
  add_repeated(command, "--shape", shapes,
               "shape of a model file's input, or a symbol of it: x=1,3,224,224, batch=4; may be repeated",
               "NAME=N,...");
}

inline void add_train_option(CLI::App& command, std::vector<std::string>& names) {
  add_repeated(command, "--train", names,
               "initializers of a model file to train beside its weights, * and ? match; may be repeated",
               "NAME");
}

inline void add_freeze_option(CLI::App& command, std::vector<std::string>& names) {
  add_repeated(command, "--freeze", names,
               "initializers of a model file to keep as they are, * and ? match; may be repeated", "NAME");
}

inline void add_loss_option(CLI::App& command, std::string& loss) {
  command
      .add_option(
          "--loss", loss,
          "loss of a model file: mse, bce, cross_entropy ..., with constants, per output (docs/losses.md)")
      ->type_name("LOSS");
}

inline void add_skip_broken_option(CLI::App& command, bool& skips) {
  command.add_flag("--skip-broken", skips, "leave out samples that cannot be read, and say which");
}

inline void add_crop_option(CLI::App& command, bool& crops) {
  command
      .add_option_function<std::string>(
          "--crop", [&crops](const std::string&) { crops = true; },
          "center: take the middle of pictures that are larger than the model's")
      ->type_name("center")
      ->check(CLI::IsMember({"center"}));
}

// scale x value + offset, of arrays of the data.
inline void add_scale_options(CLI::App& command, std::vector<std::string>& scale,
                              std::vector<std::string>& offset) {
  add_repeated(command, "--scale", scale,
               "multiply an array of the data: x=0.1, one per channel, x=log, x=unit; may be repeated",
               "NAME=X");
  add_repeated(command, "--offset", offset,
               "add to an array of the data, behind --scale: x=-3, or one per channel; may be repeated",
               "NAME=X");
}

// Files, or arrays with names; given several times, all of them together.
inline CLI::Option* add_data_option(CLI::App& command, const char* name, std::vector<std::string>& paths,
                                    const char* help) {
  return add_repeated(command, name, paths, help, "PATH");
}

inline void add_tokenizer_option(CLI::App& command, std::filesystem::path& tokenizer) {
  command
      .add_option(
          "--tokenizer", tokenizer,
          "the data are texts, or SQuAD's questions: tokenizer.json or vocab.txt that makes tokens of them")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
}

inline void add_set_option(CLI::App& command, std::vector<std::string>& settings) {
  add_repeated(command, "--set", settings, "name=value of an option of the model; may be repeated",
               "NAME=VALUE");
}

}  // namespace superstep::cli
