#include "vertices.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendActions.h"
#include "clang/Tooling/Tooling.h"
#include "llvm/ADT/StringExtras.h"

namespace popc {
namespace {

using namespace clang;

bool is_kind_of_vertex(const CXXRecordDecl* record) {
  const std::string name = record->getQualifiedNameAsString();
  return name == "poplar::Vertex" || name == "poplar::MultiVertex" || name == "poplar::SupervisorVertex";
}

bool in_namespace_poplar(const CXXRecordDecl* record) {
  return record->getQualifiedNameAsString().starts_with("poplar::");
}

const CXXRecordDecl* base_of(const CXXBaseSpecifier& base) {
  const CXXRecordDecl* record = base.getType()->getAsCXXRecordDecl();
  return record ? record->getDefinition() : nullptr;
}

bool derives_from_vertex(const CXXRecordDecl* record) {
  return std::any_of(record->bases_begin(), record->bases_end(), [](const CXXBaseSpecifier& specifier) {
    const CXXRecordDecl* base = base_of(specifier);
    return base && (is_kind_of_vertex(base) || derives_from_vertex(base));
  });
}

bool has_compute(const CXXRecordDecl* record) {
  for (const CXXMethodDecl* method : record->methods())
    if (method->getNameAsString() == "compute") return true;
  return std::any_of(record->bases_begin(), record->bases_end(), [](const CXXBaseSpecifier& specifier) {
    const CXXRecordDecl* base = base_of(specifier);
    return base && has_compute(base);
  });
}

const CXXConstructorDecl* default_constructor(const CXXRecordDecl* record) {
  for (const CXXConstructorDecl* constructor : record->ctors())
    if (constructor->isDefaultConstructor()) return constructor;
  return nullptr;
}

// Whether V() can be linked: constructors are often declared for the compiler's sake and defined nowhere.
bool is_construction_defined(const CXXRecordDecl* record) {
  const CXXConstructorDecl* constructor = default_constructor(record);
  if (constructor && (constructor->isDeleted() || (constructor->isUserProvided() && !constructor->isDefined())))
    return false;
  for (const CXXBaseSpecifier& specifier : record->bases())
    if (const CXXRecordDecl* base = base_of(specifier); base && !is_construction_defined(base)) return false;
  for (const FieldDecl* field : record->fields())
    if (const CXXRecordDecl* type = field->getType()->getAsCXXRecordDecl();
        type && type->getDefinition() && !is_construction_defined(type->getDefinition()))
      return false;
  return true;
}

// --- names ----------------------------------------------------------------------------------------------

// Names of halves: graphs say half, code says _Float16. Everything else is written alike.
enum class For { graph, code };

std::string name_of(QualType type, const ASTContext& context, For reader);

std::string enumerator(const EnumDecl* declaration, const llvm::APSInt& value, For reader) {
  for (const EnumConstantDecl* constant : declaration->enumerators())
    if (llvm::APSInt::isSameValue(constant->getInitVal(), value))
      return declaration->getQualifiedNameAsString() + "::" + constant->getNameAsString();
  const std::string number = llvm::toString(value, 10);
  return reader == For::graph ? number : "(" + declaration->getQualifiedNameAsString() + ")" + number;
}

std::string name_of(const TemplateArgument& argument, const ASTContext& context, For reader) {
  switch (argument.getKind()) {
    case TemplateArgument::Type: return name_of(argument.getAsType(), context, reader);
    case TemplateArgument::Integral: {
      const QualType type = argument.getIntegralType();
      if (const auto* enumeration = type->getAs<EnumType>())
        return enumerator(enumeration->getDecl(), argument.getAsIntegral(), reader);
      if (type->isBooleanType()) return argument.getAsIntegral().getBoolValue() ? "true" : "false";
      return llvm::toString(argument.getAsIntegral(), 10);
    }
    case TemplateArgument::Pack: {
      std::string list;
      for (const TemplateArgument& item : argument.pack_elements())
        list += (list.empty() ? "" : ",") + name_of(item, context, reader);
      return list;
    }
    default: {
      std::string text;
      llvm::raw_string_ostream out(text);
      argument.print(context.getPrintingPolicy(), out, true);
      return text;
    }
  }
}

std::string name_of(const CXXRecordDecl* record, const ASTContext& context, For reader) {
  std::string name;
  llvm::raw_string_ostream out(name);
  PrintingPolicy policy(context.getLangOpts());
  policy.SuppressUnwrittenScope = true;
  record->printQualifiedName(out, policy);
  const auto* instance = dyn_cast<ClassTemplateSpecializationDecl>(record);
  if (!instance) return name;
  std::string list;
  for (const TemplateArgument& argument : instance->getTemplateArgs().asArray())
    list += (list.empty() ? "" : ",") + name_of(argument, context, reader);
  return name + "<" + list + ">";
}

// Of a short vector, as poplar/VectorTypes.hpp calls it: float2, uchar4.
std::string name_of_vector(const ExtVectorType* vector, const ASTContext& context) {
  const QualType element = vector->getElementType();
  std::string name = name_of(element, context, For::graph);
  if (const std::size_t space = name.find("unsigned "); space == 0) name = "u" + name.substr(std::strlen("unsigned "));
  if (name == "long long") name = "longlong";
  return name + std::to_string(vector->getNumElements());
}

std::string name_of(QualType type, const ASTContext& context, For reader) {
  type = type.getCanonicalType();
  if (const auto* vector = type->getAs<ExtVectorType>()) return name_of_vector(vector, context);
  if (const CXXRecordDecl* record = type->getAsCXXRecordDecl()) return name_of(record, context, reader);
  PrintingPolicy policy(context.getLangOpts());
  policy.SuppressTagKeyword = true;
  const std::string name = type.getAsString(policy);
  return reader == For::graph && name == "_Float16" ? "half" : name;
}

// --- the file -------------------------------------------------------------------------------------------

class Finder : public RecursiveASTVisitor<Finder> {
 public:
  explicit Finder(ASTContext& context) : context_(context) {}

