// Codelets of a graph: compiled, loaded, and known by their names.
#include <poplar/Graph.hpp>

#include "superstep/base/encoding/sha256.h"
#include "superstep/base/file.h"
#include "superstep/base/system/user_folders.h"
#include "superstep/poplar/codelet/compile_codelets.h"
#include "superstep/poplar/codelet/load_codelets.h"
#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/core/handles.h"

namespace poplar {
namespace {

using core::guarded;

bool is_compiled(const std::string& file, CodeletFileType type) {
  return type == CodeletFileType::Object || (type == CodeletFileType::Auto && file.ends_with(".gp"));
}

// The same name may come again from the same code, not from another.
bool add_classes(core::GraphHandle& handle, const std::filesystem::path& object) {
  core::GraphState& state = *handle.state;
  bool added = false;
  for (auto& codelet : core::load_codelets(object, handle.target.getNumWorkerContexts())) {
    const std::string name = codelet->entry->name;
    const auto [place, is_new] = state.classes.emplace(name, codelet);
    if (!is_new && place->second->entry->compute != codelet->entry->compute)
      throw graph_object_creation_error("there is another vertex '" + name + "' already; the second is in " +
                                        object.string());
    if (!is_new) continue;
    state.graph.add_codelets({core::machine_class(std::move(codelet))});
    core::use_estimator(state, name, handle.target);
    added = true;
  }
  return added;
}

}  // namespace

bool Graph::addCodelets(StringRef file, CodeletFileType type, StringRef flags, StringRef target) {
  const std::string name = file;
  if (!is_compiled(name, type)) return addCodelets(ArrayRef<std::string>(name), flags, target);
  return guarded([&] { return add_classes(handle(), name); });
}

bool Graph::addCodelets(ArrayRef<std::string> files, StringRef flags, StringRef) {
  return guarded([&] {
    bool added = false;
    std::vector<std::string> sources;
    for (const std::string& file : files)
      if (is_compiled(file, CodeletFileType::Auto))
        added = add_classes(handle(), file) || added;
      else
        sources.push_back(file);
    if (sources.empty()) return added;
    return add_classes(handle(), core::compile_codelets(sources, flags)) || added;
  });
}

// Text is kept as a file of its content's name: messages of the compiler point to it.
void Graph::addCodelets(std::stringstream& source, StringRef flags, CodeletFileType, StringRef target) {
  guarded([&] {
    const std::string text = source.str();
    superstep::Sha256 hash;
    hash.add(std::as_bytes(std::span(text.data(), text.size())));
    const std::filesystem::path folder = superstep::user_cache_folder() / "codelets";
    superstep::make_folder(folder);
    const std::string file = (folder / (hash.hexadecimal() + ".cpp")).string();
    if (!std::filesystem::exists(file)) superstep::write_file_atomically(file, text);
    addCodelets(ArrayRef<std::string>(file), flags, target);
  });
}

bool Graph::hasCodelet(StringRef type) const {
  return handle().state->classes.contains(core::normal_name(type.cloneAsString()));
}

}  // namespace poplar
