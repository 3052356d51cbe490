#include "emit.h"

#include "clang/AST/RecursiveASTVisitor.h"
#include "functions.h"
#include "superstep/openmp/program/abi.h"
#include "types.h"

namespace superstep_cc {

using namespace clang;

namespace {

std::string number_text(int value) { return std::to_string(value); }

bool has_variable_extent(QualType type) { return type->isVariablyModifiedType(); }

// The type of what a variable's elements are reached through: a pointer of its own type, or to it.
std::string pointer_declaration(const Source& source, const Item& item, const std::string& name, int number) {
  QualType type = item.var->getType();
  const bool pointer = type->isPointerType();
  QualType element = pointer ? type->getPointeeType() : type;
  std::string extents;
  int d = 0;
  while (const auto* array = element->getAsArrayTypeUnsafe()) {
    if (const auto* fixed = dyn_cast<ConstantArrayType>(array))
      extents += "[" + std::to_string(fixed->getSize().getZExtValue()) + "]";
    else
      extents += "[sst_a->e" + number_text(number) + "_" + number_text(d) + "]";
    ++d;
    element = array->getElementType();
  }
  if (extents.empty()) return declare(source, element, "*" + name);
  return declare(source, element, "(*" + name + ")" + extents);
}

// sizeof texts of the extents that are not constants.
std::vector<std::pair<std::string, std::string>> variable_extents(const Item& item, int number) {
  std::vector<std::pair<std::string, std::string>> result;
  QualType type = item.var->getType();
  const bool pointer = type->isPointerType();
  QualType element = pointer ? type->getPointeeType() : type;
  std::string words = pointer ? "(" + item.var->getNameAsString() + ")[0]" : item.var->getNameAsString();
  int d = 0;
  while (const auto* array = element->getAsArrayTypeUnsafe()) {
    if (!isa<ConstantArrayType>(array))
      result.push_back({"e" + number_text(number) + "_" + number_text(d),
                        "(long)(sizeof(" + words + ") / sizeof((" + words + ")[0]))"});
    words = "(" + words + ")[0]";
    ++d;
    element = array->getElementType();
  }
  return result;
}

class Emitter {
 public:
  Emitter(Source& source, const Region& region, int number)
      : source_(source), region_(region), id_(number_text(number)) {
    loops_ = static_cast<int>(region.distributed.size() + region.inner.size() + region.extra.size());
  }
  Emitted run();

 private:
  std::string arguments_type() const;
  std::string field_of_copy(const VarDecl* var) const;
  std::string copies() const;
  std::string who(const std::string& body, bool alone) const;
  std::string whole() const;
  std::string reduced_locals(std::string& tail) const;
  std::string has_last_iteration() const;
  bool moves(const Access& access, int loop) const;
  std::string element_pointers(std::string& units) const;
  std::string dealt_loops() const;
  std::string dealt() const;
  std::string tables() const;
  std::string table(const std::string& file) const;
  std::string numbers() const;
  std::string call(const std::string& original) const;
  std::string original() const;
  std::string sum(const Linear& value, int loops) const;
  std::vector<Edit> named_through_pointers() const;
  std::string line_marker(unsigned line) const;
  bool dealt_wanted() const { return region_.not_dealt.empty(); }
  bool whole_wanted() const { return region_.not_whole.empty(); }

