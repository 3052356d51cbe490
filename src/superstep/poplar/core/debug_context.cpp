#include <atomic>
#include <poplar/DebugContext.hpp>

namespace poplar {
namespace {

DebugId next_id() {
  static std::atomic<DebugId> last = 0;
  return ++last;
}

std::string path_below(const std::string& parent, const std::string& name) {
  return parent.empty() || name.empty() ? parent + name : parent + "/" + name;
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
  setValue("category", std::move(api));
}
void DebugInfo::setValue(std::string name, ProfileValue value) {
  values_[std::move(name)] = std::move(value);
}
DebugInfo::~DebugInfo() = default;

}  // namespace poplar
