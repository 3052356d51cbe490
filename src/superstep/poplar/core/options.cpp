#include <poplar/OptionFlags.hpp>
#include <poplar/exceptions.hpp>

namespace poplar {

const std::string& OptionFlags::at(StringRef option) const {
  const auto found = flags_.find(option);
  if (found == flags_.end()) throw invalid_option("the option '" + option + "' is not set");
  return found->second;
}

}  // namespace poplar
