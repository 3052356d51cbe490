#include <atomic>
#include <mutex>
#include <poplar/DebugContext.hpp>
#include <sstream>

#include "superstep/base/file.h"
#include "superstep/poplar/core/guard.h"

namespace poplar {
namespace {

DebugId next_id() {
  static std::atomic<DebugId> last = 0;
  return ++last;
}

std::string path_below(const std::string& parent, const std::string& name) {
  return parent.empty() || name.empty() ? parent + name : parent + "/" + name;
}

// What is kept for a file while one is open.
struct Streamer {
  std::mutex mutex;
  std::string file;  // empty: none is open
  ProfileValue::Vector contexts;
};

Streamer& streamer() {
  static Streamer one;
  return one;
}

}  // namespace

DebugNameAndId::DebugNameAndId(std::string name, DebugId id, std::string parent_path)
    : id_(id), path_(path_below(parent_path, name)) {}
DebugNameAndId::DebugNameAndId(const DebugInfo& info, std::string name)
    : id_(info.getId()), path_(path_below(info.getPathName(), name)) {}
DebugNameAndId::DebugNameAndId(const DebugNameAndId& parent, StringRef name)
    : id_(parent.id_), path_(path_below(parent.path_, name)) {}

DebugContext::DebugContext(const DebugContext& parent, StringRef name)
    : location_(parent.location_), id_(parent.id_), path_(path_below(parent.path_, name)) {}
DebugContext::DebugContext(const DebugNameAndId& parent, StringRef name, SourceLocation location)
    : location_(location), id_(parent.getId()), path_(path_below(parent.getPathName(), name)) {}
DebugContext::DebugContext(const DebugInfo& parent, StringRef name, SourceLocation location)
    : location_(location), id_(parent.getId()), path_(path_below(parent.getPathName(), name)) {}

DebugInfo::DebugInfo(const DebugContext& context, std::string api)
    : id_(next_id()), path_(context.getPathName()), values_() {
  setValue("parentId", ProfileValue(context.getParentId()));
  setValue("category", std::move(api));
}
void DebugInfo::setValue(std::string name, ProfileValue value) {
  values_[std::move(name)] = std::move(value);
}
DebugInfo::~DebugInfo() {
  Streamer& open = streamer();
  const std::lock_guard lock(open.mutex);
  if (open.file.empty()) return;
  values_["id"] = ProfileValue(id_);
  values_["name"] = ProfileValue(path_);
  open.contexts.push_back(ProfileValue(std::move(values_)));
}

void DebugInfo::initializeStreamer(const std::string& file, const DebugSerializationFormat& format) {
  if (format != DebugSerializationFormat::JSON)
    throw poplar_error("initializeStreamer: only DebugSerializationFormat::JSON is there");
  Streamer& open = streamer();
  const std::lock_guard lock(open.mutex);
  if (!open.file.empty())
    throw poplar_error("initializeStreamer: '" + open.file + "' is open: call closeStreamer first");
  core::guarded([&] { superstep::write_file_atomically(file, std::string_view("{\"contexts\": []}\n")); });
  open.file = file;
}

void DebugInfo::closeStreamer() {
  Streamer& open = streamer();
  const std::lock_guard lock(open.mutex);
  if (open.file.empty()) return;
  std::ostringstream text;
  serializeToJSON(text, ProfileValue::Map{{"contexts", ProfileValue(std::move(open.contexts))}});
  const std::string file = std::move(open.file);
  open.file.clear();
  open.contexts.clear();
  core::guarded([&] { superstep::write_file_atomically(file, text.str() + "\n"); });
}

}  // namespace poplar
