// What a program asks for and the model does not compute: said on standard error, each once.
#pragma once

#include <string>

namespace poplar::core {

// "poplar: `what`", the first time that it is said by this process.
void say_once(const std::string& what);

}  // namespace poplar::core
