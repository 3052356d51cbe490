// Constructs inside a region as one thread runs them.
#include "clang/AST/RecursiveASTVisitor.h"
#include "emit.h"

namespace superstep_cc {

using namespace clang;

namespace {

bool runs_on_one_thread(OpenMPDirectiveKind kind) {
  switch (kind) {
    case llvm::omp::OMPD_task:
    case llvm::omp::OMPD_taskloop:
    case llvm::omp::OMPD_taskloop_simd:
    case llvm::omp::OMPD_scan:
    case llvm::omp::OMPD_cancel:
    case llvm::omp::OMPD_cancellation_point:
    case llvm::omp::OMPD_interop:
    case llvm::omp::OMPD_depobj:
    case llvm::omp::OMPD_threadprivate: return false;
    default: return true;
  }
}

class Sequential : public RecursiveASTVisitor<Sequential> {
 public:
  explicit Sequential(Source& source) : source_(source) {}
  std::vector<Edit> edits;

  bool VisitOMPExecutableDirective(OMPExecutableDirective* directive) {
    if (!runs_on_one_thread(directive->getDirectiveKind()) ||
        isOpenMPTargetExecutionDirective(directive->getDirectiveKind())) {
      source_.refuse(directive->getBeginLoc(),
                     "clause: " + llvm::omp::getOpenMPDirectiveName(directive->getDirectiveKind()).str() +
                         " inside a target region; leave it out");
      return true;
    }
    if (!directive->hasAssociatedStmt()) {
      edits.push_back({source_.pragma_begin(directive), source_.pragma_end(directive), ";"});
      return true;
    }
    std::string before = "{", values;
    for (const OMPClause* clause : directive->clauses()) {
      if (const auto* list = dyn_cast<OMPPrivateClause>(clause)) {
        for (const Expr* each : list->varlists()) before += " " + declaration(each) + ";";
      } else if (const auto* copies = dyn_cast<OMPFirstprivateClause>(clause);
                 copies && !copies->isImplicit()) {
        for (const Expr* each : copies->varlists()) {
          const std::string name = source_.words(each), copy = "sst_f" + std::to_string(copies_++);
          values += " __typeof__(" + name + ") " + copy + "; __builtin_memcpy((void *)&" + copy +
                    ", (void *)&" + name + ", sizeof " + copy + ");";
          before += " " + declaration(each) + "; __builtin_memcpy((void *)&" + name + ", (void *)&" + copy +
                    ", sizeof " + name + ");";
        }
      }
    }
    if (!values.empty()) before = "{" + values + " " + before;
    edits.push_back({source_.pragma_begin(directive), source_.pragma_end(directive), before});
    const unsigned end = source_.end(directive->getRawStmt());
    edits.push_back({end, end, values.empty() ? " }" : " } }"});
    return true;
  }

 private:
  std::string declaration(const Expr* name) const {
    const std::string words = source_.words(name);
    return "__typeof__(" + words + ") " + words;
  }
  Source& source_;
  int copies_ = 0;
};

}  // namespace

std::vector<Edit> sequential_edits(Source& source, const Stmt* body) {
  Sequential visitor(source);
  visitor.TraverseStmt(const_cast<Stmt*>(body));
  return visitor.edits;
}

}  // namespace superstep_cc
