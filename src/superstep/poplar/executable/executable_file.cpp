#include "superstep/poplar/executable/executable_file.h"

#include <istream>
#include <ostream>
#include <sstream>

#include "superstep/base/encoding/sha256.h"
#include "superstep/base/file.h"
#include "superstep/base/system/user_folders.h"
#include "superstep/poplar/codelet/load_codelets.h"
#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/core/print_format.h"
#include "superstep/poplar/executable/check.h"
#include "superstep/poplar/executable/machine_parts.h"

namespace poplar {
namespace core {
namespace {

constexpr std::string_view format = "superstep-poplar-executable";
constexpr int version = 2;  // of what follows; another is refused

std::string name_of_content(std::string_view bytes) {
  superstep::Sha256 hash;
  hash.add(std::as_bytes(std::span(bytes.data(), bytes.size())));
  return hash.hexadecimal();
}

// Vertices refer to their classes by number: a class by its name and the object that it is in.
struct Codelets {
  std::vector<std::pair<std::string, std::string>> objects;  // name of the content, content
  std::vector<std::pair<std::string, std::uint32_t>> classes;
};

class CodeletTable {
 public:
  explicit CodeletTable(const bsp::ExecutableData& data) {
    for (const bsp::LoweredComputeSet& set : data.compute_sets)
      for (const bsp::LoweredVertex& vertex : set.vertices)
        if (number_.emplace(vertex.vertex_class, table_.classes.size()).second) add(*vertex.vertex_class);
  }
  Codelets& table() { return table_; }
  std::uint32_t number(const bsp::VertexClass* of) const { return number_.at(of); }

 private:
  void add(const bsp::VertexClass& vertex_class) {
    const std::string& file = static_cast<const CodeletClass*>(vertex_class.context.get())->object;
    const auto [place, is_new] = files_.emplace(file, static_cast<std::uint32_t>(table_.objects.size()));
    if (is_new) {
      std::string content = superstep::read_text_file(file);
      std::string name = name_of_content(content);
      table_.objects.emplace_back(std::move(name), std::move(content));
    }
    table_.classes.emplace_back(vertex_class.name, place->second);
  }

