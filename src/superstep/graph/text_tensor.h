// Types and tensors out of the textual form.
#pragma once

#include "superstep/base/tensor.h"
#include "superstep/graph/graph.h"
#include "superstep/graph/text_cursor.h"

namespace superstep::graph {

ValueType parse_type(TextCursor& cursor);  // "f32[8,16]"

// "[1.0, 2.0]" or base64"..."; nothing is allocated before as many elements are seen as the type says.
Tensor parse_elements(TextCursor& cursor, const ValueType& type);

}  // namespace superstep::graph
