// What there is of every operator: the rows of `superstep list ops` and of docs/operators.md.
#pragma once

#include <string>
#include <string_view>

#include "superstep/base/text.h"

namespace superstep::target {

// How the cpu target runs an operator, as its lowerers and passes say: never (passes and views leave nothing
// of it to run), by the reference evaluation, as the operators it is made of, or by a kernel. For the types,
// shapes and attributes that kernels take; `--explain` says it of a given model, with the reason of every
// refusal.
enum class Execution { compiled_away, definition, parts, kernel };
Execution cpu_execution_of(std::string_view op);
const char* name_of(Execution execution);

// operator, opset, element types, reference, cpu, pjrt, derivatives.
TextTable operator_table();
std::string operators_page();  // the same as docs/operators.md

}  // namespace superstep::target
