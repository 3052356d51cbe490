#include "translate.h"

#include <filesystem>

#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendActions.h"
#include "clang/Tooling/Tooling.h"
#include "emit.h"
#include "maps.h"
#include "superstep/openmp/program/abi.h"

namespace superstep_cc {

using namespace clang;

namespace {

class Translator : public RecursiveASTVisitor<Translator> {
 public:
  explicit Translator(ASTContext& context) : source(context) {}
  Source source;
  std::vector<Edit> edits;
  std::string explanation, warnings;

  bool TraverseFunctionDecl(FunctionDecl* function) {
    const unsigned before = function_;
    function_ = source.begin(function->getBeginLoc());
    while (function_ > 0 && source.text[function_ - 1] != '\n') --function_;
    const bool result = RecursiveASTVisitor::TraverseFunctionDecl(function);
    function_ = before;
    return result;
  }

  bool TraverseStmt(Stmt* statement) {
    const auto* directive = dyn_cast_or_null<OMPExecutableDirective>(statement);
    if (!directive) return RecursiveASTVisitor::TraverseStmt(statement);
    const OpenMPDirectiveKind kind = directive->getDirectiveKind();
    if (isOpenMPTargetExecutionDirective(kind)) return region(directive), true;
    if (kind == llvm::omp::OMPD_target_data) data(directive);
    if (kind == llvm::omp::OMPD_target_enter_data) standalone(directive, "sst_enter", maps(directive));
    if (kind == llvm::omp::OMPD_target_exit_data) standalone(directive, "sst_exit", maps(directive));
    if (const auto* update = dyn_cast<OMPTargetUpdateDirective>(directive))
      standalone(directive, "sst_update", update_items(source, update));
    if (kind == llvm::omp::OMPD_target_data && directive->hasAssociatedStmt())
      return TraverseStmt(const_cast<Stmt*>(directive->getInnermostCapturedStmt()->getCapturedStmt()));
    return RecursiveASTVisitor::TraverseStmt(statement);
  }

  bool VisitVarDecl(VarDecl* var) {
    const auto type = OMPDeclareTargetDeclAttr::isDeclareTargetDeclaration(var);
    if (!type || !var->hasGlobalStorage() || !var->isThisDeclarationADefinition() || var->isStaticLocal())
      return true;
    if (*type == OMPDeclareTargetDeclAttr::MT_Link || var->getType()->isPointerType()) return true;
    const std::string name = var->getNameAsString();
    globals_ += "static void __attribute__((constructor)) sst_register_" + name + "(void) { sst_global(" +
                quoted(source.file(var->getLocation())) + ", " +
                std::to_string(source.line(var->getLocation())) + ", " + quoted(name) + ", (void *)&" + name +
                ", (long)sizeof " + name + ", " +
                std::to_string(type_code(source.context, element_of(var->getType()))) + "); }\n";
    return true;
  }

  std::string text() {
    remove_declarations();
    return start_of_file() + source.with(0, static_cast<unsigned>(source.text.size()), edits) + "\n" +
           globals_;
  }

 private:
  void region(const OMPExecutableDirective* directive) {
    Region found;
    found.directive = directive;
    if (!read_clauses(source, found)) return;
    analyse(source, found);
    const Emitted emitted = emit_region(source, found, number_++);
    const std::string file = quoted(source.file(directive->getBeginLoc()));
    before_[function_] += emitted.functions;
    const unsigned end = source.end(directive);
    edits.push_back({source.pragma_begin(directive), end,
                     emitted.call + "\n# " + std::to_string(source.line(directive->getEndLoc()) + 1) + " " +
                         file + "\n"});
    std::erase_if(edits, [&](const Edit& edit) { return edit.begin == function_ && edit.end == function_; });
    edits.push_back({function_, function_,
                     before_[function_] + "# " + std::to_string(line_at(function_)) + " " + file + "\n"});
    for (const std::string& guess : found.guesses)
      warnings += source.where(directive->getBeginLoc()) + ": warning: cycles: " + guess + "\n";
    explanation += source.where(directive->getBeginLoc()) + ": ";
    if (found.not_dealt.empty())
      explanation += std::to_string(found.distributed.size()) + " loop(s) dealt to tiles, " +
                     std::to_string(found.accesses.size()) + " accesses\n";
    else
      explanation += (found.not_whole.empty() ? "one tile: " : "the host: ") +
                     (found.not_whole.empty() ? found.not_dealt : found.not_whole) + "\n";
  }

  unsigned line_at(unsigned offset) const {
    return source.line(source.manager.getLocForStartOfFile(source.manager.getMainFileID())
                           .getLocWithOffset(static_cast<int>(offset)));
  }

  std::vector<Item> maps(const OMPExecutableDirective* directive) {
    std::vector<Item> items;
    for (const OMPClause* clause : directive->clauses()) {
      if (const auto* map = dyn_cast<OMPMapClause>(clause)) {
        for (const Item& item : map_items(source, map)) items.push_back(item);
      } else if (!isa<OMPIfClause>(clause) && !isa<OMPDeviceClause>(clause) &&
                 !isa<OMPNowaitClause>(clause) && !isa<OMPDependClause>(clause) && !clause->isImplicit()) {
        source.refuse(directive->getBeginLoc(),
                      "clause: " + llvm::omp::getOpenMPClauseName(clause->getClauseKind()).str() +
                          "; name the arrays in map");
      }
    }
    return items;
  }

