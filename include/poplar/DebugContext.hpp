// Where a variable, a vertex or a program comes from: the name that messages and profiles call it by.
#ifndef poplar_DebugContext_hpp
#define poplar_DebugContext_hpp

#include <cstdint>
#include <poplar/ProfileValue.hpp>
#include <poplar/StringRef.hpp>
#include <string>
#include <utility>

#pragma GCC visibility push(default)

namespace poplar {

using DebugId = std::uint64_t;

class SourceLocation {
 public:
  SourceLocation() : function_(""), file_(""), line_(0) {}
  SourceLocation(const char* function, const char* file, unsigned line)
      : function_(function), file_(file), line_(line) {}
  const char* getFunctionName() const { return function_; }
  const char* getFileName() const { return file_; }
  unsigned getLineNumber() const { return line_; }
  bool isValid() const { return line_ != 0; }
  static SourceLocation Current(const char* function = __builtin_FUNCTION(),
                                const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
    return SourceLocation(function, file, line);
  }

 private:
  const char* function_;
  const char* file_;
  unsigned line_;
};

class DebugInfo;

class DebugNameAndId {
 public:
  DebugNameAndId(std::string name = std::string(), DebugId id = 0, std::string parentPath = std::string());
  DebugNameAndId(const char* name) : DebugNameAndId(std::string(name)) {}
  DebugNameAndId(const DebugInfo& info, std::string name = std::string());
  DebugNameAndId(const DebugNameAndId& parent, StringRef name);

  DebugId getId() const { return id_; }
  const std::string& getPathName() const { return path_; }

 private:
  DebugId id_;
  std::string path_;
};

// A path is the parent's path, "/" and the name.
class DebugContext {
 public:
  DebugContext(SourceLocation location = SourceLocation::Current()) : location_(location), id_(0), path_() {}
  DebugContext(const char* name, SourceLocation location = SourceLocation::Current())
      : location_(location), id_(0), path_(name) {}
  DebugContext(StringRef name, SourceLocation location = SourceLocation::Current())
      : location_(location), id_(0), path_(name) {}
  DebugContext(std::string name, SourceLocation location = SourceLocation::Current())
      : location_(location), id_(0), path_(std::move(name)) {}
  DebugContext(const DebugContext& parent, StringRef name);
  DebugContext(const DebugNameAndId& parent, StringRef name = StringRef(),
               SourceLocation location = SourceLocation::Current());
  DebugContext(const DebugInfo& parent, StringRef name = StringRef(),
               SourceLocation location = SourceLocation::Current());

  const std::string& getPathName() const { return path_; }
  DebugId getParentId() const { return id_; }
  const SourceLocation& getLocation() const { return location_; }

 private:
  SourceLocation location_;
  DebugId id_;
  std::string path_;
};

inline std::ostream& operator<<(std::ostream& out, const DebugContext& context) {
  return out << context.getPathName();
}

enum class DebugSerializationFormat { CBOR, JSON };

// What a library says of one call to it; everything that the call makes can be named below it.
class DebugInfo {
 public:
  DebugInfo(const DebugContext& context, std::string api);
  virtual ~DebugInfo();
  DebugInfo(const DebugInfo&) = delete;
  DebugInfo& operator=(const DebugInfo&) = delete;

  DebugId getId() const { return id_; }
  std::string getPathName() const { return path_; }
  // What the library wants kept of the call. A second value of one name is the one that stays.
  void setValue(std::string name, ProfileValue value);

  // From here to closeStreamer what libraries say is kept, and then written to the file as
  // {"contexts": [{"id", "parentId", "name", the values}]}, JSON. Throws poplar_error when the file cannot be
  // written, one is open already, and for CBOR, which there is not.
  static void initializeStreamer(const std::string& fileName,
                                 const DebugSerializationFormat& format = DebugSerializationFormat::JSON);
  static void closeStreamer();  // does nothing where none is open

 private:
  DebugId id_;
  std::string path_;
  ProfileValue::Map values_;
};

}  // namespace poplar

#pragma GCC visibility pop

#endif
