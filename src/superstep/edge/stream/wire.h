// Messages of a stream of frames, both ways.
//
// stream2: DECTRIS' stream version 2: one map of CBOR a message, with typed arrays (RFC 8746) in
// multi-dimensional ones. raw, superstep-frame/1: a JSON object, of a frame followed by a second part with
// its pixels.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "superstep/edge/stream/frame.h"

namespace superstep::edge {

enum class WireFormat { raw, stream2 };
WireFormat wire_format_from_name(std::string_view name);  // throws Error (invalid_argument)

using StreamMessage = std::variant<SeriesBegin, Frame, SeriesEnd>;

// The parts of one message. Of several channels (a detector has one for each threshold) `channel` names the
// one to take, or it is empty: the first. Throws Error: bad_file (what it is not), unsupported (a type, a
// compression or a channel that is not read, or not there).
StreamMessage decode_message(std::span<const std::span<const std::byte>> parts,
                             std::string_view channel = {});

// What is sent: every element a part. Pixels of a frame in stream2 are in the one part there is.
std::vector<std::string> encode_begin(WireFormat format, const SeriesBegin& begin, const Frame& like);
// `compression`: "lz4" or "bslz4" (pack.h), of stream2 alone; empty: none. Throws Error (unsupported).
std::vector<std::string> encode_frame(WireFormat format, const Frame& frame,
                                      std::string_view compression = {});
std::vector<std::string> encode_end(WireFormat format, const SeriesEnd& end);

}  // namespace superstep::edge