  Source& source_;
  const Region& region_;
  std::string id_;
  int loops_;
};

std::string Emitter::arguments_type() const {
  std::string fields;
  for (std::size_t i = 0; i < region_.items.size(); ++i) {
    const Item& item = region_.items[i];
    const std::string name = item.var->getNameAsString();
    if (item.role == Role::first_private && item.used && !region_.hidden_type)
      fields += "  " + field_of_copy(item.var) + ";\n";
    if (item.keeps_host_value) fields += "  const void *sst_h" + number_text(static_cast<int>(i)) + ";\n";
    for (const auto& [extent, words] : variable_extents(item, static_cast<int>(i)))
      fields += "  long " + extent + ";\n";
  }
  for (std::size_t k = 0; k < region_.distributed.size(); ++k)
    fields += "  long b" + std::to_string(k) + ", s" + std::to_string(k) + ", n" + std::to_string(k) + ";\n";
  return "struct sst_args_" + id_ + " {\n" + fields + "};\n";
}

// A copy in the arguments; of a type that only the function knows as its bytes.
std::string Emitter::field_of_copy(const VarDecl* var) const {
  if (!is_local_type(var->getType())) return declare(source_, var->getType(), var->getNameAsString());
  const auto bytes = source_.context.getTypeSizeInChars(var->getType()).getQuantity();
  return "_Alignas(16) char " + var->getNameAsString() + "[" + std::to_string(bytes) + "]";
}

// Firstprivate and private copies as locals.
std::string Emitter::copies() const {
  std::string result;
  for (const Item& item : region_.items) {
    if (!item.used || item.takes_memory()) continue;
    const std::string name = item.var->getNameAsString();
    result += "  " + declare(source_, item.var->getType(), name) + ";\n";
    if (item.role == Role::first_private)
      result += "  __builtin_memcpy((void *)&" + name + ", &sst_a->" + name + ", sizeof " + name + ");\n";
    result += "  (void)" + name + ";\n";
  }
  return result;
}

std::string Emitter::who(const std::string& body, bool alone) const {
  if (!region_.asks_who) return body;
  std::string result = "  sst_part sst_me = *sst_p;\n";
  if (alone) result += "  sst_me.team = 0; sst_me.teams = 1; sst_me.thread = 0; sst_me.threads = 1;\n";
  return result + "  const sst_part *sst_before = sst_set_part(&sst_me);\n" + body +
         "  sst_set_part(sst_before);\n";
}

// Names of arrays and mapped scalars become what their pointers lead to.
std::vector<Edit> Emitter::named_through_pointers() const {
  struct Visitor : RecursiveASTVisitor<Visitor> {
    const Source& source;
    const Region& region;
    std::vector<Edit> edits;
    Visitor(const Source& s, const Region& r) : source(s), region(r) {}
    bool VisitDeclRefExpr(DeclRefExpr* name) {
      const auto* var = dyn_cast<VarDecl>(name->getDecl());
      const int item = var && name->getLocation().isValid() && !var->isImplicit() ? region.item_of(var) : -1;
      if (item < 0) return true;
      const Item& known = region.items[static_cast<std::size_t>(item)];
      if (!known.takes_memory() || var->getType()->isPointerType()) return true;
      edits.push_back({source.begin(name), source.end_of(name), "(*sst_v" + std::to_string(item) + ")"});
      return true;
    }
  } visitor(source_, region_);
  visitor.TraverseStmt(const_cast<Stmt*>(region_.body));
  return visitor.edits;
}

std::string Emitter::line_marker(unsigned line) const {
  return "\n# " + std::to_string(line) + " " + quoted(source_.file(region_.directive->getBeginLoc())) + "\n";
}

std::string Emitter::whole() const {
  std::string head;
  for (std::size_t i = 0; i < region_.items.size(); ++i) {
    const Item& item = region_.items[i];
    if (!item.used || !item.takes_memory()) continue;
    const std::string number = std::to_string(i);
    const bool pointer = item.var->getType()->isPointerType();
    const std::string name = pointer ? item.var->getNameAsString() : "sst_v" + number;
    head += "  " + pointer_declaration(source_, item, name, static_cast<int>(i)) + " = (void *)(sst_o[" +
            std::to_string(2 * i) + "] < 0 ? " +
            (item.keeps_host_value ? "(char *)sst_a->sst_h" + number : std::string("0")) +
            " : (char *)sst_p->data[sst_o[" + std::to_string(2 * i) + "]] + sst_o[" +
            std::to_string(2 * i + 1) + "]);\n  (void)" + name + ";\n";
    if (item.in_function)
      head += "  sst_at_" + item.var->getNameAsString() + " = (void *)sst_v" + number + ";\n";
  }
  std::vector<Edit> edits = sequential_edits(source_, region_.body);
  for (Edit& edit : named_through_pointers()) edits.push_back(edit);
  for (Edit& edit : calls_of_clones(source_, region_.body, region_.clones)) edits.push_back(edit);
  std::string body = "  {" + line_marker(source_.line(region_.body->getBeginLoc())) +
                     source_.with(source_.begin(region_.body), source_.end(region_.body), edits) + "\n  }\n";
  return "static void sst_whole_" + id_ + "(const sst_part *sst_p) {\n  const struct sst_args_" + id_ +
         " *sst_a = sst_p->scalars;\n  const long *sst_o = (const long *)((const char *)sst_p->scalars + "
         "SST_WORDS(struct sst_args_" +
         id_ + "));\n  (void)sst_a; (void)sst_o;\n" + types_in_sight(source_, region_) + copies() + head +
         who(body, true) + "}\n";
}

// Reduced variables as locals of a part, and what gives their partial results back at its end.
std::string Emitter::reduced_locals(std::string& tail) const {
  std::string head;
  for (std::size_t r = 0, i = 0; i < region_.items.size(); ++i) {
    const Item& item = region_.items[i];
    if (item.role != Role::reduced) continue;
    const std::string name = item.var->getNameAsString(), number = std::to_string(i),
                      slot = std::to_string(r++);
    const std::string from =
        "(void *)((char *)sst_p->reductions[" + slot + "] + sst_o[" + std::to_string(2 * i + 1) + "])";
    if (item.var->getType()->isPointerType()) {
      head += "  " + pointer_declaration(source_, item, name, static_cast<int>(i)) + " = " + from + ";\n";
    } else if (item.operation == last_value) {
      head += "  " + declare(source_, item.var->getType(), name) + "; (void)" + name + ";\n";
      tail += "  if (" + has_last_iteration() + ") {\n";
      for (std::size_t k = 0; k < region_.distributed.size(); ++k)
        if (region_.distributed[k].counter == item.var)
          tail += "    " + name + " = sst_a->b" + std::to_string(k) + " + sst_a->s" + std::to_string(k) +
                  " * sst_a->n" + std::to_string(k) + ";\n";
      tail += "    __builtin_memcpy(" + from + ", (void *)&" + name + ", sizeof " + name + ");\n  }\n";
    } else if (item.var->getType()->isScalarType()) {
      const std::string type = declare(source_, item.var->getType(), "");
      head += "  " + declare(source_, item.var->getType(), name) + " = *(" + type + " *)" + from + ";\n";
      tail += "  *(" + type + " *)" + from + " = " + name + ";\n";
    } else {
      head += "  " + pointer_declaration(source_, item, "sst_v" + number, static_cast<int>(i)) + " = " +
              from + ";\n";
    }
  }
  return head;
}

std::string Emitter::has_last_iteration() const {
  std::string result;
  for (std::size_t k = 0; k < region_.distributed.size(); ++k)
    result += (k == 0 ? "sst_p->end[" : " && sst_p->end[") + std::to_string(k) + "] == sst_a->n" +
              std::to_string(k);
  return result;
}

// Is a loop, or a subscript of its own, part of what an access reaches?
bool Emitter::moves(const Access& access, int loop) const {
  const int extra = loop - static_cast<int>(region_.distributed.size() + region_.inner.size());
  for (std::size_t d = 0; d < access.subscripts.size(); ++d)
    if (extra >= 0 ? access.extra[d] == extra
                   : access.subscripts[d].valid && access.subscripts[d].coefficients.contains(loop))
      return true;
  return false;
}

// Pointers to the elements of an access and its strides, by number. `units`: the strides of the last loop
// that is dealt, which most often are one; then the compiler is told.
std::string Emitter::element_pointers(std::string& units) const {
  const int last = static_cast<int>(region_.distributed.size()) - 1;
  std::string head;
  for (std::size_t a = 0; a < region_.accesses.size(); ++a) {
    const Access& access = region_.accesses[a];
    const std::string number = std::to_string(a);
    const Item& item = region_.items[static_cast<std::size_t>(access.item)];
    const std::string type = declare(source_, element_of(item.var->getType()), "*sst_d" + number);
    if (access.gathered)
      head += "  " + type + " = sst_p->data[" + number + "]; const long sst_o" + number + " = sst_p->origin[" +
              number + "];\n  sst_gather *const sst_g" + number + " = sst_p->gathers ? sst_p->gathers[" +
              number + "] : 0;\n  (void)sst_d" + number + "; (void)sst_o" + number + "; (void)sst_g" +
              number + ";\n";
    else
      head += "  " + type + " = (void *)((char *)sst_p->data[" + number + "] + sst_p->origin[" + number +
              "] * (long)sizeof(*sst_d" + number + "));\n  (void)sst_d" + number + ";\n";
    for (int k = 0; k < loops_; ++k) {
      if (!moves(access, k)) continue;
      const std::string stride = "sst_p->strides[" + std::to_string(static_cast<int>(a) * loops_ + k) + "]";
      const int extra = k - static_cast<int>(region_.distributed.size() + region_.inner.size());
      const std::string name =
          extra >= 0 ? "sst_x" + std::to_string(extra) : "sst_s" + number + "_" + std::to_string(k);
      if (k == last) units += (units.empty() ? "" : " && ") + stride + " == 1";
      head += "  const long " + name + " = " + (k == last ? "sst_unit ? 1 : " : "") + stride + ";\n";
    }
  }
  return head;
}

// The loops that are dealt, over a part's own share of them.
std::string Emitter::dealt_loops() const {
  std::string loops, close;
  for (std::size_t k = 0; k < region_.distributed.size(); ++k) {
    const std::string n = std::to_string(k);
    const Loop& loop = region_.distributed[k];
    loops += "  for (long sst_t" + n + " = sst_p->begin[" + n + "]; sst_t" + n + " < sst_p->end[" + n +
             "]; ++sst_t" + n + ") {\n  const " +
             declare(source_, loop.counter->getType(), loop.counter->getNameAsString()) + " = sst_a->b" + n +
             " + sst_a->s" + n + " * sst_t" + n + "; (void)" + loop.counter->getNameAsString() + ";\n";
    close += "}";
  }
  std::vector<Edit> edits = sequential_edits(source_, region_.iteration);
  for (const Edit& edit : region_.edits) edits.push_back(edit);
  for (Edit& edit : calls_of_clones(source_, region_.iteration, region_.clones)) edits.push_back(edit);
  return loops + line_marker(source_.line(region_.iteration->getBeginLoc())) +
         source_.with(source_.begin(region_.iteration), source_.end(region_.iteration), edits) + "\n" +
         close + "\n";
}

std::string Emitter::dealt() const {
  std::string tail, units;
  const std::string head = reduced_locals(tail) + element_pointers(units);
  return "static inline __attribute__((always_inline)) void sst_loops_" + id_ +
         "(const sst_part *sst_p, const int sst_unit) {\n  const struct sst_args_" + id_ +
         " *sst_a = sst_p->scalars;\n  const long *sst_o = (const long *)((const char *)sst_p->scalars + "
         "SST_WORDS(struct sst_args_" +
         id_ + "));\n  (void)sst_a; (void)sst_o; (void)sst_unit;\n" + types_in_sight(source_, region_) +
         copies() + head + who(dealt_loops(), false) + tail + "}\nstatic void sst_dealt_" + id_ +
         "(const sst_part *sst_p) {\n  if (" + (units.empty() ? "1" : units) + ") sst_loops_" + id_ +
         "(sst_p, 1); else sst_loops_" + id_ + "(sst_p, 0);\n}\n";
}

std::string Emitter::sum(const Linear& value, int loops) const {
  std::string result = (value.valid && !value.constant.empty() ? value.constant : "0L") + ", ";
  for (int k = 0; k < loops; ++k) {
    const auto found = value.coefficients.find(k);
    result += (value.valid && found != value.coefficients.end() ? found->second : "0L") + ", ";
  }
  return result;
}

std::string Emitter::tables() const {
  std::string accesses, reductions, works;
  for (const Access& access : region_.accesses)
    accesses += "  {" + std::to_string(access.item) + ", " + std::to_string(access.subscripts.size()) + ", " +
                (access.reads ? "1" : "0") + ", " + (access.writes ? "1" : "0") + ", " +
                std::to_string(access.line) + ", " + (access.gathered ? "1" : "0") + "},\n";
  for (std::size_t i = 0; i < region_.items.size(); ++i)
    if (region_.items[i].role == Role::reduced)
      reductions += "  {" + std::to_string(i) + ", " + std::to_string(region_.items[i].operation) + "},\n";
  for (const Work& work : region_.work) {
    works += "  {" + std::to_string(work.loops) + "u, " + std::to_string(work.inside) + "u, " +
             std::to_string(work.counted);
    for (const double each :
         {work.starts, work.loads, work.stores, work.integers, work.floats, work.divisions, work.roots,
          work.exponentials, work.logarithms, work.sines, work.powers})
      works += ", " + std::to_string(each);
    works += "},\n";
  }
  return "static const sst_access sst_accesses_" + id_ + "[] = {\n" + accesses +
         "  {0}};\nstatic const sst_reduction sst_reductions_" + id_ + "[] = {\n" + reductions +
         "  {0}};\nstatic const sst_work sst_works_" + id_ + "[] = {\n" + works + "  {0}};\n";
}

std::string Emitter::table(const std::string& file) const {
  const SourceLocation place = region_.directive->getBeginLoc();
  int reductions = 0;
  for (const Item& item : region_.items) reductions += item.role == Role::reduced;
  std::string result = "static const sst_region sst_region_" + id_ + " = {" + file + ", " +
                       std::to_string(source_.line(place)) + ", " + std::to_string(source_.column(place)) +
                       ", ";
  for (const std::size_t count :
       {region_.distributed.size(), region_.inner.size(), region_.extra.size(),
        static_cast<std::size_t>(region_.counted), region_.accesses.size(),
        static_cast<std::size_t>(reductions), region_.work.size()})
    result += std::to_string(count) + ", ";
  result += "sst_accesses_" + id_ + ", sst_reductions_" + id_ + ", sst_works_" + id_ + ", " +
            (region_.vectorised ? "1" : "0") + ", " + (region_.of_tasks ? "1" : "0") + ", ";
  result += dealt_wanted() ? "sst_dealt_" + id_ + ", 0, " : "0, " + quoted(region_.not_dealt) + ", ";
  result += whole_wanted() ? "sst_whole_" + id_ + ", 0};\n" : "0, " + quoted(region_.not_whole) + "};\n";
  return result;
}

std::string Emitter::numbers() const {
  std::string result;
  int loops = 0;
  for (const Loop& loop : region_.distributed) {
    const std::string first = loop.first.constant.empty() ? "0L" : loop.first.constant;
    const std::string end = loop.end.constant.empty() ? "0L" : loop.end.constant;
    result +=
        "    " + first + ", sst_trips(" + first + ", " + end + ", " + loop.step + "), " + loop.step + ",\n";
    ++loops;
  }
  for (const Loop& loop : region_.inner) {
    result += "    " + loop.step + ", " + sum(loop.first, loops) + sum(loop.end, loops) + "\n";
    ++loops;
  }
  for (const std::string& extent : region_.extra) result += "    " + extent + ",\n";
  for (const Access& access : region_.accesses) {
    result += "    ";
    for (const std::string& extent : access.inner_extents) result += extent + ", ";
    for (std::size_t d = 0; d < access.subscripts.size(); ++d) {
      Linear subscript = access.subscripts[d];
      if (access.extra[d] >= 0) {
        subscript = {};
        subscript.valid = true;
        subscript.coefficients[static_cast<int>(region_.distributed.size() + region_.inner.size()) +
                               access.extra[d]] = "1L";
      }
      result += sum(subscript, loops_);
    }
    result += "\n";
  }
  return "    long sst_n[] = {\n" + result + "    0L};\n";
}

// The construct as one thread of the host runs it.
std::string Emitter::original() const {
  std::string values, copies, close;
  int number = 0;
  for (const Item& item : region_.items) {
    // A pointer that no clause names is a copy too.
    const bool pointer = item.role == Role::looked_up && item.var->getType()->isPointerType();
    if (!item.used || (item.takes_memory() && !pointer)) continue;
    const std::string name = item.var->getNameAsString(), copy = "sst_c" + std::to_string(number++);
    if (item.role == Role::first_private || pointer) {
      values += " __typeof__(" + name + ") " + copy + "; __builtin_memcpy((void *)&" + copy + ", (void *)&" +
                name + ", sizeof " + copy + ");";
      copies += " __typeof__(" + name + ") " + name + "; __builtin_memcpy((void *)&" + name + ", (void *)&" +
                copy + ", sizeof " + name + ");";
    } else {
      copies += " __typeof__(" + name + ") " + name + ";";
    }
  }
  std::vector<Edit> edits = sequential_edits(source_, region_.body);
  return "{" + values + " {" + copies + line_marker(source_.line(region_.body->getBeginLoc())) +
         source_.with(source_.begin(region_.body), source_.end(region_.body), edits) + "\n} }";
}

std::string Emitter::call(const std::string& original) const {
  std::string result =
      "{\n    struct sst_args_" + id_ + " sst_b;\n    __builtin_memset(&sst_b, 0, sizeof sst_b);\n";
  for (std::size_t i = 0; i < region_.items.size(); ++i) {
    const Item& item = region_.items[i];
    const std::string name = item.var->getNameAsString();
    if (item.role == Role::first_private && item.used && !region_.hidden_type)
      result += "    __builtin_memcpy((void *)&sst_b." + name + ", (const void *)&" + name +
                ", sizeof sst_b." + name + ");\n";
    if (item.keeps_host_value) result += "    sst_b.sst_h" + std::to_string(i) + " = " + name + ";\n";
    for (const auto& [extent, words] : variable_extents(item, static_cast<int>(i)))
      result += "    sst_b." + extent + " = " + words + ";\n";
  }
  for (std::size_t k = 0; k < region_.distributed.size(); ++k) {
    const Loop& loop = region_.distributed[k];
    result += "    sst_b.b" + std::to_string(k) + " = " +
              (loop.first.constant.empty() ? "0L" : loop.first.constant) + ";\n    sst_b.s" +
              std::to_string(k) + " = " + loop.step + ";\n    sst_b.n" + std::to_string(k) +
              " = sst_trips(sst_b.b" + std::to_string(k) + ", " +
              (loop.end.constant.empty() ? "0L" : loop.end.constant) + ", " + loop.step + ");\n";
  }
  result += emit_items(source_, region_.items, false) + numbers();
  std::string device = region_.device;
  if (!region_.host_if.empty()) device = "(" + region_.host_if + ") ? " + device + " : sst_this_host";
  result += "    int sst_r = sst_target(&sst_region_" + id_ + ", sst_i, " +
            std::to_string(region_.items.size()) + ", sst_n, &sst_b, (long)sizeof sst_b, " + device +
            ");\n    if (sst_r) {\n" + original + "\n    if (sst_r == 1) sst_target_end(); }\n}";
  return result;
}

Emitted Emitter::run() {
  Emitted result;
  const std::string file = quoted(source_.file(region_.directive->getBeginLoc()));
  result.functions = declarations_of_clones(source_, region_) + arguments_type() +
                     (dealt_wanted() ? dealt() : "") + (whole_wanted() ? whole() : "") + tables() +
                     table(file);
  result.call = call(original());
  return result;
}

}  // namespace

std::string emit_items(Source& source, const std::vector<Item>& items, bool all_mapped) {
  std::string result = "    sst_item sst_i[] = {\n";
  for (const Item& item : items) {
    const std::string name = item.var->getNameAsString();
    const bool memory = all_mapped || item.takes_memory();
    int kind = memory ? item.kind : static_cast<int>(sst_look_up);
    if (!all_mapped && memory)
      kind |= (item.used ? sst_used : 0) | (item.written ? sst_written : 0) |
              (item.used && item.reached ? sst_reached : 0) | (item.steers ? sst_steers : 0);
    const std::string base =
        item.var->getType()->isPointerType() ? "(void *)(" + name + ")" : "(void *)&(" + name + ")";
    result += "      {" + quoted(name) + ", " + (memory ? item.address : "0") + ", " +
              (memory ? item.bytes : "0") + ", " + (memory ? base : "0") + ", " +
              std::to_string(type_code(source.context, element_of(item.var->getType()))) + ", " +
              std::to_string(kind) + ", " + std::to_string(item.line) + ", " + item.times + ", " +
              item.pitch + "},\n";
  }
  return result + "      {0}};\n";
}

Emitted emit_region(Source& source, const Region& region, int number) {
  return Emitter(source, region, number).run();
}

}  // namespace superstep_cc
