// Marks of a program's phases, for a viewer of traces: legal, and without effect.
#ifndef pvti_hpp
#define pvti_hpp

#include <string>

namespace pvti {

class TraceChannel {
 public:
  TraceChannel(const char* name) : name_(name) {}         // NOLINT(google-explicit-constructor)
  TraceChannel(const std::string& name) : name_(name) {}  // NOLINT(google-explicit-constructor)
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

// From where it is made to the end of the scope, or between begin() and end().
class Tracepoint {
 public:
  Tracepoint(TraceChannel*, const std::string&) {}
  ~Tracepoint() {}
  Tracepoint(const Tracepoint&) = delete;
  Tracepoint& operator=(const Tracepoint&) = delete;

  static void begin(TraceChannel*, const std::string&) {}
  static void end(TraceChannel*, const std::string&) {}
  static void event(TraceChannel*, const std::string&) {}
};

}  // namespace pvti

#endif
