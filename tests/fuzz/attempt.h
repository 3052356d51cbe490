// A part of what a fuzzer does with its input: refused with an Error, it goes on with the next one.
#pragma once

#include "superstep/base/error.h"

template <class Body>
void attempt(const Body& body) {
  try {
    body();
  } catch (const superstep::Error&) {
  }
}
