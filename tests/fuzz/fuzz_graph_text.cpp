// Any bytes are refused, or give a graph whose text parses to the same graph again.
#include <cstdlib>
#include <string_view>

#include "superstep/graph/text.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace superstep::graph;
  const auto graph = parse({reinterpret_cast<const char*>(data), size});
  if (!graph) return 0;
  const std::string text = to_text(*graph);
  const auto again = parse(text);
  if (!again || to_text(*again) != text) std::abort();
  return to_dot(*graph).empty() ? 1 : 0;
}
