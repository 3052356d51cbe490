// Any text is either a table of published rows or refused with an Error; so is every cell of it.
#include <string_view>

#include "superstep/base/error.h"
#include "superstep/lab/validate/primitive_graph.h"
#include "superstep/lab/validate/table.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace superstep::lab;
  try {
    const PublishedTable table({reinterpret_cast<const char*>(data), size}, "fuzz.csv");
    for (std::size_t row = 0; row < table.rows(); ++row) {
      primitive_graph(table.text(row, "workload"), table.text(row, "metric"));
      table.integer(row, "micro_batch", 0);
      table.number(row, "value", 0);
    }
  } catch (const superstep::Error&) {
  }
  return 0;
}