  bool shouldVisitTemplateInstantiations() const { return true; }

  bool VisitCXXRecordDecl(CXXRecordDecl* record) {
    if (record->getDefinition() == record && is_wanted(record) && known_.insert(record).second)
      candidates_.push_back(record);
    return true;
  }

  std::vector<Vertex> vertices() {
    std::set<const CXXRecordDecl*> bases;
    for (const CXXRecordDecl* record : candidates_)
      for (const CXXBaseSpecifier& base : record->bases()) bases.insert(base_of(base));
    std::vector<Vertex> result;
    for (const CXXRecordDecl* record : candidates_) {
      if (has_compute(record))
        result.push_back(describe(record));
      else if (!bases.contains(record))
        say_without_compute(record);
    }
    return result;
  }

 private:
  bool is_wanted(const CXXRecordDecl* record) const {
    if (record->isDependentContext() || record->isInjectedClassName() || in_namespace_poplar(record)) return false;
    if (const auto* instance = dyn_cast<ClassTemplateSpecializationDecl>(record)) {
      const TemplateSpecializationKind kind = instance->getSpecializationKind();
      if (kind != TSK_ExplicitInstantiationDefinition && kind != TSK_ExplicitSpecialization) return false;
    }
    return derives_from_vertex(record);
  }

  Vertex describe(const CXXRecordDecl* record) const {
    Vertex vertex{name_of(record, context_, For::graph), name_of(record, context_, For::code), {}};
    add_fields(record, vertex.fields);
    vertex.constructed = record->hasNonTrivialDefaultConstructor() && is_construction_defined(record);
    return vertex;
  }

  void add_fields(const CXXRecordDecl* record, std::vector<Field>& fields) const {
    for (const CXXBaseSpecifier& specifier : record->bases())
      if (const CXXRecordDecl* base = base_of(specifier); base && !in_namespace_poplar(base)) add_fields(base, fields);
    for (const FieldDecl* field : record->fields()) {
      const PresumedLoc place = context_.getSourceManager().getPresumedLoc(field->getLocation());
      fields.push_back({field->getNameAsString(), place.isValid() ? place.getFilename() : "?",
                        place.isValid() ? place.getLine() : 0});
    }
  }

  void say_without_compute(const CXXRecordDecl* record) const {
    DiagnosticsEngine& diagnostics = context_.getDiagnostics();
    diagnostics.Report(record->getLocation(),
                       diagnostics.getCustomDiagID(DiagnosticsEngine::Error,
                                                   "the vertex '%0' has no compute(): give it one"))
        << name_of(record, context_, For::graph);
  }

  ASTContext& context_;
  std::vector<const CXXRecordDecl*> candidates_;
  std::set<const CXXRecordDecl*> known_;
};

class Consumer : public ASTConsumer {
 public:
  explicit Consumer(Found& found) : found_(found) {}
  void HandleTranslationUnit(ASTContext& context) override {
    if (context.getDiagnostics().hasErrorOccurred()) return;
    Finder finder(context);
    finder.TraverseDecl(context.getTranslationUnitDecl());
    found_.vertices = finder.vertices();
    add_files(context.getSourceManager());
    found_.done = !context.getDiagnostics().hasErrorOccurred();
  }

 private:
  void add_files(const SourceManager& manager) {
    for (auto file = manager.fileinfo_begin(); file != manager.fileinfo_end(); ++file) {
      const std::string name = file->first.getFileEntry().tryGetRealPathName().str();
      if (!name.empty() && !name.starts_with("/usr/include/") && !name.starts_with("/usr/lib/"))
        found_.files.push_back(name);
    }
    std::sort(found_.files.begin(), found_.files.end());
  }

  Found& found_;
};

class Action : public ASTFrontendAction {
 public:
  explicit Action(Found& found) : found_(found) {}
  std::unique_ptr<ASTConsumer> CreateASTConsumer(CompilerInstance&, llvm::StringRef) override {
    return std::make_unique<Consumer>(found_);
  }

 private:
  Found& found_;
};

}  // namespace

Found find_vertices(const std::string& file, const std::vector<std::string>& arguments) {
  Found found;
  std::vector<std::string> words{"clang", "-resource-dir=" SUPERSTEP_CLANG_RESOURCES, "-fsyntax-only", "-w"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.push_back(file);
  llvm::IntrusiveRefCntPtr<FileManager> files(new FileManager(FileSystemOptions()));
  tooling::ToolInvocation invocation(words, std::make_unique<Action>(found), files.get());
  found.done = invocation.run() && found.done;
  return found;
}

}  // namespace popc