  Codelets table_;
  std::map<const bsp::VertexClass*, std::uint32_t> number_;
  std::map<std::string, std::uint32_t> files_;
};

template <class A>
void archived_rest(A& archive, bsp::ExecutableData& data) {
  archived_all(archive, data.variables, data.nodes, data.programs, data.streams, data.buffers, data.writes,
               data.reads, data.timing_only, data.profile);
}

template <class A>
void archived_set(A& archive, bsp::LoweredComputeSet& set, std::vector<std::uint32_t>& class_numbers) {
  std::vector<std::uint32_t> numbers;  // of each vertex: field, fields, value
  if constexpr (!A::reading)
    for (const bsp::LoweredVertex& vertex : set.vertices)
      numbers.insert(numbers.end(), {vertex.first_field, vertex.fields, vertex.first_value});
  archived_all(archive, numbers, class_numbers, set.fields, set.pieces, set.blocks, set.values);
  if constexpr (A::reading) {
    if (numbers.size() != 3 * class_numbers.size())
      throw graph_object_load_error("the executable is damaged: a compute set's vertices");
    for (std::size_t i = 0; i < class_numbers.size(); ++i)
      set.vertices.push_back({nullptr, numbers[3 * i], numbers[3 * i + 1], numbers[3 * i + 2]});
  }
}

// Objects lie in the user's cache, under the name of their content.
std::filesystem::path kept(const std::string& name, const std::string& content) {
  if (name != name_of_content(content))
    throw graph_object_load_error("the executable is damaged: its codelets");
  const std::filesystem::path folder = superstep::user_cache_folder() / "codelets";
  superstep::make_folder(folder);
  const std::filesystem::path file = folder / (name + ".gp");
  if (!std::filesystem::exists(file)) superstep::write_file_atomically(file.string(), content);
  return file;
}

// The classes by their numbers; the data keeps them.
std::vector<const bsp::VertexClass*> load_classes(const Codelets& codelets, unsigned workers,
                                                  bsp::ExecutableData& data) {
  std::vector<std::map<std::string, std::shared_ptr<const CodeletClass>>> objects;
  for (const auto& [name, content] : codelets.objects) {
    auto& classes = objects.emplace_back();
    for (auto& codelet : load_codelets(kept(name, content), workers)) classes[codelet->entry->name] = codelet;
  }
  std::vector<const bsp::VertexClass*> result;
  for (const auto& [name, object] : codelets.classes) {
    if (object >= objects.size() || !objects[object].contains(name))
      throw graph_object_load_error("the executable is damaged: there is no codelet " + name);
    const auto [place, is_new] = data.classes.emplace(name, machine_class(objects[object].at(name)));
    if (!is_new) throw graph_object_load_error("the executable is damaged: a codelet stands twice");
    result.push_back(&place->second);
  }
  return result;
}

template <class A>
void archived_target(A& archive, TargetData& target, OptionFlags& options) {
  std::map<std::string, std::string> flags(options.begin(), options.end());
  archived_all(archive, target.device, target.type, target.arch, flags);
  if constexpr (A::reading)
    for (const auto& [name, value] : flags) options.set(name, value);
}

}  // namespace

std::string bytes_of(const ExecutableData& executable) {
  auto& data =
      const_cast<bsp::ExecutableData&>(executable.executable.data());  // which a writer does not change
  ArchiveWriter archive;
  TargetData target = executable.target.data();
  OptionFlags options = executable.options;
  archived_target(archive, target, options);
  CodeletTable codelets(data);
  archived_all(archive, codelets.table().objects, codelets.table().classes);
  std::uint64_t sets = data.compute_sets.size();
  archived(archive, sets);
  for (bsp::LoweredComputeSet& set : data.compute_sets) {
    std::vector<std::uint32_t> numbers;
    for (const bsp::LoweredVertex& vertex : set.vertices)
      numbers.push_back(codelets.number(vertex.vertex_class));
    archived_set(archive, set, numbers);
  }
  archived_rest(archive, data);
  return std::move(archive.bytes);
}

namespace {

std::shared_ptr<const ExecutableData> read_executable(std::string_view bytes) {
  ArchiveReader archive(bytes);
  TargetData target;
  OptionFlags options;
  archived_target(archive, target, options);
  if (static_cast<unsigned>(target.type) > static_cast<unsigned>(TargetType::CPU))
    throw graph_object_load_error("the executable is damaged: its target");
  Codelets codelets;
  archived_all(archive, codelets.objects, codelets.classes);
  auto data = std::make_shared<bsp::ExecutableData>();
  const auto classes = load_classes(codelets, target.device.workers, *data);
  std::uint64_t sets = 0;
  archived_count(archive, sets);
  for (std::uint64_t i = 0; i < sets; ++i) {
    std::vector<std::uint32_t> numbers;
    bsp::LoweredComputeSet& set = data->compute_sets.emplace_back();
    archived_set(archive, set, numbers);
    for (std::size_t v = 0; v < numbers.size(); ++v) {
      if (numbers[v] >= classes.size())
        throw graph_object_load_error("the executable is damaged: a vertex of no type");
      set.vertices[v].vertex_class = classes[numbers[v]];
    }
  }
  archived_rest(archive, *data);
  if (!archive.at_end())
    throw graph_object_load_error("the executable is damaged: there is more than it says");
  check_executable(*data);
  for (bsp::LoweredNode& node : data->nodes)
    if (node.kind == bsp::ProgramKind::print_tensor && !node.message.empty())
      node.printer = printer(format_of(node.message));
  return std::make_shared<const ExecutableData>(
      ExecutableData{bsp::Executable(std::move(data)),
                     Target(std::make_shared<const TargetData>(std::move(target))), std::move(options)});
}

}  // namespace

std::shared_ptr<const ExecutableData> executable_of(std::string_view bytes) {
  return guarded([&] { return read_executable(bytes); });
}

}  // namespace core

void Executable::serialize(std::ostream& out) const {
  if (!data_) throw poplar_error("an executable that is not there: take compileGraph");
  core::guarded([&] {
    const std::string bytes = core::bytes_of(*data_);
    out << core::format << ' ' << core::version << ' ' << core::name_of_content(bytes) << ' ' << bytes.size()
        << '\n'
        << bytes;
    if (!out.flush()) throw poplar_error("the executable cannot be written: the stream has failed");
  });
}

Executable Executable::deserialize(std::istream& in) {
  std::string line, format, name;
  int version = 0;
  std::uint64_t size = 0;
  std::getline(in, line);
  std::istringstream words(line);
  if (!(words >> format >> version) || format != core::format)
    throw graph_object_load_error("this is no executable: write one by Executable::serialize");
  if (version != core::version)
    throw graph_object_load_error(fmt::format(
        "the executable is of version {}, this library reads {}: compile it again", version, core::version));
  if (!(words >> name >> size)) throw graph_object_load_error("the executable is damaged: its first line");
  std::string bytes, part(1 << 16, '\0');  // as it comes: what the line says of its size need not be so
  while (bytes.size() < size && in) {
    in.read(part.data(),
            static_cast<std::streamsize>(std::min<std::uint64_t>(part.size(), size - bytes.size())));
    bytes.append(part.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (bytes.size() != size || core::name_of_content(bytes) != name)
    throw graph_object_load_error("the executable is damaged: its content is not what was written");
  return Executable(core::executable_of(bytes));
}

}  // namespace poplar
