// Any text is a facility, a workflow or a trace of waits, or refused with an Error.
#include <string>
#include <string_view>

#include "superstep/facility/facility.h"
#include "superstep/facility/workflow.h"
#include "tests/fuzz/attempt.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace superstep;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // A trace is a file beside it: of whoever wrote the facility.
  if (text.find("trace") == std::string_view::npos)
    attempt([&] { facility::parse_facility(text, "fuzz.toml"); });
  attempt([&] { facility::parse_workflow(text, "fuzz.toml"); });
  attempt([&] { facility::waits_of_trace(text, "fuzz.swf"); });
  return 0;
}
