// How the command line is understood and, where it is not, what is said: help asked for in every usual way,
// names that were misspelt, arguments nobody expected.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "superstep/base/error.h"

namespace superstep::cli {

// What was typed after the program's name, with the ways to ask for help made one: nothing, "help" and "-h"
// are
// "--help"; "help train" and "-h train" are "train --help"; a group of commands alone ("records") is
// "records --help".
std::vector<std::string> understood(std::vector<std::string> words, const CLI::App& program);

// Throws Error (invalid_argument) where the first word, or the second after a group of commands, is no
// command.
void require_known_command(const std::vector<std::string>& words, const CLI::App& program);

// What CLI11 found wrong, in our words.
Error explained(const CLI::ParseError& error, const CLI::App& program);

}  // namespace superstep::cli