  std::string device_of(const OMPExecutableDirective* directive) const {
    std::string device = "sst_default_device";
    for (const auto* clause : directive->getClausesOfKind<OMPDeviceClause>())
      device = "(int)(" + source.words(clause->getDevice()) + ")";
    for (const auto* clause : directive->getClausesOfKind<OMPIfClause>())
      device = "(" + source.words(clause->getCondition()) + ") ? " + device + " : sst_this_host";
    return device;
  }

  std::string call(const OMPExecutableDirective* directive, const std::string& function, std::size_t count,
                   const std::string& device) const {
    return function + "(" + quoted(source.file(directive->getBeginLoc())) + ", " +
           std::to_string(source.line(directive->getBeginLoc())) + ", sst_i, " + std::to_string(count) +
           ", " + device + ");";
  }

  void standalone(const OMPExecutableDirective* directive, const std::string& function,
                  const std::vector<Item>& items) {
    edits.push_back({source.pragma_begin(directive), source.pragma_end(directive),
                     "{\n" + emit_items(source, items, true) +
                         call(directive, function, items.size(), device_of(directive)) + " }" +
                         marker(directive)});
  }

  std::string marker(const OMPExecutableDirective* directive) const {
    return "\n# " + std::to_string(source.line(directive->getEndLoc()) + 1) + " " +
           quoted(source.file(directive->getBeginLoc()));
  }

  // Items and device are what they were when the data were mapped.
  void data(const OMPExecutableDirective* directive) {
    const std::vector<Item> items = maps(directive);
    edits.push_back({source.pragma_begin(directive), source.pragma_end(directive),
                     "{\n" + emit_items(source, items, true) + "    int sst_v = " + device_of(directive) +
                         ";\n    " + call(directive, "sst_enter", items.size(), "sst_v") + "\n    {" +
                         marker(directive)});
    const unsigned end = source.end(directive);
    edits.push_back({end, end, "\n    }\n    " + call(directive, "sst_exit", items.size(), "sst_v") + "\n}"});
  }

  // Whatever is left of target constructs would silently be another compiler's.
  void check_nothing_is_left(const std::string& translated) {
    llvm::SmallVector<llvm::StringRef> lines;
    llvm::StringRef(translated).split(lines, '\n');
    for (const llvm::StringRef line : lines)
      if (line.ltrim().starts_with("#pragma omp") &&
          (line.contains(" target") || line.contains("declare target")))
        source.refuse(source.manager.getLocForStartOfFile(source.manager.getMainFileID()),
                      "clause: not translated: " + line.trim().str());
  }

  // Pragmas of declare target, which a compiler for the host has no use for.
  void remove_declarations() {
    for (std::size_t at = 0; at < source.text.size();) {
      const std::size_t end = std::min(source.text.find('\n', at), source.text.size());
      const llvm::StringRef line = source.text.slice(at, end).ltrim();
      if (line.starts_with("#pragma omp") && line.contains("declare target"))
        edits.push_back({static_cast<unsigned>(at), static_cast<unsigned>(end), ""});
      at = end + 1;
    }
  }

  unsigned function_ = 0;
  int number_ = 0;
  std::map<unsigned, std::string> before_;
  std::string globals_;
};

class Consumer : public ASTConsumer {
 public:
  explicit Consumer(Translation& result) : result_(result) {}
  void HandleTranslationUnit(ASTContext& context) override {
    if (context.getDiagnostics().hasErrorOccurred()) return;
    Translator translator(context);
    translator.TraverseDecl(context.getTranslationUnitDecl());
    result_.text = translator.text();
    result_.explanation = translator.explanation;
    result_.warnings = translator.warnings;
    result_.done = translator.source.refusals == 0;
  }

 private:
  Translation& result_;
};

class Action : public ASTFrontendAction {
 public:
  explicit Action(Translation& result) : result_(result) {}
  std::unique_ptr<ASTConsumer> CreateASTConsumer(CompilerInstance&, llvm::StringRef) override {
    return std::make_unique<Consumer>(result_);
  }

 private:
  Translation& result_;
};

bool run(std::unique_ptr<FrontendAction> action, std::vector<std::string> words) {
  auto files = llvm::makeIntrusiveRefCnt<FileManager>(FileSystemOptions());
  words.insert(words.begin(),
               {"clang", "-resource-dir=" SUPERSTEP_CLANG_RESOURCES, "-fopenmp", "-Wno-everything"});
  tooling::ToolInvocation invocation(std::move(words), std::move(action), files.get());
  return invocation.run();
}

}  // namespace

Translation translate(const std::string& file, const std::vector<std::string>& arguments) {
  Translation result;
  llvm::SmallString<128> preprocessed;
  if (llvm::sys::fs::createTemporaryFile("superstep-cc", "i", preprocessed)) {
    llvm::errs() << "error: no temporary file can be made\n";
    return result;
  }
  std::vector<std::string> first{"-E", "-isystem", SUPERSTEP_CC_INCLUDE};
  first.insert(first.end(), arguments.begin(), arguments.end());
  first.insert(first.end(), {file, "-o", preprocessed.str().str()});
  std::vector<std::string> second{"-fsyntax-only", "-x", "cpp-output"};
  for (const std::string& word : arguments)
    if (word.starts_with("-std=") || word.starts_with("-fopenmp-version=")) second.push_back(word);
  second.push_back(preprocessed.str().str());
  if (run(std::make_unique<PrintPreprocessedAction>(), first)) run(std::make_unique<Action>(result), second);
  llvm::sys::fs::remove(preprocessed);
  return result;
}

}  // namespace superstep_cc
